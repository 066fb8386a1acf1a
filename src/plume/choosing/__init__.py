"""Numbers that a query leaves open: limits and ranges that are chosen within the budget, by noised histograms."""
