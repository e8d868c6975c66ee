"""Delivery of `pip install .`: package, extension and agent, all of one version."""

import importlib
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
SCRIPTS = Path(sys.executable).parent


def test_version_has_one_home():
    assert importlib.metadata.version("iolab") == VERSION
    manifests = sorted((ROOT / "crates").glob("*/Cargo.toml"))
    versions = [tomllib.loads(path.read_text())["package"]["version"] for path in manifests]
    assert versions == [{"workspace": True}] * len(manifests)


def test_changelog_speaks_of_this_version():
    assert re.search(rf"^## {re.escape(VERSION)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_extension_is_importable():
    core = importlib.import_module("iolab._core")
    assert ".abi3." in str(core.__file__)


@pytest.mark.parametrize("name", ["iolab", "iolab-agent"])
def test_programs_are_beside_python(name):
    assert shutil.which(name, path=str(SCRIPTS)) is not None


def test_help_needs_nothing():
    done = subprocess.run([SCRIPTS / "iolab", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("iolab compares")


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "_core.pyi",
        "study/names.json",
        "study/simulated.json",
        "store/schema.sql",
        "report/templates/page.css",
    ],
)
def test_data_files_are_installed(name):
    files = {str(path) for path in importlib.metadata.files("iolab") or []}
    assert f"iolab/{name}" in files
