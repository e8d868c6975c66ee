"""The database of a study: append-only records and what is derived from them."""
