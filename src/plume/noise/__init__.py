"""Where randomness comes from; nothing else in the package may draw any."""
