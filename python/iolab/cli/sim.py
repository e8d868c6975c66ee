"""``iolab sim``: views into the simulator, and the proofs that it does what the kernel does."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.cli import sim_import_config
from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.cli.sim_against_kernel import AGAINST_KERNEL
from iolab.cli.sim_reproduce import REPRODUCE
from iolab.cli.subjects import Subject, add_subjects, execute_subject
from iolab.library import simulator
from iolab.library.services import Services

if TYPE_CHECKING:
    from iolab.protocol import (
        DepthSweep,
        Explanation,
        Judgement,
        Prediction,
        PredictionMiss,
        ProcessFigures,
        Profile,
        ReplayTwin,
        SeekSweep,
    )

NAME = "sim"
HELP = (
    "look into the simulator: scenarios, dispatch, trace, probe, profiles, schedulers, "
    "software, calibrate-cpu, reproduce, against-kernel"
)

EXIT_CHECK_FAILED: Final = 5
_ENDING: Final = simulator.TRACE_ENDING
_MISSES_SHOWN: Final = 5
_SEEK_STEP: Final = 4
_CASES_SHOWN: Final = 100
"""A file of more scenarios is summarised, unless all are wanted."""
_PROCESSES_SHOWN: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subject; each has flags of its own."""
    add_subjects(parser, SUBJECTS)


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Answer about one subject."""
    return execute_subject(NAME, SUBJECTS, arguments, (services, console))


# Scenarios.


def _declare_scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.yaml", help="scenarios with expected orders")
    parser.add_argument("--only", metavar="ID", help="only cases whose name begins so")
    parser.add_argument("--all", action="store_true", help=f"list more than {_CASES_SHOWN}, too")


def _scenarios(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    judgements = simulator.run_scenarios(Path(arguments.file), arguments.only, services)
    wrong = [case for case in judgements if not case["is_ok"]]
    n_wrong = len(wrong)
    is_summary = len(judgements) > _CASES_SHOWN and not arguments.all
    for case in wrong[:_CASES_SHOWN] if is_summary else judgements:
        _print_case(case, console)
    if is_summary:
        if n_wrong > _CASES_SHOWN:
            console.result(f"... and {n_wrong - _CASES_SHOWN} more that fail")
        _print_counts(judgements, console)
    console.result(f"{len(judgements) - n_wrong} of {len(judgements)} as expected")
    return EXIT_CHECK_FAILED if n_wrong else 0


def _print_case(case: Judgement, console: Console) -> None:
    mark = "ok  " if case["is_ok"] else "FAIL"
    console.result(f"{mark} {case['id']:8} {case['scheduler']:12} {case['title']}")
    if not case["is_ok"]:
        console.result(f"     expected {case['expected']}")
        console.result(f"     obtained {case['obtained']}")


def _print_counts(judgements: list[Judgement], console: Console) -> None:
    for scheduler in dict.fromkeys(case["scheduler"] for case in judgements):
        mine = [case["is_ok"] for case in judgements if case["scheduler"] == scheduler]
        console.result(f"{scheduler:12} {sum(mine)} of {len(mine)} as expected")
    console.result("Those that fail come first and the others are counted; --all lists each.")


# Recordings.


def _declare_dispatch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar=f"RECORDING{_ENDING}", help="events; .json beside it")
    parser.add_argument("--scheduler", metavar="S", help="another one than the recorded")
    parser.add_argument(
        "--tunable", metavar="K=V", action="append", default=[], help="may be repeated"
    )
    parser.add_argument(
        "--explain", type=int, metavar="N", help="show what decided about issue N, from 0"
    )
    parser.add_argument(
        "--all", action="store_true", help=f"list more than {_PROCESSES_SHOWN} processes, too"
    )


def _dispatch(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    asked = (arguments.recording, arguments.scheduler, arguments.tunable)
    found = simulator.replay(*asked, services, arguments.explain)
    if found.prediction is not None:
        _print_prediction(found.scheduler, found.prediction, console)
    else:
        console.result(
            f"{found.scheduler} was not recorded, and its choices cannot be forced one by one:"
            "\ncompare distributions."
        )
    if found.twin is not None:
        shown = None if arguments.all else _PROCESSES_SHOWN
        _print_twin((found.scheduler, found.recorded), found.twin, shown, console)
    else:
        console.result("The device of this recording has no model, so there is no twin of it.")
    return 0


def _print_prediction(scheduler: str, found: Prediction, console: Console) -> None:
    n_issues = max(1, found["issues"])
    share, nearly = (100 * found[key] / n_issues for key in ("predicted", "predicted_nearly"))
    console.result(
        f"{scheduler}: predicted {found['predicted']} of {found['issues']} = {share:.2f} %"
    )
    if nearly > share:
        console.result(f"  {nearly:.2f} % where two neighbours may be exchanged")
    for miss in found["misses"][:_MISSES_SHOWN]:
        _print_folded(
            f"issue {miss['issue']}, at {miss['at_ns'] / 1e6:.3f} ms: {_choice(miss)}", console
        )
    if (first := found["first_unexplained"]) is not None:
        console.result(
            "  No other order of events that was tried explains"
            f" {found['unexplained']} of the misses;"
            f"\n  the first is issue {first['issue']}: add --explain {first['issue']}."
        )
    elif found["method"] == "followed" and found["misses"]:
        console.result(
            "  Each miss is a race: another order of events within microseconds makes the"
            "\n  kernel's choice."
        )
    if (told := found["explanation"]) is not None:
        _print_explanation(told, console)


def _choice(of: PredictionMiss | Explanation) -> str:
    chosen = "nothing" if of["chosen"] is None else of["chosen"]
    return f"the kernel issued sector {of['recorded']}, the model {chosen}"


def _print_folded(text: str, console: Console) -> None:
    folded = textwrap.fill(text, console.width - 2, subsequent_indent="  ", break_on_hyphens=False)
    console.result(textwrap.indent(folded, "  "))


_RACE: Final = {
    None: "",
    True: "Another order of events within microseconds makes the kernel's choice: a race.",
    False: "No other order of events that was tried makes the kernel's choice.",
}


def _print_explanation(told: Explanation, console: Console) -> None:
    console.result(f"\nIssue {told['issue']}, at {told['at_ns'] / 1e6:.3f} ms: {_choice(told)}.")
    if verdict := _RACE[told["is_race"]]:
        console.result(verdict)
    if (decided_ns := told["decided_at_ns"]) is None:
        console.result("The model had made no decision by then.")
        return
    console.result(f"The model decided at {decided_ns / 1e6:.3f} ms, in this state:")
    for line in told["state"]:
        _print_folded(line, console)


def _print_twin(
    schedulers: tuple[str, str], twin: ReplayTwin, shown: int | None, console: Console
) -> None:
    (scheduler, recorded), real, simulated = schedulers, twin["real"], twin["simulated"]
    console.result("")
    if scheduler != recorded:
        console.result(f"Real under {recorded}, simulated under {scheduler}.")
    console.result(f"{'':34}{'real':>11}{'simulated':>11}{'difference':>13}")
    _row(console, "ascending share", real["ascending"], simulated["ascending"], ".3f")
    _row(console, "requests served", real["requests"], simulated["requests"], "d")
    _row(console, "bios merged", real["merges"], simulated["merges"], "d")
    _row(console, "requests joined", real["joined"], simulated["joined"], "d")
    others = {(row["process"], row["direction"]): row for row in simulated["processes"]}
    pairs = [
        (row, others[key])
        for row in real["processes"]
        if (key := (row["process"], row["direction"])) in others
    ]
    if shown is not None and len(pairs) > shown:
        console.result(f"The {shown} processes of {len(pairs)} that differ most; --all lists each.")
        pairs = sorted(pairs, key=_deviation, reverse=True)[:shown]
    for row, other in pairs:
        name = f"{row['process']} {row['direction']}"
        wait, other_wait = row["wait_ns"] / 1e6, other["wait_ns"] / 1e6
        _row(console, f"{name}: mean wait, ms", wait, other_wait, ".3f")
        _row(console, f"{name}: share of bytes, %", 100 * row["share"], 100 * other["share"], ".1f")
    phase, overhead_us = twin["fit"]["phase"] % 1, twin["fit"]["overhead_ns"] / 1e3
    console.result(
        f"\nDevice: angle {phase:.4f} turns at the first event, {overhead_us:.1f} us per request"
        "\nbeyond its model; both measured from the recording."
    )
    if twin["fit"]["flush_ns"] > 0:
        flush_ms = twin["fit"]["flush_ns"] / 1e6
        console.result(f"A flush takes {flush_ms:.2f} ms, as on average in the recording.")


def _deviation(pair: tuple[ProcessFigures, ProcessFigures]) -> float:
    """Distance between the waits of a process, real and simulated, whichever is longer."""
    waits = [max(1.0, float(row["wait_ns"])) for row in pair]
    return max(waits) / min(waits)


def _row(console: Console, name: str, real: float, simulated: float, form: str) -> None:
    if form == "d" or "wait" in name:
        change = f"{100 * (simulated / real - 1):+.1f} %" if real else "-"
    else:
        change = f"{simulated - real:+z{form}}" + (" points" if "%" in name else "")
    console.result(f"{name:34}{real:>11{form}}{simulated:>11{form}}{change:>13}")


# Probing.


def _declare_probe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "stack", metavar="PROFILE", help="a name from `iolab sim profiles`, or a STACK.toml"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random places (1)")


def _probe(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    found = simulator.probe(arguments.stack, arguments.seed, services)
    console.result(f"{found['profile']}, simulated; read cache off; times in virtual time\n")
    console.result("Size sweep, depth 1: median response in us, and what the line misses")
    sweeps = found["sizes"]
    heads = [f"{sweep['pattern'][:4]}. {sweep['direction']}" for sweep in sweeps]
    console.result(f"{'KiB':>6}" + "".join(f"{head:>18}" for head in heads))
    for index, point in enumerate(sweeps[0]["points"]):
        cells = [
            f"{sweep['points'][index]['median_us']:>9.1f}"
            f" {sweep['points'][index]['residual_us']:>+z8.1f}"
            for sweep in sweeps
        ]
        console.result(f"{point['kib']:>6}" + "".join(f"{cell:>18}" for cell in cells))
    console.result(f"{'a, us':>6}" + "".join(f"{sweep['fixed_us']:>18.1f}" for sweep in sweeps))
    rates = [
        "none" if sweep["rate_mb_s"] is None else f"{sweep['rate_mb_s']:.1f} MB/s"
        for sweep in sweeps
    ]
    console.result(f"{'1/b':>6}" + "".join(f"{rate:>18}" for rate in rates))
    _print_depth(found["depth"], console)
    if found["seek"]:
        _print_seek(found["seek"], console)
    return 0


def _print_depth(depth: DepthSweep, console: Console) -> None:
    console.result("\nDepth sweep, random 4 KiB reads")
    console.result(f"{'depth':>6}{'requests/s':>14}{'response, us':>16}")
    for point in depth["points"]:
        console.result(f"{point['depth']:>6}{point['rate']:>14.1f}{point['response_us']:>16.1f}")
    console.result(
        f"R0 {depth['alone_us']:.1f} us, Xmax {depth['rate_max']:.1f}/s, "
        f"knee N* = Xmax * R0 = {depth['knee']:.2f}"
    )


def _print_seek(seek: SeekSweep, console: Console) -> None:
    console.result("\nSeek sweep: mean access less half a turn, overhead and transfer")
    console.result(f"{'cylinders':>10}{'seek, ms':>12}{'fitted, ms':>12}")
    # One per doubling is enough to see the curve.
    for point in seek["points"][::_SEEK_STEP]:
        console.result(
            f"{point['distance']:>10}{point['seek_ms']:>12.3f}{point['fitted_ms']:>12.3f}"
        )
    short, long = seek["short"], seek["long"]
    console.result(
        f"d < {seek['boundary']}: {short['intercept']:.3f} + {short['slope']:.5f} * sqrt(d) ms\n"
        f"beyond: {long['intercept']:.3f} + {long['slope']:.7f} * d ms\n"
        f"mean seek {seek['mean_ms']:.2f} ms, {seek['rpm']:.1f} turns per minute"
    )


# Profiles and schedulers.


def _declare_profiles(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this one's numbers")


def _profiles(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    if arguments.name is None:
        rows = simulator.profiles(services)
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            console.result(f"{row['name']:{width}}  {row['title']}")
        console.result("\nUse one as --on sim:NAME; `iolab sim profiles NAME` prints its numbers.")
        return 0
    _print_profile(simulator.profile(arguments.name, services), console)
    return 0


def _print_profile(profile: Profile, console: Console) -> None:
    console.result(f"{profile['name']} ({profile['kind']}): {profile['title']}")
    if profile["notes"]:
        console.result(profile["notes"])
    width = max(map(len, profile["parameters"]))
    for name, row in profile["parameters"].items():
        value = f"{_value(row['value'])} {row['unit']}".strip()
        console.result(f"  {name:{width}}  {value:24} [{row['tag']}] {row['source']}")
    if inner := profile.get("inner"):
        console.result(f"  around sim:{inner}")
    if table := profile.get("software"):
        console.result(f"  software costs: {table}")


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} rows"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _declare_software(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this table's numbers")


def _software(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    if arguments.name is not None:
        _print_profile(simulator.software(arguments.name, services), console)
        return 0
    rows = simulator.software_tables(services)
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        console.result(f"{row['name']:{width}}  {row['title']}")
    console.result('\nUse one in a stack file: [software] costs = "NAME"; "free" costs nothing.')
    return 0


def _declare_calibrate(parser: argparse.ArgumentParser) -> None:
    """Take no flags."""
    del parser


def _calibrate(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    from iolab.library.calibrate_cpu import calibrate_cpu

    del arguments
    found = calibrate_cpu(services)
    console.result("# This machine; put it into a stack file.")
    console.result(f"# A page of the page cache takes {found.page_ns:.0f} ns beside the call;")
    console.result(f"# copying does {found.copy_bytes_per_s / 1e9:.1f} GB/s.")
    console.result(f"[cpu]\ncall_ns = {found.call_ns:.0f}\n")
    console.result(f"[software]\ntimer_ns = {found.timer_ns:.0f}")
    console.result(f"switch_ns = {found.switch_ns:.0f}\n")
    if found.why_not:
        console.result(f"# Not measured: {found.why_not}.")
    for name, ns in found.added_ns.items():
        noise = "" if ns > 0 else ": less than the noise of this machine"
        console.result(f"# {name} adds {ns / 1e3:.1f} us to an operation under none{noise}.")
    for row in found.schedulers:
        keys = "\n".join(f"{hook}_ns = {ns}" for hook, ns in row.hooks_ns.items())
        console.result(f"\n[software.schedulers.{row.name}]  # {row.tag}\n{keys}")
    return 0


def _declare_schedulers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this one")


def _schedulers(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    for row in simulator.schedulers(services, arguments.name):
        console.result(f"{row['name']} ({row['framework']})")
        for item in row["tunables"]:
            limits = f"{item['min']}..{item['max']}"
            console.result(
                f"  {item['name']:20} {item['default']:>8} {item['unit']:9} {item['about']}"
                + (f" [{limits}]" if arguments.name else "")
            )
    return 0


# Traces.


def _declare_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY.toml", help="a study on sim:...")
    parser.add_argument("--trial", metavar="ID", default="t0001", help="which one (t0001)")
    parser.add_argument("--seed", type=int, metavar="N", help="if the study names none")
    endings = " or ".join(f"*{ending}" for ending in simulator.TRACE_ENDINGS)
    parser.add_argument("--out", metavar="FILE", required=True, help=f"is made anew: {endings}")
    add_overwrite_flag(parser)


def _trace(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    path, place = Path(arguments.study), (Path(arguments.out), arguments.overwrite)
    found = simulator.trace_trial(path, arguments.trial, arguments.seed, place, services)
    console.result(f"{found.name}: {found.n_events} events in {place[0]}")
    return 0


SUBJECTS: Final[dict[str, Subject]] = {
    "scenarios": (
        _declare_scenarios,
        _scenarios,
        "Run a file of scenarios: one line each, ok or FAIL; exit code 5 if any differs.",
    ),
    "dispatch": (
        _declare_dispatch,
        _dispatch,
        "Replay a recording of the real kernel: predict every issue, then run its processes again.",
    ),
    "probe": (
        _declare_probe,
        _probe,
        "Measure a simulated device like a stranger: sweeps over size, depth and seek distance.",
    ),
    "trace": (
        _declare_trace,
        _trace,
        "Write the block-layer events of one trial of a simulated study, as CSV.",
    ),
    "profiles": (
        _declare_profiles,
        _profiles,
        "List the simulated devices, or print one with unit, provenance and source of each number.",
    ),
    "schedulers": (
        _declare_schedulers,
        _schedulers,
        "List the simulated schedulers and their tunables, as in sysfs.",
    ),
    "software": (
        _declare_software,
        _software,
        "List what schedulers cost a processor, or print one table with the source of each number.",
    ),
    "import-config": (sim_import_config.declare, sim_import_config.answer, sim_import_config.ABOUT),
    "calibrate-cpu": (
        _declare_calibrate,
        _calibrate,
        "Measure what software costs on this machine: calls, timers, switches, schedulers (root).",
    ),
    "reproduce": REPRODUCE,
    "against-kernel": AGAINST_KERNEL,
}
