"""``iolab sim``: the simulator's open books, and the proofs that it does what the kernel does."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from iolab.cli.console import Console
from iolab.cli.flags import add_overwrite_flag
from iolab.cli.parser import Parser
from iolab.errors import IolabError, StudyError
from iolab.library.services import Services
from iolab.run.trial import trial_spec
from iolab.store.users_files import Allowed, refuse_existing, write_new
from iolab.study.load import load_study
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan
from iolab.testbed.model import make_testbed
from iolab.testbed.sim import simulated_testbed
from iolab.wording import nearest

NAME = "sim"
HELP = "look into the simulator: scenarios, dispatch, trace, probe, profiles, schedulers"

EXIT_CHECK_FAILED: Final = 5
_SEED_END: Final = 1 << 63
_ENDING: Final = ".csv.gz"
_MISSES_SHOWN: Final = 5
_SEEK_STEP: Final = 4
_CASES_SHOWN: Final = 100
"""A file of more scenarios is summarised, unless all are wanted."""
_PROCESSES_SHOWN: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subject; each has flags of its own."""
    parser.add_argument("subject", metavar="WHAT", nargs="?", help=", ".join(_SUBJECTS))
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="see `iolab sim WHAT --help`")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Answer about one subject."""
    if arguments.subject is None:
        raise IolabError(
            "`iolab sim` needs a word that says what to do",
            f"name what to do: {', '.join(_SUBJECTS)}",
        )
    if arguments.subject not in _SUBJECTS:
        raise IolabError(
            f"there is no 'iolab sim {arguments.subject}'{nearest(arguments.subject, _SUBJECTS)}",
            f"there are {', '.join(_SUBJECTS)}",
        )
    declare, answer, about = _SUBJECTS[arguments.subject]
    parser = Parser(prog=f"iolab sim {arguments.subject}", description=about, allow_abbrev=False)
    declare(parser)
    parsed = parser.understand(arguments.rest)
    return answer(parsed, services.load_core(), console)


def _read(path: Path) -> str:
    try:
        if path.name.endswith(".gz"):
            return gzip.decompress(path.read_bytes()).decode()
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file", "check its name") from None
    except OSError as error:
        raise StudyError(
            f"{path} cannot be read: {error.strerror or error}", "name a file"
        ) from None
    except (UnicodeDecodeError, EOFError) as error:
        raise StudyError(f"{path} cannot be read: {error}", "name a whole, plain file") from None


# Scenarios.


def _declare_scenarios(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.yaml", help="scenarios with expected orders")
    parser.add_argument("--only", metavar="ID", help="only cases whose name begins so")
    parser.add_argument("--all", action="store_true", help=f"list more than {_CASES_SHOWN}, too")


def _scenarios(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    path = Path(arguments.file)
    judgements = json.loads(core.sim_scenarios(str(path), _read(path)))
    if arguments.only:
        judgements = [case for case in judgements if case["id"].startswith(arguments.only)]
        if not judgements:
            raise StudyError(f"{path}: no case is called {arguments.only}...", "leave out --only")
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


def _print_case(case: dict[str, Any], console: Console) -> None:
    mark = "ok  " if case["is_ok"] else "FAIL"
    console.result(f"{mark} {case['id']:8} {case['scheduler']:12} {case['title']}")
    if not case["is_ok"]:
        console.result(f"     expected {case['expected']}")
        console.result(f"     obtained {case['obtained']}")


def _print_counts(judgements: list[dict[str, Any]], console: Console) -> None:
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
        "--all", action="store_true", help=f"list more than {_PROCESSES_SHOWN} processes, too"
    )


def _dispatch(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    path = Path(arguments.recording)
    if not path.is_file():
        raise StudyError(
            f"'{arguments.recording}' is not a file",
            f"name a RECORDING{_ENDING}; what describes it, RECORDING.json, lies beside it",
        )
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    described = path.with_name(f"{stem}.json")
    setup_text = _read(described)
    setup = _description(described, setup_text)
    scheduler = arguments.scheduler or str(setup["scheduler"])
    known = {row["name"]: row for row in json.loads(core.sim_schedulers())}
    if scheduler not in known:
        raise StudyError(
            f"'{scheduler}' is no simulated scheduler{nearest(scheduler, known)}",
            f"there are {', '.join(known)}",
        )
    tunables = json.dumps(_tunables(arguments.tunable))
    inputs = ((str(path), _read(path), setup_text), scheduler, tunables)
    if known[scheduler]["is_replayable"]:
        _print_prediction(scheduler, json.loads(core.sim_predict(*inputs)), console)
    else:
        console.result(
            f"{scheduler}: its choices cannot be forced one by one; compare distributions"
        )
    if setup.get("device_model", {}).get("kind") == "hdd":
        twin = json.loads(core.sim_replay(*inputs))
        shown = None if arguments.all else _PROCESSES_SHOWN
        _print_twin((scheduler, setup["scheduler"]), twin, shown, console)
    else:
        console.result("The device of this recording has no model, so there is no twin of it.")
    return 0


def _description(path: Path, text: str) -> dict[str, Any]:
    try:
        setup = json.loads(text)
    except ValueError as error:
        raise StudyError(f"{path} is not JSON: {error}", "it describes the queue") from None
    if not isinstance(setup, dict) or "scheduler" not in setup:
        raise StudyError(f"{path} does not name the scheduler", 'as in "scheduler": "bfq"')
    described: dict[str, Any] = setup  # pyright: ignore[reportUnknownVariableType]
    return described


def _print_prediction(scheduler: str, found: dict[str, Any], console: Console) -> None:
    share = 100 * found["predicted"] / max(1, found["issues"])
    console.result(
        f"{scheduler}: predicted {found['predicted']} of {found['issues']} = {share:.2f} %"
    )
    for at_ns, recorded, chosen in found["misses"][:_MISSES_SHOWN]:
        console.result(
            f"  miss at {at_ns / 1e6:.3f} ms: the kernel issued sector {recorded}, "
            f"the model chose {'nothing' if chosen is None else chosen}"
        )


def _print_twin(
    schedulers: tuple[str, str], twin: dict[str, Any], shown: int | None, console: Console
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


def _deviation(pair: tuple[dict[str, Any], dict[str, Any]]) -> float:
    """How far the waits of a process, real and simulated, are apart, whichever is longer."""
    waits = [max(1.0, float(row["wait_ns"])) for row in pair]
    return max(waits) / min(waits)


def _row(console: Console, name: str, real: float, simulated: float, form: str) -> None:
    if form == "d" or "wait" in name:
        change = f"{100 * (simulated / real - 1):+.1f} %" if real else "-"
    else:
        change = f"{simulated - real:+z{form}}" + (" points" if "%" in name else "")
    console.result(f"{name:34}{real:>11{form}}{simulated:>11{form}}{change:>13}")


def _tunables(texts: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in map(_tunable, texts):
        if name in found:
            raise StudyError(
                f"--tunable {name} is given twice, as {found[name]} and as {value}",
                "keep one of them",
            )
        found[name] = value
    return found


def _tunable(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not equals or not value.isdecimal():
        raise StudyError(f"--tunable {text} is not NAME=NUMBER", "as in --tunable fifo_batch=8")
    return name, int(value)


# Probing.


def _declare_probe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "stack", metavar="PROFILE", help="a name from `iolab sim profiles`, or a STACK.toml"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random places (1)")


def _seed(asked: int) -> int:
    if not 0 <= asked < _SEED_END:
        raise StudyError(f"--seed {asked} is not a seed", "from 0 to 2**63 - 1")
    return asked


def _probe(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    seed = _seed(arguments.seed)
    testbed = simulated_testbed(arguments.stack, {}, core)
    found = json.loads(core.sim_probe(testbed.stack_json, seed))
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


def _print_depth(depth: dict[str, Any], console: Console) -> None:
    console.result("\nDepth sweep, random 4 KiB reads")
    console.result(f"{'depth':>6}{'requests/s':>14}{'response, us':>16}")
    for point in depth["points"]:
        console.result(f"{point['depth']:>6}{point['rate']:>14.1f}{point['response_us']:>16.1f}")
    console.result(
        f"R0 {depth['alone_us']:.1f} us, Xmax {depth['rate_max']:.1f}/s, "
        f"knee N* = Xmax * R0 = {depth['knee']:.2f}"
    )


def _print_seek(seek: dict[str, Any], console: Console) -> None:
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


def _profiles(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    if arguments.name is None:
        names = core.sim_profile_names()
        width = max(map(len, names))
        for name in names:
            console.result(f"{name:{width}}  {json.loads(core.sim_profile(name))['title']}")
        console.result("\nUse one as --on sim:NAME; `iolab sim profiles NAME` prints its numbers.")
        return 0
    profile = json.loads(core.sim_profile(arguments.name))
    console.result(f"{profile['name']} ({profile['kind']}): {profile['title']}")
    if profile["notes"]:
        console.result(profile["notes"])
    width = max(map(len, profile["parameters"]))
    for name, row in profile["parameters"].items():
        value = f"{_value(row['value'])} {row['unit']}".strip()
        console.result(f"  {name:{width}}  {value:24} [{row['tag']}] {row['source']}")
    if profile.get("inner"):
        console.result(f"  around sim:{profile['inner']}")
    return 0


def _value(value: Any) -> str:
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return f"{len(items)} rows"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _declare_schedulers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this one")


def _schedulers(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    known = {row["name"]: row for row in json.loads(core.sim_schedulers())}
    if arguments.name is not None and arguments.name not in known:
        raise StudyError(
            f"'{arguments.name}' is no simulated scheduler{nearest(arguments.name, known)}",
            f"there are {', '.join(known)}",
        )
    for name, row in known.items():
        if arguments.name in (None, name):
            console.result(f"{name} ({row['framework']})")
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
    parser.add_argument("--out", metavar=f"FILE{_ENDING}", required=True, help="is made anew")
    add_overwrite_flag(parser)


def _trace(arguments: argparse.Namespace, core: Any, console: Console) -> int:
    out = Path(arguments.out)
    if not out.name.endswith(_ENDING):
        raise StudyError(f"--out {out} does not end in {_ENDING}", f"as in --out trace{_ENDING}")
    allowed = Allowed.of(arguments.overwrite)
    refuse_existing([out], allowed)
    study = load_study(Path(arguments.study))
    if study.seed is None:
        study = study.with_seed(1 if arguments.seed is None else _seed(arguments.seed))
    testbed = make_testbed(study.testbed.kind, study.testbed.argument, dict(study.testbed.options))
    if not testbed.is_simulated:
        raise StudyError(f"{testbed.text} is not simulated", "use a study on sim:...")
    plan = make_plan(replace(study, testbed=TestbedRequest(*testbed.request)))
    trials = {trial.trial_id: trial for trial in plan.trials(study.rounds or 1)}
    if arguments.trial not in trials:
        raise StudyError(f"there is no trial {arguments.trial}", f"the last is {max(trials)}")
    spec = trial_spec(trials[arguments.trial], core, is_fresh_fs=False)
    stack = json.dumps(testbed.agent_spec()["stack"])
    text = core.sim_trace(stack, json.dumps(spec))
    try:
        write_new({out: gzip.compress(text.encode(), mtime=0)}, allowed)
    except OSError as error:
        raise StudyError(f"{out} cannot be written: {error}", "name another file") from None
    name = trials[arguments.trial].treatment.name
    console.result(f"{name}: {text.count(chr(10)) - 1} events in {out}")
    return 0


_Subject = tuple[
    Callable[[argparse.ArgumentParser], None],
    Callable[[argparse.Namespace, Any, Console], int],
    str,
]
_SUBJECTS: Final[dict[str, _Subject]] = {
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
}
