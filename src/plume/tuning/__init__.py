"""The numbers people cannot guess: limits, bounds, epsilon. What to expect of them, before a budget is spent."""
