"""What leaves as text or as a file: rows as CSV, JSON and tables to read, and files that appear whole or not at all."""
