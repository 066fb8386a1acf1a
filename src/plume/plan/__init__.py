"""What engines are asked to do."""
