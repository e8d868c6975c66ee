"""Headings of docs/explanation/honesty.md, in the order of the page."""

from typing import Final

MEMORY: Final = "Memory instead of storage"
GENERATOR: Final = "The generator instead of the target"
MACHINE: Final = "The machine was not as asked"
NOISE: Final = "Noise"
STUDY: Final = "The study"
OVER_TIME: Final = "Over the time of a trial"
ESTIMATES: Final = "Estimates beside the verdict"
FAILING: Final = "Simulated devices that fail"
TABLE: Final = "Imported tables"

SECTIONS: Final = (MEMORY, GENERATOR, MACHINE, NOISE, STUDY, OVER_TIME, ESTIMATES, FAILING, TABLE)
