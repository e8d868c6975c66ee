"""``python -m iolab.cli``."""

from iolab.cli.main import program

program()
