"""Canned studies for the tests of this folder; loaded by path, so that any import mode works."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

CANNED = Path(__file__).parents[1] / "report" / "fixtures" / "canned.py"


@pytest.fixture(scope="session")
def canned() -> ModuleType:
    """Return the module of canned studies."""
    name = "iolab_tests_canned"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, CANNED)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
