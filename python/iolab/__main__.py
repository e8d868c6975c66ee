"""``python -m iolab``: the same as the command."""

from iolab.cli.main import program

program()
