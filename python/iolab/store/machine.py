"""The machine of a study in one line: where its numbers come from."""

from __future__ import annotations

from typing import Final

from iolab import units
from iolab.store.rows import StudyData

_FACTS: Final = (
    ("cpu.model", "{}"),
    ("cpu.count", "{} CPUs"),
    ("memory.total", "{} of memory"),
    ("os.name", "{}"),
    ("kernel.release", "Linux {}"),
)
"""Facts of the agent that tell machines apart, and how each is said."""


def machine_text(data: StudyData) -> str:
    """Processor, memory, system and kernel; what was not the same in all trials is named twice."""
    if data.study.is_simulated:
        return "no machine: simulated"
    if data.study.kind == "imported":
        return "a machine that the imported table does not describe"
    parts = list[str]()
    for name, form in _FACTS:
        varying = data.varying_facts.get(name, {})
        values = sorted(set(varying.values())) or [data.facts.get(name, "")]
        if values[0]:
            parts.append(form.format(" or ".join(map(readable_fact, values))))
    return ", ".join(parts) or "a machine that was not described"


def readable_fact(value: str) -> str:
    """A size as /proc/meminfo has it, rounded; anything else as it is."""
    number, _, unit = value.partition(" ")
    is_size = unit == "kB" and number.isdecimal()
    return units.format_bytes_rounded(int(number) << 10) if is_size else value
