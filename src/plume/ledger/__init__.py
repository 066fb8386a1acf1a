"""What was spent on each dataset, on disk: charged before a plan runs, through crashes and races."""
