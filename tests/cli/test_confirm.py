"""What is asked before a device is erased or worn; what is typed is given by the tests."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.cli import confirm
from iolab.cli.confirm import Device, Wear, check_key, confirm_erasure, confirm_wear
from iolab.cli.console import Console
from iolab.errors import RefusedError, StudyError, TestbedError
from iolab.study.load import parse_study
from iolab.study.model import TestbedRequest
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml
from iolab.testbed.device import DeviceTestbed
from iolab.testbed.model import make_testbed

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
    monkeypatch.setattr(confirm.sys, "stdin", stdin)


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
    confirm_wear(wear, 3 * TIB, console)
    type_in(monkeypatch, "WRITE 3TiB\n")
    confirm_wear(wear, 3 * TIB - 1, console)
    assert "3 times the device (1.50% of 200 drive writes" in said.getvalue()
    type_in(monkeypatch, "yes\n")
    with pytest.raises(RefusedError, match="phrase"):
        confirm_wear(wear, None, console)
    type_in(monkeypatch, "", is_terminal=False)
    with pytest.raises(RefusedError) as refused:
        confirm_wear(wear, None, console)
    assert f"--accept-writes {3 * TIB}" in refused.value.hint


def test_planned_writes_are_those_of_all_rounds_and_of_preconditioning() -> None:
    plan = make_plan(parse_study(STUDY.format(options="", settings="")).with_seed(1))
    testbed = DeviceTestbed(Path("/dev/null"))
    once = confirm.planned_bytes(plan, testbed, TIB)
    assert once == 3 * plan.round_cost().written_bytes > 0
    full = replace(testbed, precondition="fill2x")
    assert confirm.planned_bytes(plan, full, TIB) == once + 2 * TIB


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
