"""Takes the version from Cargo.toml and the manual pages; all else is in pyproject.toml."""

import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
MANIFEST = tomllib.loads(Path(__file__).with_name("Cargo.toml").read_text(encoding="utf-8"))

# The source of a distribution may lack docs; then there are no manual pages.
MAN_PAGES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/man/*.1"))

setup(
    version=MANIFEST["workspace"]["package"]["version"],
    data_files=[("share/man/man1", MAN_PAGES)],
)
