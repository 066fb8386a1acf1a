"""Plans as SQL: what all engines have in common, and one file for each engine with what it says in its own way."""
