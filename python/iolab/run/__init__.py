"""Executing a plan: from a treatment to a trial, from a record to measurements."""
