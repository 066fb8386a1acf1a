"""Where the randomness comes from that privacy rests on; nothing else in the package may draw it."""
