"""The paper's three ways from a query to a plan."""
