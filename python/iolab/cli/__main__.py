"""``python -m iolab.cli``."""

import sys

from iolab.cli.main import main

sys.exit(main())
