"""Testbeds, and the client of the privileged program that runs trials on them."""
