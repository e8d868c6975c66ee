"""Every recorded command of bonnie++, typed to `iolab bonnie++` and compared with the recording.

The same exit class, the same lines in the same columns (numbers and marks masked), the same
settings in the line of results, and nothing left behind but what the shell made. What differs on
purpose stands in `DEVIATIONS` with a part of how it shows; an entry that no longer shows fails.
"""

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "bonnie"
CASES = sorted(path.stem for path in GOLDEN.glob("*.cmd"))
USAGE = "wrong usage gives one message instead of the text of all options"
DEVIATIONS = {
    "bad_suffix_ignored": ("exit", "an unknown unit is refused, not ignored"),
    "chunk_seeks": ("stderr", "a seeker count of one digit is shown, not lost"),
    "csv2txt_old_version": ("stdout", "lines of every version are shown"),
    "direct_D_no_f": ("exit", "the per-character phases are left out, not failed"),
    "err_root_no_u": ("exit", "root need not say -u; a note says so"),
    "f_space_arg": ("stderr", USAGE),
    **{
        name: ("stderr", USAGE)
        for name in CASES
        if name.startswith("err_") and name not in ("err_root_no_u",)
    },
}
"""Case to (what differs, why)."""
SETTINGS = (0, 1, 2, 3, 5, 6, 7, 8, 21, 22, 23, 24, 25)
"""Fields of a line of results that are not measured; 4 is the seed, often another each time."""
_NUMBER = re.compile(r"(?<![\w:/-])[\d.+]+(?:us|ms|[kmgs])?(?![\w:/-])")
_WRAPPER = """\
#!/bin/sh
exec {python} -m iolab.cli --out "$(mktemp -d {stored}/XXXXXX)/run" {dialect} "$@"
"""


@dataclass(frozen=True)
class Ran:
    """Result of a command."""

    code: int
    texts: dict[str, str]
    files: set[str]


@pytest.fixture
def programs(tmp_path):
    """A folder with `bonnie++` and `bon_csv2txt`, which are ours."""
    folder, stored = tmp_path / "bin", tmp_path / "stored"
    folder.mkdir()
    stored.mkdir()
    table = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m iolab.cli bon-csv2txt "$@"\n'
    run = _WRAPPER.format(
        python=shlex.quote(sys.executable), stored=shlex.quote(str(stored)), dialect="bonnie++"
    )
    for name, text in (("bonnie++", run), ("bon_csv2txt", table)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def run(command, programs, place):
    user = pwd.getpwuid(os.geteuid()).pw_name
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.replace("-u root", f"-u {user}")],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    ours = [
        line for line in done.stderr.splitlines() if not line.startswith("iolab: note: it runs")
    ]
    ours = [
        line for line in ours if not line.startswith(("iolab: stored as run", "iolab: note: -"))
    ]
    texts = {"stdout": done.stdout, "stderr": "\n".join(ours)}
    return Ran(done.returncode, texts, {path.name for path in place.iterdir()})


def recorded(name):
    def read(ending):
        path = GOLDEN / f"{name}.{ending}"
        return path.read_text() if path.exists() else ""

    files = {line.split(maxsplit=1)[1] for line in read("files").splitlines()}
    code = int(read("exit").strip().removeprefix("exit=") or 0)
    return Ran(code, {ending: read(ending) for ending in ("stdout", "stderr")}, files)


def shape(text):
    """Lines with numbers and marks as `#`, each with the column in which it ends."""
    lines = []
    for line in text.rstrip().splitlines():
        if line.startswith("1.98,"):
            lines.append(of_result(line))
        elif line.startswith("Latency"):
            # A step of less than a microsecond leaves its column empty.
            lines.append("Latency" if set(ends(line)) <= set(range(26, 77, 10)) else line)
        elif "</" in line:
            lines.append(re.sub(r"[\d.+]+(?:us|ms)?", "#", line))
        elif _NUMBER.search(line):
            words = [(match.end(), "#") for match in _NUMBER.finditer(line)]
            lines.append((_NUMBER.sub("", line).split(), words))
        else:
            lines.append(line.rstrip())
    return sorted(lines, key=str) if "1.98," in text else lines


def ends(line):
    return [match.end() - 1 for match in _NUMBER.finditer(line)]


def of_result(line):
    """Settings of a line of results, and which phases have a rate and a share."""
    fields = line.split(",")
    phases = [bool(field) for field in fields[9:21] + fields[26:38]]
    return ("result", len(fields), [fields[place] for place in SETTINGS], phases)


def differences(ours, theirs):
    found = []
    if (ours.code == 0) != (theirs.code == 0):
        found.append(f"exit {ours.code} instead of {theirs.code}")
    for name, text in ours.texts.items():
        if shape(text) != shape(theirs.texts[name]):
            found.append(f"{name}:\n{shape(text)}\ninstead of\n{shape(theirs.texts[name])}")
    if ours.files != theirs.files:
        found.append(f"files {ours.files} instead of {theirs.files}")
    return found


def test_the_recordings_are_all_there():
    assert len(CASES) == 39
    assert set(DEVIATIONS) <= set(CASES)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", CASES)
def test_a_recorded_command_does_what_was_recorded(tmp_path, programs, name):
    command = (GOLDEN / f"{name}.cmd").read_text().strip()
    if "bon_csv2html" in command and shutil.which("bon_csv2html") is None:
        pytest.skip("bon_csv2html is not installed")
    place = tmp_path / "place"
    place.mkdir()
    theirs = recorded(name)
    if " -m " not in command:
        # The recordings were made on a machine of that name.
        command = command.replace("bonnie++ -d", "bonnie++ -m testhost -d")
    ours = run(command, programs, place)
    found = differences(ours, theirs)
    if name not in DEVIATIONS:
        assert not found, "\n".join([*found, str(ours)])
        return
    where, why = DEVIATIONS[name]
    shown = [text for text in found if text.startswith(where)]
    assert shown, f"no longer deviates: {why}"
    if where == "stderr":
        assert found == shown, "\n".join(found)
