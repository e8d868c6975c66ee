"""Modules of the standard library that `pathlib` and `subprocess` import for functions that no
command calls: addresses in URLs, and the encoding of a locale.
"""

from __future__ import annotations

from iolab.deferred_import import put_off

put_off("ipaddress")
put_off("locale")
