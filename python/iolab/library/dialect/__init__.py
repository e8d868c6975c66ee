"""Running other programs' command lines."""
