"""Answer of a check as text and as data for programs, and the list of requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.library.check import CheckedRequirement, CheckResult
from iolab.report.folding import fold_text
from iolab.stats.requirement_word import JudgedCriterion
from iolab.study.requirements.requirement import Criterion, Quantity, Requirement
from iolab.version import iolab_version
from iolab.wording import counted, percent_range

NO_WORD: Final = "figures"
"""Word where nobody published a limit."""
_INDENT: Final = " " * 11
_UNITS: Final[dict[Quantity, str]] = {
    "flush_ns_p99": "ns",
    "flushes_per_s": "1/s",
    "reads_per_s": "1/s",
    "writes_per_s": "1/s",
    "write_bytes_per_s": "bytes/s",
}
_PHRASES: Final[dict[Quantity, str]] = {
    "flush_ns_p99": "99 % of flushes within {}",
    "flushes_per_s": "{} flushes per second",
    "reads_per_s": "{} reads per second",
    "writes_per_s": "{} writes per second",
    "write_bytes_per_s": "{} written",
}
_REQUIRED: Final[dict[Quantity, str]] = {
    **_PHRASES,
    "flush_ns_p99": "99 % of flushes in {}",
    "write_bytes_per_s": "{} of writes",
}
_SHORT: Final[dict[Quantity, str]] = {
    "flush_ns_p99": "p99 of flushes {}",
    "flushes_per_s": "{} flushes/s",
    "reads_per_s": "{} reads/s",
    "writes_per_s": "{} writes/s",
    "write_bytes_per_s": "{} written",
}
_COUNTED: Final[dict[Quantity, str]] = {
    "flush_ns_p99": "flushes",
    "flushes_per_s": "flushes",
    "reads_per_s": "reads",
    "writes_per_s": "writes",
    "write_bytes_per_s": "writes",
}


def value_text(quantity: Quantity, value: float) -> str:
    """A value with its unit, to three digits: ``1.24 ms``, ``8,120``, ``10 MB/s``."""
    if quantity == "flush_ns_p99":
        for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
            if value >= size:
                return f"{_three(value / size)} {unit}"
        return f"{value:.0f} ns"
    if quantity == "write_bytes_per_s":
        return f"{_three(value / 1e6)} MB/s"
    return _three(value)


def _three(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def limit_text(criterion: Criterion) -> str:
    """The limit: ``less than 10 ms``, ``at least 500``, or that nobody published one."""
    if criterion.limit is None:
        return "none published"
    value = value_text(criterion.quantity, criterion.limit)
    number, _, unit = value.partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    value = f"{number} {unit}".rstrip()
    return f"less than {value}" if criterion.is_upper else f"at least {value}"


def required_text(criterion: Criterion) -> str:
    """The limit in a phrase: ``99 % of flushes within less than 10 ms``."""
    if criterion.limit is None:
        return "nothing; figures only"
    return _REQUIRED[criterion.quantity].format(limit_text(criterion))


def measured_text(one: JudgedCriterion, *, is_short: bool = False) -> str:
    """Value and interval in a phrase: ``99 % of flushes within 1.24 ms (95 %: 1.2 to 1.3 ms)``.

    `is_short` gives ``p99 of flushes 1.24 ms (1.2 to 1.3)``.
    """
    quantity, found = one.criterion.quantity, one.estimate
    if found is None:
        return "nothing was measured"
    value, low = value_text(quantity, found.value), value_text(quantity, found.low)
    if found.high == float("inf"):
        ends = f"at least {low}, no upper end"
    else:
        high = value_text(quantity, found.high)
        (number, _, unit), other = low.partition(" "), high.partition(" ")[2]
        ends = f"{number if unit == other else low} to {high}"
    if is_short:
        return f"{_SHORT[quantity].format(value)} ({ends})"
    return f"{_PHRASES[quantity].format(value)} ({100 * one.level:.3g} % interval: {ends})"


def check_text(result: CheckResult, *, is_table: bool, width: int = 80) -> str:
    """The answer for a terminal, in lines of `width` columns.

    Parameters
    ----------
    result : the answer.
    width : columns.
    is_table : True gives one line per limit; False a paragraph per requirement.
    """
    place = f"{result.directory} ({result.file_system} on {result.device})"
    if is_table:
        return "\n".join([f"What {place} is good for:", "", *_table(result, width)])
    lines = list[str]()
    for one in result.checked:
        lines += [*_paragraph(one, width), ""]
    return "\n".join([*lines, fold_text(f"Checked: {place}.", width)])


def _paragraph(one: CheckedRequirement, width: int) -> Iterator[str]:
    requirement = one.judged.requirement
    word = one.judged.word or NO_WORD
    yield fold_text(f"{word:{len(_INDENT)}}{requirement.about}", width, _INDENT)
    is_alone = len(one.judged.criteria) == 1
    for criterion in one.judged.criteria:
        for text in _lines(criterion, is_alone=is_alone):
            yield fold_text(f"{_INDENT}{text}", width, _INDENT)
    if not requirement.has_limit:
        text = "Nobody published a limit for this, so there is no PASS and no FAIL."
        yield fold_text(f"{_INDENT}{text}", width, _INDENT)
    label = "Limit:" if requirement.has_limit else "Source:"
    yield f"{_INDENT}{label} {requirement.sources[0].url}"
    for note in one.notes:
        hint = f" {note.hint[:1].upper()}{note.hint[1:]}." if note.hint else ""
        yield fold_text(f"{_INDENT}Note: {note.text}{hint}", width, _INDENT)


def _lines(one: JudgedCriterion, *, is_alone: bool) -> Iterator[str]:
    """Sentences about one quantity; the word of one that is alone stands above."""
    criterion, found = one.criterion, one.estimate
    word = f"{one.word}: " if one.word is not None and not is_alone else ""
    end = f"; required: {limit_text(criterion)}." if criterion.limit is not None else "."
    yield f"{word}{measured_text(one)}{end}"
    if one.reason:
        yield f"Undecided: {one.reason}."
    if found is not None:
        n_ops = f"{found.n_ops:,} {_COUNTED[criterion.quantity]}"
        yield f"Measured: {criterion.what}; {n_ops} in {counted(found.n_rounds, 'round')}."


def _table(result: CheckResult, width: int) -> Iterator[str]:
    rows = [("word", "for", "measured (interval)", "required")]
    for one in result.checked:
        for criterion in one.judged.criteria:
            rows.append(
                (
                    criterion.word or NO_WORD,
                    one.judged.requirement.name,
                    measured_text(criterion, is_short=True),
                    limit_text(criterion.criterion),
                )
            )
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [f"{row[column]:{widths[column]}}" for column in range(3)]
        yield "  ".join([*cells, row[3]])
    reasons = [
        f"{one.judged.requirement.name}: undecided: {criterion.reason}."
        for one in result.checked
        for criterion in one.judged.criteria
        if criterion.reason
    ]
    texts = [*dict.fromkeys(reasons), *_notes(result)]
    if texts:
        yield ""
    yield from (fold_text(text, width, "  ") for text in texts)
    yield ""
    yield "`iolab check --for NAME` takes a minute for one; `--list` has the sources."


def _notes(result: CheckResult) -> Iterator[str]:
    """A line per kind of note, with the rows that it is about."""
    by_code: dict[str, list[tuple[str, str]]] = {}
    for one in result.checked:
        for note in one.notes:
            by_code.setdefault(note.code, []).append((one.judged.requirement.name, note.text))
    for found in by_code.values():
        is_of_all = len(found) == len(result.checked)
        names = "every row" if is_of_all else ", ".join(name for name, _ in found)
        texts = list(dict.fromkeys(text for _, text in found))
        said = percent_range(texts)
        if len(texts) > 1 and said == texts[0]:
            said = f"{said.rstrip('.')} for {found[0][0]}."
        yield f"Note on {names}: {said}"


def requirements_text(requirements: Sequence[Requirement], width: int = 80) -> str:
    """The requirements with their limits, jobs and sources."""
    blocks = list[str]()
    for one in requirements:
        lines = [fold_text(f"{one.name}  {one.about}", width, "  ")]
        for criterion in one.criteria:
            text = f"  required: {required_text(criterion)} ({criterion.what})"
            lines.append(fold_text(text, width, "    "))
        lines.append(fold_text(f"  job: fio {one.job}", width, "    "))
        for source in one.sources:
            lines.append(f"  {source.url}")
            lines.append(fold_text(f"    {source.says} (noted {source.noted_on})", width, "    "))
        lines.append(fold_text(f"  differs: {one.differs}", width, "    "))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def requirement_dict(one: Requirement) -> dict[str, object]:
    """A requirement as plain data."""
    return {
        "name": one.name,
        "about": one.about,
        "job": one.job,
        "limits": [_criterion_dict(criterion) for criterion in one.criteria],
        "sources": [
            {"url": source.url, "says": source.says, "noted_on": source.noted_on}
            for source in one.sources
        ],
        "differs": one.differs,
    }


def _criterion_dict(criterion: Criterion) -> dict[str, object]:
    return {
        "operation": criterion.operation,
        "quantity": criterion.quantity,
        "unit": _UNITS[criterion.quantity],
        "what": criterion.what,
        "limit": criterion.limit,
        "is_upper": criterion.is_upper,
    }


def result_dict(result: CheckResult) -> dict[str, object]:
    """The answer as plain data: finite numbers, None where an interval has no end."""
    return {
        "iolab_version": iolab_version(),
        "directory": str(result.directory),
        "file_system": result.file_system,
        "device": result.device,
        "requirements": [_checked_dict(one) for one in result.checked],
    }


def _checked_dict(one: CheckedRequirement) -> dict[str, object]:
    requirement = one.judged.requirement
    return {
        "name": requirement.name,
        "word": one.judged.word,
        "rounds": one.n_rounds,
        "criteria": [_judged_dict(criterion) for criterion in one.judged.criteria],
        "sources": [source.url for source in requirement.sources],
        "notes": [{"code": n.code, "text": n.text, "hint": n.hint} for n in one.notes],
    }


def _judged_dict(one: JudgedCriterion) -> dict[str, object]:
    found = one.estimate
    ends: list[float | None] | None = None
    if found is not None:
        ends = [found.low, None if found.high == float("inf") else found.high]
    return {
        **_criterion_dict(one.criterion),
        "value": None if found is None else found.value,
        "confidence": one.level,
        "interval": ends,
        "rounds": 0 if found is None else found.n_rounds,
        "operations": 0 if found is None else found.n_ops,
        "word": one.word,
        "reason": one.reason,
    }
