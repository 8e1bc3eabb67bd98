"""What a user passed, checked once at the border: every message names the argument."""
