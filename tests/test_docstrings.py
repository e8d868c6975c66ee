"""Examples in docstrings are run."""

import doctest
import importlib
import pkgutil

import pytest

import iolab

MODULES = [found.name for found in pkgutil.walk_packages(iolab.__path__, "iolab.")]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
