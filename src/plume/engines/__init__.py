"""Who executes a plan."""
