"""How much may be revealed."""
