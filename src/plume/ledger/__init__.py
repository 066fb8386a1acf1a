"""What was spent on each dataset, on disk: charged before data is read, through crashes and races."""
