"""Takes the version from Cargo.toml, its only home; everything else is in pyproject.toml."""

import tomllib
from pathlib import Path

from setuptools import setup

MANIFEST = tomllib.loads(Path(__file__).with_name("Cargo.toml").read_text(encoding="utf-8"))

setup(version=MANIFEST["workspace"]["package"]["version"])
