"""Questions before a device is erased or worn; what is typed is given by the tests."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.cli import console as console_module
from iolab.cli.console import Console
from iolab.errors import IolabError, RefusedError, StudyError, TestbedError
from iolab.run.confirm import (
    Device,
    Wear,
    check_key,
    confirm_erasure,
    confirm_wear,
)
from iolab.run.options import RunOptions
from iolab.run.wear import ENDS_BYTES, History
from iolab.run.writes import wear_of
from iolab.study.load import parse_study
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.model import make_testbed

MIB = 1 << 20
TIB = 1 << 40
SSD = Device(
    node="/dev/nvme1n1",
    serial="S5GXNF0R",
    serial_is="serial",
    model="Samsung SSD 990 PRO",
    size_bytes=TIB,
    phrase="ERASE S5GXNF0R Samsung SSD 990 PRO",
    is_confirmed=False,
    is_rotational=False,
    rated_bytes=None,
)
STUDY = """
name = "device"
testbed = {{ kind = "device", path = "/dev/null"{options} }}
rounds = 3
[factors]
scheduler = ["none", "mq-deadline"]
[settings]
{settings}
[[workloads]]
kind = "iozone"
name = "iozone"
tests = ["write"]
"""


class Terminal(io.StringIO):
    """Standard input with somebody in front of it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(said: io.StringIO) -> Console:
    return Console(out=io.StringIO(), err=said)


def type_in(monkeypatch: pytest.MonkeyPatch, text: str, *, is_terminal: bool = True) -> None:
    stdin = Terminal(text) if is_terminal else io.StringIO(text)
    monkeypatch.setattr(console_module.sys, "stdin", stdin)


def test_the_phrase_of_this_device_confirms(
    monkeypatch: pytest.MonkeyPatch, console: Console, said: io.StringIO
) -> None:
    type_in(monkeypatch, "  ERASE S5GXNF0R   Samsung SSD 990 PRO\n")
    assert confirm_erasure(SSD, None, console) == "S5GXNF0R"
    for text in ("990 PRO", "S5GXNF0R", "1 TiB", "1099511627776", "EVERYTHING"):
        assert text in said.getvalue(), text


@pytest.mark.parametrize("typed", ["", "\n", "y\n", "yes\n", "S5GXNF0R\n", "ERASE S5GXNF0S\n"])
def test_nothing_else_does(monkeypatch: pytest.MonkeyPatch, console: Console, typed: str) -> None:
    type_in(monkeypatch, typed)
    with pytest.raises(RefusedError, match="not the phrase"):
        confirm_erasure(SSD, None, console)


def test_a_pipe_is_nobody(monkeypatch: pytest.MonkeyPatch, console: Console) -> None:
    type_in(monkeypatch, SSD.phrase + "\n", is_terminal=False)
    with pytest.raises(RefusedError, match="no terminal") as refused:
        confirm_erasure(SSD, None, console)
    assert "--erase-serial S5GXNF0R" in refused.value.hint


def test_the_flag_must_be_right_even_if_a_study_of_today_was_confirmed(console: Console) -> None:
    confirmed = replace(SSD, is_confirmed=True)
    assert confirm_erasure(confirmed, None, console) is None
    assert confirm_erasure(confirmed, "S5GXNF0R", console) == "S5GXNF0R"
    with pytest.raises(RefusedError, match="990 PRO S5GXNF0R"):
        confirm_erasure(confirmed, "S5GXNF0S", console)


STORED = "9 of 286 samples are not blank: something is stored here"


def test_what_is_stored_between_blank_ends_is_told_before_the_phrase(
    monkeypatch: pytest.MonkeyPatch, console: Console, said: io.StringIO
) -> None:
    type_in(monkeypatch, SSD.phrase + "\n")
    confirm_erasure(replace(SSD, stored=STORED), None, console)
    text = said.getvalue()
    assert 0 < text.index(f"WARNING {STORED}") < text.index("to go on, type")


def test_what_is_stored_is_told_even_if_the_flag_confirms(
    console: Console, said: io.StringIO
) -> None:
    confirm_erasure(SSD, "S5GXNF0R", console)
    assert "warning" not in said.getvalue()
    confirm_erasure(replace(SSD, stored=STORED), "S5GXNF0R", console)
    assert STORED in said.getvalue()


def test_a_study_file_must_name_the_serial() -> None:
    testbed = DeviceTestbed(Path("/dev/null"))
    check_key(testbed, SSD, is_from_file=False)
    with pytest.raises(RefusedError) as refused:
        check_key(testbed, SSD, is_from_file=True)
    assert 'allow_destructive = "S5GXNF0R"' in refused.value.hint
    check_key(replace(testbed, allow_destructive="S5GXNF0R"), SSD, is_from_file=True)
    for is_from_file in (True, False):
        with pytest.raises(RefusedError, match="S5GXNF0S"):
            check_key(
                replace(testbed, allow_destructive="S5GXNF0S"), SSD, is_from_file=is_from_file
            )


@pytest.mark.parametrize(
    ("device", "planned", "is_asked"),
    [
        (SSD, 2 * TIB, False),
        (SSD, 2 * TIB + 1, True),
        (replace(SSD, rated_bytes=600 * TIB), 6 * TIB, False),
        (replace(SSD, rated_bytes=600 * TIB), 7 * TIB, True),
        (replace(SSD, is_rotational=True), 1000 * TIB, False),
    ],
)
def test_wear_is_asked_above_one_percent(device: Device, planned: int, is_asked: bool) -> None:
    assert Wear(planned, device).is_asked == is_asked


def test_wear_is_agreed_to_by_amount(
    monkeypatch: pytest.MonkeyPatch, console: Console, said: io.StringIO
) -> None:
    wear = Wear(3 * TIB, SSD)
    assert confirm_wear(wear, 4 * TIB, console) == 4 * TIB
    type_in(monkeypatch, "WRITE 3TiB\n")
    assert confirm_wear(wear, 3 * TIB - 1, console) == 3 * TIB
    assert "about 3 TiB are written in all, 3 times the device (an estimate" in said.getvalue()
    assert "1.50% of 200 drive writes" in said.getvalue()
    assert "it is stopped when 3 TiB are written" in said.getvalue()
    type_in(monkeypatch, "yes\n")
    with pytest.raises(RefusedError, match="phrase"):
        confirm_wear(wear, None, console)
    type_in(monkeypatch, "", is_terminal=False)
    with pytest.raises(RefusedError) as refused:
        confirm_wear(wear, None, console)
    assert f"--accept-writes {3 * TIB}" in refused.value.hint


def test_what_nobody_was_asked_about_is_limited_too(console: Console) -> None:
    assert confirm_wear(Wear(TIB, SSD), None, console) == 2 * TIB, "one percent of 200 TiB"
    assert confirm_wear(Wear(TIB, SSD), MIB, console) == MIB, "the user's own word is less"
    disc = replace(SSD, is_rotational=True)
    assert confirm_wear(Wear(TIB, disc), None, console) is None
    assert confirm_wear(Wear(TIB, disc), MIB, console) == MIB


def test_what_earlier_starts_wrote_counts(console: Console, said: io.StringIO) -> None:
    wear = Wear(TIB, SSD, earlier_bytes=3 * MIB)
    with pytest.raises(RefusedError, match="3145728 bytes already") as refused:
        confirm_wear(wear, 3 * MIB, console)
    assert f"--accept-writes {TIB}" in refused.value.hint
    assert "3 MiB of them by earlier starts" in said.getvalue()


def test_many_times_a_device_is_a_plain_number() -> None:
    small = replace(SSD, size_bytes=MIB)
    assert "570 times the device" in Wear(570 * MIB, small).describe()
    many = re.sub(r"\s", " ", Wear(690_000 * MIB, small).describe())
    assert "690 000 times the device" in many
    assert "345 000.00%" in many


def test_a_size_that_is_none_is_a_wrong_option() -> None:
    with pytest.raises(IolabError, match="--accept-writes") as wrong:
        _ = RunOptions(accept_writes="much").accepted_bytes
    assert wrong.value.exit_code == 1


def test_a_path_where_nothing_lies_is_refused_as_any_other_that_is_no_device() -> None:
    with pytest.raises(RefusedError, match="does not exist") as refused:
        make_testbed("device", "/dev/nosuch", {})
    assert refused.value.exit_code == 2


def test_planned_writes_are_those_of_all_rounds_and_of_preconditioning() -> None:
    plan = make_plan(parse_study(STUDY.format(options="", settings="")).with_seed(1))
    testbed = DeviceTestbed(Path("/dev/null"))
    once = wear_of(plan, testbed, SSD, History())
    assert once.planned_bytes == 3 * plan.round_cost().written_bytes + ENDS_BYTES
    assert once.describe().startswith("at most "), "raw, whole files"
    full = wear_of(plan, replace(testbed, precondition="fill2x"), SSD, History())
    assert full.planned_bytes == once.planned_bytes + 2 * TIB


def test_a_device_study_is_read_and_rendered() -> None:
    options = ', allow_destructive = "S 1", precondition = "random", precondition_round = "30s"'
    study = parse_study(STUDY.format(options=options, settings=""))
    request = study.testbed
    testbed = make_testbed(request.kind, request.argument, dict(request.options))
    assert isinstance(testbed, DeviceTestbed)
    assert (testbed.precondition, testbed.precondition_round_ns) == ("random", 30_000_000_000)
    assert (testbed.allow_destructive, testbed.erase_serial) == ("S 1", None)
    canonical = replace(study, testbed=TestbedRequest(*testbed.request)).with_seed(1)
    assert parse_study(spec_toml(canonical)) == canonical


def test_a_device_is_raw_unless_a_file_system_is_named() -> None:
    plan = make_plan(parse_study(STUDY.format(options="", settings="")).with_seed(1))
    assert {treatment.effective["fs"] for treatment in plan.treatments} == {"none"}
    text = STUDY.format(options="", settings='fs = "xfs"')
    plan = make_plan(parse_study(text).with_seed(1))
    assert {treatment.effective["fs"] for treatment in plan.treatments} == {"xfs"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("direct = false", "direct I/O only"),
        ('cache = "warm"', "has no cache"),
        ('mkfs_options = "-b 1024"', "without a file system"),
        ('mount_options = "noatime"', "without a file system"),
        ("external_journal = true", "no second device"),
    ],
)
def test_what_a_raw_device_cannot_do_is_said_before_anything_is_touched(
    settings: str, said: str
) -> None:
    with pytest.raises(StudyError, match=said):
        make_plan(parse_study(STUDY.format(options="", settings=settings)).with_seed(1))


def test_a_loop_device_is_never_raw() -> None:
    text = STUDY.format(options="", settings='fs = "none"')
    text = text.replace('{ kind = "device", path = "/dev/null" }', '"loop:1g"')
    with pytest.raises(StudyError, match="device:/dev/DISK"):
        make_plan(parse_study(text).with_seed(1))


@pytest.mark.parametrize(
    ("argument", "options", "said"),
    [
        ("", {}, "needs a path"),
        ("/nowhere/sdx", {}, "does not exist"),
        ("/dev/null", {"precondition": "purge"}, "none, fill, fill2x, random"),
        ("/dev/null", {"precondition_round": "soon"}, "precondition_round"),
        ("/dev/null", {"erase_serial": "S1"}, "has no erase_serial"),
        ("/dev/null", {"image_dir": "/tmp"}, "has no image_dir"),
    ],
)
def test_wrong_testbeds_say_what_is_wrong(
    argument: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(TestbedError) as wrong:
        make_testbed("device", argument, options)
    assert said in str(wrong.value)
