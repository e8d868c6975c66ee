"""A study as one file that can be checked, read and unpacked on another machine."""
