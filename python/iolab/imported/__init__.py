"""Tables of other people's measurements, read into the same store as a study's own trials."""
