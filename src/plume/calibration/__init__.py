"""From a query to its noise: which kind, how wide, and how keys are selected, before any data is read."""
