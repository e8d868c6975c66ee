"""More of what `tools/fuzz.py` feeds: files that users hand over, and lines that the agent reads.

Files are mutations of those in this repository. The agent is the compiled one, in a dry run of an
ordinary user (root gives its rights away first), with a state directory of its own.
"""

from __future__ import annotations

import atexit
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Final

from fuzz_targets import GOLDEN, check_message, flipped, mutated_lines, mutated_text
from iolab import _core
from iolab.archive.format import members_of
from iolab.archive.read import Inspection, read_archive
from iolab.archive.write import pack
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import IolabError
from iolab.library.archives import check
from iolab.run.core import load_core
from iolab.run.trial import check_specs
from iolab.study.load import load_study
from iolab.study.plan import make_plan
from iolab.testbed.command import find_agent
from iolab.testbed.model import make_testbed

ROOT: Final = Path(__file__).parents[1]
_NOBODY: Final = 65534
_AGENT_SECONDS: Final = 8
_TREATMENTS_MAX: Final = 200
_RECORDING_LINES: Final = 400
_STUDY: Final = (
    *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--test", "read"),
    *("--record-size", "4k", "--file-size", "1m", "--rounds", "2", "--seed", "7"),
)
_VALUES: Final = (
    *("[]", "{}", "[[]]", "1.5", "inf", "nan", "true", "-1", "0", '""', '"\\u0000"', "1979-05-27"),
    *("07:32:00", "9223372036854775808", '"4k..1t"', "[1, 'x']", "{ a = 1 }", '"1e400"', "1e308"),
)


def study_files(rng: random.Random, folder: Path) -> None:
    """A study file, understood and planned as `iolab run --dry-run` does."""
    text = _mutated_toml(rng, rng.choice(_studies()))
    path = folder / "study.toml"
    path.write_bytes(_perhaps_flipped(rng, text.encode(errors="replace")))

    def understand() -> None:
        study = load_study(path)
        study = study if study.seed is not None else study.with_seed(1)
        request = study.testbed
        make_testbed(request.kind, request.argument, dict(request.options))
        plan = make_plan(study)
        if len(plan.treatments) < _TREATMENTS_MAX:
            check_specs(plan, load_core())

    _answered(understand)


def archives(rng: random.Random, folder: Path) -> None:
    """An archive, damaged as a whole or packed again around a damaged database."""
    body, whole = _archive()
    if rng.random() < 0.5:
        content = whole.contents["study.db"]
        contents = {**whole.contents, "study.db": flipped(rng, content)}
        assert whole.manifest is not None
        body = pack(replace(whole.manifest, members=members_of(contents)), contents)
    else:
        body = flipped(rng, body)
    if rng.random() < 0.1:
        body = body[: rng.randrange(len(body))]
    path = folder / "a.iolab"
    path.write_bytes(body)
    _answered(lambda: check(path))


def stacks(rng: random.Random, _: Path) -> None:
    """A stack file, and what it says of itself."""
    text = _mutated_toml(rng, rng.choice(_stack_texts()))
    _answered(lambda: _core.sim_describe(_core.sim_stack("stack.toml", text)))


def typed_lines(rng: random.Random, _: Path) -> None:
    """Lines of an administrator, and the stack that they make, which is TOML at least."""
    text = mutated_lines(rng, rng.choice(_typed_lines()))
    options = {"device": "scsi7200-1995", "name": "fuzzed", "release": rng.choice((None, 7, 8, 10))}

    def read() -> None:
        imported = json.loads(_core.sim_import_config([("lines", text)], json.dumps(options)))
        if imported["stack"] is not None:
            tomllib.loads(imported["stack"])
            _core.sim_stack("stack.toml", imported["stack"])

    _answered(read)


def scenarios(rng: random.Random, _: Path) -> None:
    """A few scenarios of the schedulers."""
    head, *cases = _scenario_parts()
    first = rng.randrange(len(cases))
    text = head + "".join(cases[first : first + rng.randrange(1, 4)])
    text = mutated_lines(rng, text)
    _answered(lambda: _core.sim_scenarios("s.yaml", text))


def recordings(rng: random.Random, _: Path) -> None:
    """A recording of a queue, its events or its description mutated."""
    events, setup = rng.choice(_recordings())
    if rng.random() < 0.7:
        events = mutated_lines(rng, events)
    if rng.random() < 0.5:
        setup = mutated_lines(rng, setup)
    scheduler = rng.choice(("noop", "deadline", "cfq", "none", "mq-deadline", "bfq", "kyber"))
    predict = rng.choice((_core.sim_predict, _core.sim_replay))
    _answered(lambda: predict(("r.csv", events, setup), scheduler, "{}"))


def agent_requests(rng: random.Random, folder: Path) -> None:
    """Lines to the agent after a good greeting, none of which greets again."""
    lines = list[bytes]()
    for _ in range(rng.choice((1, 2, 5))):
        line = rng.choice(_REQUESTS)
        for _ in range(rng.choice((0, 1, 1, 3))):
            line = mutated_text(rng, line)
        raw = _perhaps_flipped(rng, line.encode(errors="replace")).replace(b"\n", b" ")
        if b"hello" not in raw:
            lines.append(raw)
    _ask_agent(folder, lines)


def journals(rng: random.Random, folder: Path) -> None:
    """A journal that the agent finds when it is greeted."""
    place = folder / "state" / "iolab" / "journal"
    place.mkdir(parents=True, exist_ok=True)
    text = mutated_lines(rng, "\n".join(_JOURNAL) + "\n")
    content = _perhaps_flipped(rng, text.encode(errors="replace"))
    path = place / f"r-{rng.randrange(3)}.jsonl"
    path.write_bytes(content)
    try:
        _ask_agent(folder, [])
        assert path.read_bytes() == content, "a greeting changed a journal"
    finally:
        path.unlink(missing_ok=True)


# --- asking -------------------------------------------------------------------------------------


def _answered(ask: Callable[[], object]) -> None:
    try:
        ask()
    except IolabError as error:
        check_message(error)


@cache
def _agent_of_all() -> Path:
    """A copy of the agent that nobody, too, may run: an installation may lie in a closed home."""
    folder = Path(mkdtemp(prefix="iolab-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    agent = folder / "iolab-agent"
    shutil.copyfile(find_agent(), agent)
    agent.chmod(0o755)
    return agent


def _ask_agent(folder: Path, lines: list[bytes]) -> None:
    """Every line is answered by a line of JSON; the agent ends when its input does."""
    state = folder / "state"
    state.mkdir(exist_ok=True)
    for path in (folder, state):
        path.chmod(0o777)
    is_root = os.geteuid() == 0
    done = subprocess.run(
        [_agent_of_all()],
        input=b"\n".join([_HELLO, *lines]) + b"\n",
        capture_output=True,
        check=False,
        timeout=_AGENT_SECONDS,
        cwd="/",
        env={"XDG_STATE_HOME": str(state), "HOME": str(folder), "PATH": "/usr/bin:/bin"},
        user=_NOBODY if is_root else None,
        group=_NOBODY if is_root else None,
        extra_groups=[] if is_root else None,
    )
    if done.returncode not in range(6) or b"panicked" in done.stderr:
        raise AssertionError(f"the agent ended with {done.returncode}: {done.stderr[-500:]!r}")
    for line in done.stdout.splitlines():
        json.loads(line)


_HELLO: Final = json.dumps(
    {
        "id": 1,
        "method": "hello",
        "params": {"protocol": 1, "run": "r-fuzz", "is_dry_run": True, "state_dir": None},
    }
).encode()
_REQUESTS: Final = (
    '{"id":2,"method":"open_testbed","params":{"kind":"directory","path":"/tmp",'
    '"allow_knobs_on":[]}}',
    '{"id":2,"method":"open_testbed","params":{"kind":"loop","size_bytes":1073741824,"image_dir":'
    '"/var/tmp","device_count":1,"logical_block_bytes":512}}',
    '{"id":3,"method":"run_trial","params":{"trial":"t0001","knobs":{"scheduler":"bfq"},'
    '"fs":"ext4"}}',
    '{"id":4,"method":"close_testbed","params":{}}',
    '{"id":5,"method":"shutdown","params":{}}',
    '{"id":6,"method":"cancel","params":{}}',
)
_JOURNAL: Final = (
    '{"line":"open","version":1,"run":"r-0","boot_id":"cccde588-1111-2222-3333-444455556666"}',
    '{"line":"intent","id":1,"change":{"kind":"directory_created","path":"/nowhere/.iolab-1",'
    '"token":"1"}}',
    '{"line":"state","id":1,"state":"applied"}',
    '{"line":"intent","id":2,"change":{"kind":"knob","knob":"scheduler","path":'
    '"/nowhere/queue/scheduler","old":"none","new":"bfq","device":{"name":"loop1","number":"7:1",'
    '"diskseq":"221","loop_run":null}}}',
    '{"line":"state","id":2,"state":"applied"}',
    '{"line":"state","id":2,"state":"restored"}',
)


# --- inputs -------------------------------------------------------------------------------------


@cache
def _studies() -> tuple[str, ...]:
    paths = sorted((ROOT / "examples").rglob("*.toml"))
    texts = [path.read_text() for path in paths if "[[workloads]]" in path.read_text()]
    assert texts, "no study among the examples"
    return tuple(texts)


@cache
def _archive() -> tuple[bytes, Inspection]:
    with TemporaryDirectory(prefix="iolab-fuzz-") as name:
        folder = Path(name)
        silent = Console(io.StringIO(), io.StringIO())
        assert main([*_STUDY, "--out", str(folder / "o")], console=silent) == 0
        path = folder / "o.iolab"
        assert main(["archive", str(folder / "o"), "--out", str(path)], console=silent) == 0
        return path.read_bytes(), read_archive(path)


@cache
def _stack_texts() -> tuple[str, ...]:
    folder = ROOT / "crates" / "iolab-sim" / "profiles"
    return tuple(path.read_text() for path in sorted(folder.glob("*.toml")))


@cache
def _typed_lines() -> tuple[str, ...]:
    folder = ROOT / "examples" / "12-solaris-lines"
    paths = sorted(path for path in folder.iterdir() if path.suffix not in (".md", ".toml"))
    return (*(path.read_text() for path in paths), "".join(path.read_text() for path in paths))


@cache
def _scenario_parts() -> tuple[str, ...]:
    """Texts before the first case, and for each case."""
    text = (GOLDEN / "scheduler" / "scheduler-scenarios.yaml").read_text()
    head, *cases = text.split("\n- id:")
    if not cases:
        head, *cases = text.split("\n  - id:")
        return (head + "\n", *(f"  - id:{case}\n" for case in cases))
    return (head + "\n", *(f"- id:{case}\n" for case in cases))


@cache
def _recordings() -> tuple[tuple[str, str], ...]:
    found = list[tuple[str, str]]()
    for path in sorted((GOLDEN / "dispatch-own").glob("*.csv.gz")):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
        setup = path.with_name(path.name.removesuffix(".csv.gz") + ".json").read_text()
        found.append(("".join(lines[:_RECORDING_LINES]), setup))
    return tuple(found)


def _mutated_toml(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = _with_another_value(rng, text) if rng.random() < 0.6 else mutated_lines(rng, text)
    return text


def _with_another_value(rng: random.Random, text: str) -> str:
    """Another value, of any type, for one of the keys."""
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines) if " = " in line]
    if places:
        at = rng.choice(places)
        lines[at] = f"{lines[at].partition(' = ')[0]} = {rng.choice(_VALUES)}"
    return "\n".join(lines) + "\n"


def _perhaps_flipped(rng: random.Random, content: bytes) -> bytes:
    return flipped(rng, content) if rng.random() < 0.1 else content
