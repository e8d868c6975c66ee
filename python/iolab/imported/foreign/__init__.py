"""Readers of what other programs print: one file per form, one row in `recognise.READERS`."""
