"""Cost of a study and what it can decide, in words, before anything is touched.

Durations and bytes are the plan's own estimates; noise comes from a stored A/A study of the same
testbed, from ``--noise``, or is an honest range. Rounds needed are those of `iolab.stats.planning`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import StudyError
from iolab.frozen import frozen, replace
from iolab.library import calibrations
from iolab.run.places import check_room, placement_lines
from iolab.study.estimate import space_text
from iolab.study.model import PILOT_ROUNDS, Factor, IozoneWorkload, MixedWorkload, Study
from iolab.study.plan import Plan, make_plan, round_ops
from iolab.study.slice_lengths import SDS_ASSUMED, announcement, unit_noun
from iolab.study.validity import PAIRS, devices_of
from iolab.testbed.model import Testbed
from iolab.testbed.sim import simulation_text
from iolab.wording import counted

if TYPE_CHECKING:
    from iolab.stats.planning import Noise, RoundsNeeded

LEVELS_KEPT: Final = 3
CUTS_SHOWN: Final = 4
_LABEL_WIDTH: Final = 9


@frozen
class Cut:
    """A smaller study, and what would fit then."""

    what: str
    rounds_that_fit: int


@frozen
class Forecast:
    """The numbers behind the text."""

    plan: Plan
    testbed: Testbed
    needed: tuple[RoundsNeeded, ...]
    """One for a known noise, else one for each of a range."""
    is_noise_known: bool
    round_ns: int | None
    """Time of a round, in ns; None: nobody knows before the first round."""

    @property
    def rounds_wanted(self) -> int | None:
        """Rounds that would serve, for the known or the usual noise; None: more than a thousand."""
        return self.needed[0 if self.is_noise_known else len(self.needed) // 2].recommended

    @property
    def rounds_that_fit(self) -> int | None:
        """Rounds that the budget admits; None without budget or duration."""
        return _fit(self.plan.study, self.round_ns)


def forecast(plan: Plan, testbed: Testbed, noise_share: float | None = None) -> Forecast:
    """Plan in numbers.

    Parameters
    ----------
    noise_share : sd of one round's ratio, if the user says it; else a stored A/A study, else
        a range.
    """
    from iolab.stats.planning import DEFAULT_SDS, Noise, needed

    known = calibrations.find(testbed, plan.design)
    noises: list[Noise]
    if noise_share is not None:
        noises = [Noise(noise_share, "as given by --noise")]
    elif known is not None:
        noises = [Noise(known.sd, known.text)]
    else:
        assumed = SDS_ASSUMED if plan.design == PAIRS else DEFAULT_SDS
        noises = [Noise(sd, "assumed") for sd in assumed]
    study = plan.study
    compared = study.factor(study.compared_factor)
    family = max(1, len(compared.levels) - 1) if compared else 1
    rounds = study.rounds
    round_ns = testbed.expected_ns(plan.round_cost().duration_ns)
    fit = _fit(study, round_ns)
    if fit is not None:
        rounds = fit if rounds is None else min(rounds, fit)
    return Forecast(
        plan,
        testbed,
        tuple(needed(noise, study.margin, family, rounds) for noise in noises),
        len(noises) == 1,
        round_ns,
    )


def forecast_text(found: Forecast) -> str:
    """Write the whole plan."""
    plan, study = found.plan, found.plan.study
    noun = unit_noun(study) if plan.design == PAIRS else "round"
    rounds = (
        counted(study.rounds, noun) if study.rounds else f"as many {noun}s as the budget admits"
    )
    if study.width is not None and study.rounds:
        rounds = f"at most {rounds}"
    lines = [
        f"Plan of '{study.name}' on {found.testbed.text}:"
        f" {counted(len(plan.treatments), 'treatment')} a round, {rounds}."
    ]
    for label, text in _parts(found):
        lines.append(f"{label:{_LABEL_WIDTH}}{text}")
    for line in placement_lines(found.testbed, plan):
        lines.append(f"{'files':{_LABEL_WIDTH}}{line}")
    return "\n".join(lines)


def check_forecast_room(plan: Plan, testbed: Testbed) -> None:
    """Refuse a plan whose files do not fit, place by place.

    Raises
    ------
    TestbedError, RefusedError : too little space; says where, and how much would do.
    """
    check_room(testbed, plan, kept_bytes=0)


def short_text(found: Forecast) -> str:
    """Say in a sentence or two how many rounds are needed, and of what noise."""
    if not found.plan.study.is_comparison:
        return "Nothing is compared, so that no number of rounds decides anything."
    wanted = found.rounds_wanted
    margin = f"{found.plan.study.margin * 100:.3g} %"
    noise = f"Noise: {_noise_text(found)}."
    if wanted is None:
        return f"More than 1000 rounds would be needed to decide at a margin of {margin}. {noise}"
    return (
        f"About {wanted} rounds decide at a margin of {margin} with 80 % power;"
        f" `iolab plan` tells more. {noise}"
    )


def _parts(found: Forecast) -> Iterator[tuple[str, str]]:
    if found.plan.design == PAIRS:
        yield "design", announcement(found.plan)
        unit = "a balanced unit: every level equally often on every device"
        if devices_of(found.plan.study) == "images":
            unit = "a set of fresh images, on other devices each time: every level equally often"
        yield "rounds", f"a round is {unit}"
    yield "noise", _noise_text(found)
    for row in found.needed:
        yield "rounds", _rounds_text(found, row)
    yield from _width_parts(found)
    yield from _exact_parts(found)
    yield from _cost_parts(found)
    yield from _budget_parts(found)


def _noise_text(found: Forecast) -> str:
    if found.is_noise_known:
        noise = found.needed[0].noise
        return f"sd {noise.sd * 100:.2g} % of a round's ratio ({noise.source})"
    ends = [row.noise.sd * 100 for row in found.needed]
    design = " --design pairs" if found.plan.design == PAIRS else ""
    # A testbed whose duration nobody can expect is simulated: rounds may be equal there.
    seed = "simulated rounds differ only by seed, perhaps not at all; "
    return (
        f"not measured here: sd of a round's ratio assumed {ends[0]:.2g} to {ends[-1]:.2g} %;"
        f" {seed if found.round_ns is None else ''}"
        f"`iolab aa --on {shlex.quote(found.testbed.text)}{design}` measures it"
    )


def _rounds_text(found: Forecast, row: RoundsNeeded) -> str:
    study = found.plan.study
    assumed = "" if found.is_noise_known else f"at sd {row.noise.sd * 100:.2g} %: "
    twice = f"{((1 + study.margin) ** 2 - 1) * 100:.3g} %"
    text = (
        f"{assumed}{_count(row.for_difference)} to find a difference of {twice} (twice the margin),"
        f" {_count(row.for_same)} to show 'same' (80 % power)"
    )
    if row.chance_of_difference is not None and row.chance_of_same is not None:
        text += (
            f"; with those planned the chances are {row.chance_of_difference * 100:.0f} % and"
            f" {row.chance_of_same * 100:.0f} %"
        )
    if row.half_width is not None and row.noise.sd > 0:
        text += f", the interval about ±{row.half_width * 100:.2g} %"
    return text


def _width_parts(found: Forecast) -> Iterator[tuple[str, str]]:
    """Probable cost of a wanted width; its pilot decides."""
    from iolab.stats.planning import rounds_for_width

    study = found.plan.study
    if study.width is None:
        return
    compared = study.factor(study.compared_factor)
    family = max(1, len(compared.levels) - 1) if compared else 1
    counts = [rounds_for_width(row.noise, study.width, family) for row in found.needed]
    ends = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    yield (
        "width",
        f"intervals of ±{study.width * 100:.3g} % take about {ends} rounds; the first"
        f" {PILOT_ROUNDS} decide how many (Stein)",
    )


def _exact_parts(found: Forecast) -> Iterator[tuple[str, str]]:
    from iolab.stats.planning import achievable

    study = found.plan.study
    compared = study.factor(study.compared_factor)
    tests = achievable(len(compared.levels) if compared else 2, study.rounds)
    text = f"an exact test (sign flips) can reach .05 from {tests.rounds_for_exact_test} rounds on"
    if tests.pairs > tests.family:
        text += f", for all {tests.pairs} pairs from {tests.rounds_for_exact_pairs} on"
    missing: list[str] = []
    if not tests.has_median_interval:
        missing.append("no interval of a median below 6 rounds")
    if not tests.has_bootstrap:
        missing.append("no bootstrap below 10")
    yield "tests", "; ".join([text, *missing])


def _cost_parts(found: Forecast) -> Iterator[tuple[str, str]]:
    plan, cost = found.plan, found.plan.round_cost()
    rounds = [n for n in (plan.study.rounds, found.rounds_wanted) if n]
    totals = ", ".join(
        f"{counted(n, 'round')} {units.format_duration_rounded(n * found.round_ns)}"
        for n in dict.fromkeys(rounds)
        if found.round_ns is not None
    )
    if found.round_ns is None:
        ops = round_ops(plan)
        unknown = "not known before the first round: simulated time passes without waiting"
        yield "time", unknown if ops is None else simulation_text(ops)
        yield "bytes", "nothing is written but the results"
        return
    text = f"a round about {units.format_duration_rounded(found.round_ns)}"
    yield "time", text + (f"; {totals}" if totals else "") + " (estimates)"
    written = units.format_bytes_rounded(cost.written_bytes)
    total = ""
    if plan.study.rounds:
        total = f", {units.format_bytes_rounded(cost.written_bytes * plan.study.rounds)} in all"
    doubt = "" if cost.is_bound else "; it depends on the device's speed"
    yield "bytes", f"a round writes about {written}{total}{doubt}"
    yield "space", space_text(cost)


def _budget_parts(found: Forecast) -> Iterator[tuple[str, str]]:
    study, fit, wanted = found.plan.study, found.rounds_that_fit, found.rounds_wanted
    if study.budget_ns is None or fit is None:
        return
    budget = units.format_duration_rounded(study.budget_ns)
    if wanted is not None and fit >= wanted:
        yield "budget", f"{budget} admits about {counted(fit, 'round')}: enough"
        return
    yield (
        "budget",
        f"{budget} admits about {counted(fit, 'round')}, {_count(wanted)} are needed; to cut:",
    )
    for cut in _cuts(found)[:CUTS_SHOWN]:
        yield "", f"- {cut.what}: room for about {counted(cut.rounds_that_fit, 'round')}"


def _cuts(found: Forecast) -> list[Cut]:
    """Smaller studies that admit more rounds; those that suffice first, the mildest of them."""
    wanted = found.rounds_wanted or 1 << 30
    cuts = [
        Cut(what, fit)
        for what, study in _smaller(found.plan.study)
        if (fit := _fit_of(study, found.testbed)) > (found.rounds_that_fit or 0)
    ]
    enough = [cut for cut in cuts if cut.rounds_that_fit >= wanted]
    rest = [cut for cut in cuts if cut.rounds_that_fit < wanted]
    return [
        *sorted(enough, key=lambda cut: cut.rounds_that_fit),
        *sorted(rest, key=lambda cut: -cut.rounds_that_fit),
    ]


def _smaller(study: Study) -> Iterator[tuple[str, Study]]:
    for factor in study.factors:
        if factor.name == study.compared_factor:
            continue
        rest = tuple(f for f in study.factors if f is not factor)
        held = tuple(sorted([*study.settings, (factor.name, factor.levels[0])]))
        yield (
            f"hold {factor.name} at {factor.levels[0]}",
            replace(study, factors=rest, settings=held),
        )
        if len(factor.levels) > LEVELS_KEPT:
            levels = _spread(factor.levels)
            kept = tuple(Factor(f.name, levels) if f is factor else f for f in study.factors)
            yield f"keep {factor.name} {', '.join(levels)} only", replace(study, factors=kept)
    for workload in study.workloads[1:]:
        others = tuple(w for w in study.workloads if w is not workload)
        yield f"leave workload {workload.name} out", replace(study, workloads=others)
    for place, workload in enumerate(study.workloads):
        if isinstance(workload, MixedWorkload):
            shorter: MixedWorkload | IozoneWorkload = replace(
                workload, duration_ns=workload.duration_ns // 2
            )
            what = f"halve the duration of {workload.name}"
        elif isinstance(workload, IozoneWorkload) and len(workload.tests) > 1:
            shorter = replace(workload, tests=workload.tests[: -(-len(workload.tests) // 2)])
            what = f"keep the tests {', '.join(shorter.tests)} of {workload.name}"
        else:
            continue
        workloads = (*study.workloads[:place], shorter, *study.workloads[place + 1 :])
        yield what, replace(study, workloads=workloads)


def _spread(levels: tuple[str, ...]) -> tuple[str, ...]:
    """First, middle and last level."""
    return (levels[0], levels[len(levels) // 2], levels[-1])


def _fit_of(study: Study, testbed: Testbed) -> int:
    try:
        cost = make_plan(study).round_cost()
    except StudyError:
        return 0
    return _fit(study, testbed.expected_ns(cost.duration_ns)) or 0


def _fit(study: Study, round_ns: int | None) -> int | None:
    if study.budget_ns is None or round_ns is None:
        return None
    return study.budget_ns // max(1, round_ns)


def _count(rounds: int | None) -> str:
    if rounds is None:
        return "more than 1000 rounds"
    return counted(rounds, "round")
