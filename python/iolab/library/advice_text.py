"""Advice as text for a terminal and as data for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from iolab.advise.advice import RULES, Step
from iolab.advise.request import StripeRequest
from iolab.library.advising import Answer
from iolab.report.folding import fold_text
from iolab.units import format_bytes_rounded
from iolab.version import iolab_version
from iolab.wording import counted

_STEP = " " * 2
_REASON = " " * 6


def stripe_text(answer: Answer, width: int = 80) -> str:
    """The answer of `iolab advise stripe`."""
    request = answer.request
    assert isinstance(request, StripeRequest), "the caller has asked about a stripe"
    return "\n\n".join([_geometry_text(answer, request, width), *_blocks(answer, width)])


def random_text(answers: Sequence[Answer], width: int = 80) -> str:
    """The answer of `iolab advise random`: the four rules, with the lines of each file system."""
    assert answers, "there is a file system"
    size = format_bytes_rounded(_app_io(answers[0]))
    head = (
        f"I/O of {size} at random places: four rules. (1) Blocks are as long as the I/O, so that"
        " nothing more is moved. (2) Everything begins at multiples of it, so that one I/O moves"
        " one disk. (3) Nothing is read ahead: it would be thrown away. (4) The database caches for"
        " itself and goes to the disks directly; logs, which are written in order and waited for,"
        " have disks of their own."
    )
    blocks = [fold_text(head, width)]
    for answer in answers:
        blocks.append(f"== {answer.file_system.title} ==")
        blocks += _blocks(answer, width)
    return "\n\n".join(blocks)


def _app_io(answer: Answer) -> int:
    value = answer.request.app_io_bytes
    assert value is not None, "a request about random I/O has a size"
    return value


def _geometry_text(answer: Answer, request: StripeRequest, width: int) -> str:
    name, disks = answer.file_system.title, counted(request.disks, "disk")
    lost = ", one of them lost" if request.is_degraded else ""
    if answer.file_system.has_own_volumes:
        data = counted(request.data_disks, "data disk")
        text = f"{name}: {request.level.title} of {disks}{lost}, {data}; no stripe unit."
    elif not request.level.is_striped:
        size = format_bytes_rounded(request.cluster_bytes)
        text = f"{name} on {request.level.title} of {disks}{lost}: tuned as for one disk, {size}."
    else:
        unit, cluster = (
            format_bytes_rounded(value) for value in (request.unit_bytes, request.cluster_bytes)
        )
        why = (
            "a write of whole stripes reads no old data and no parity"
            if request.has_parity
            else "one long transfer keeps all disks busy"
        )
        text = (
            f"{name} on {request.level.title} of {disks}{lost}:"
            f" {request.data_disks} x {unit} = {cluster} of data per stripe. Rule: cluster ="
            f" stripe, for {why}."
        )
    return fold_text(f"{text} Words in capitals stand for names of yours.", width)


def _blocks(answer: Answer, width: int) -> Iterator[str]:
    for where in _places(answer.advice.steps):
        lines = [where]
        for step in answer.advice.steps:
            if step.where == where:
                lines += _step_lines(step, width)
        yield "\n".join(lines)
    if answer.advice.notes:
        lines = ["to know"]
        for note in answer.advice.notes:
            source = f" [{note.source}]" if note.source else ""
            lines.append(fold_text(f"{_STEP}- {note.text}{source}", width, _STEP * 2))
        yield "\n".join(lines)


def _places(steps: Sequence[Step]) -> list[str]:
    """Occasions in the order of the steps; rules in their own."""
    found = list(dict.fromkeys(step.where for step in steps))
    return sorted(found, key=RULES.index) if set(found) <= set(RULES) else found


def _step_lines(step: Step, width: int) -> Iterator[str]:
    yield f"{_STEP}{step.line}"
    folded = fold_text(f"{step.reason} [{step.source}]", width - len(_REASON))
    yield textwrap.indent(folded, _REASON)


def answer_dict(answer: Answer) -> dict[str, object]:
    """An answer as plain data; sizes are bytes."""
    advice = answer.advice
    return {
        "file_system": answer.file_system.name,
        "lines": [asdict(step) for step in advice.steps],
        "notes": [asdict(note) for note in advice.notes],
        "is_simulated": answer.proofs is not None,
    }


def stripe_dict(answer: Answer) -> dict[str, object]:
    """The answer of `iolab advise stripe` as plain data."""
    request = answer.request
    assert isinstance(request, StripeRequest), "the caller has asked about a stripe"
    geometry = {
        "raid": request.level.name,
        "disks": request.disks,
        "data_disks": request.data_disks,
        "unit_bytes": request.unit_bytes or None,
        "cluster_bytes": request.cluster_bytes or None,
        "app_io_bytes": request.app_io_bytes,
        "memory_bytes": request.memory_bytes,
        "is_degraded": request.is_degraded,
    }
    return {
        "iolab_version": iolab_version(),
        "subject": "stripe",
        "geometry": geometry,
        **answer_dict(answer),
    }


def random_dict(answers: Sequence[Answer]) -> dict[str, object]:
    """The answer of `iolab advise random` as plain data."""
    return {
        "iolab_version": iolab_version(),
        "subject": "random",
        "app_io_bytes": _app_io(answers[0]),
        "rules": list(RULES),
        "file_systems": [answer_dict(answer) for answer in answers],
    }
