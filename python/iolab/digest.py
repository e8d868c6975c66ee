"""SHA-256 and BLAKE2b without OpenSSL, for modules that every command imports.

`hashlib` loads OpenSSL, which takes longer than digesting a megabyte. Python carries these
functions as modules of its own, and `random` of the standard library takes them in the same way.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final


def _function(name: str, modules: tuple[str, ...]) -> Any:
    """The function of the first module that this Python has."""
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise AssertionError("hashlib is always there")


sha256: Final[Any] = _function("sha256", ("_sha2", "_sha256", "hashlib"))
"""As `hashlib.sha256`; the module is another one from Python 3.12 on."""
blake2b: Final[Any] = _function("blake2b", ("_blake2", "hashlib"))
"""As `hashlib.blake2b`."""
