"""What observers answered: the engine that asks them, and the store that never forgets and never lies."""
