"""Directory for results whose place nobody named: all that a command line needs of `iolab.run`."""

from iolab.run.options import OUTPUT_ROOT

__all__ = ["OUTPUT_ROOT"]
