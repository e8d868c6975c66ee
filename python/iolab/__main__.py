"""``python -m iolab``: the same as the command."""

import sys

from iolab.cli.main import main

sys.exit(main())
