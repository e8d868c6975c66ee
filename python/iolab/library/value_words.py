"""Words that a flag of a study takes, for those flags that have a list: completion reads it."""

from __future__ import annotations

from iolab.library.flag_words import factor_flags
from iolab.library.services import Services
from iolab.library.simulator import profiles
from iolab.study.names import TESTS
from iolab.study.testbeds import TESTBED_KINDS

PLACE: str = "--on"
"""Flag of a testbed."""


def place_words() -> tuple[str, ...]:
    """Testbeds as they are typed; one that needs an argument ends with the colon before it."""
    simulated = [f"sim:{profile['name']}" for profile in profiles(Services())]
    kinds = [
        f"{kind.name}:" if kind.needed or kind.argument_key == "path" else kind.name
        for kind in TESTBED_KINDS
    ]
    return (*kinds, *simulated)


def level_words() -> dict[str, tuple[str, ...]]:
    """Levels by flag, of which several may stand in a list with commas."""
    found = {row.flag: row.levels for row in factor_flags() if row.levels}
    return {**found, "--test": tuple(test.name for test in TESTS)}
