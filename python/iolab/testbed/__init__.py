"""Where trials run, and the client of the privileged program that runs them."""
