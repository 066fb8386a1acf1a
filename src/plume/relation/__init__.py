"""Rows that a SELECT makes of tables: which ones there may be, whose each row is, and how engines are asked for them."""
