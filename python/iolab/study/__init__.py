"""From a study file or flags to a plan of trials; no I/O on any testbed happens here."""
