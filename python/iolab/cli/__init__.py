"""The command line: parsing, printing and exit codes; all work is done elsewhere."""

from iolab.cli import unasked as unasked
