"""Testbeds: what is understood, what is refused and with which exit code."""

import os
from types import SimpleNamespace

import pytest

from iolab.errors import RefusedError, TestbedError
from iolab.study import load
from iolab.testbed.model import (
    DirectoryTestbed,
    LoopTestbed,
    make_testbed,
    with_journal_device,
)


def test_loop_with_and_without_size(tmp_path):
    assert make_testbed("loop", "", {}) == LoopTestbed()
    found = make_testbed("loop", "2048m", {"image_dir": str(tmp_path), "device_count": "2"})
    assert found.text == "loop:2g"
    assert found.request == ("loop", "2g", (("device_count", "2"), ("image_dir", str(tmp_path))))
    assert found.agent_spec() == {
        "kind": "loop",
        "size_bytes": 2 << 30,
        "image_dir": str(tmp_path),
        "device_count": 2,
        "logical_block_bytes": 512,
    }


def test_a_directory_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "scratch").mkdir()
    found = make_testbed("dir", "~/scratch", {"allow_knobs_on": "vda, vdb"})
    assert found == DirectoryTestbed(tmp_path / "scratch", ("vda", "vdb"))
    assert found.agent_spec()["allow_knobs_on"] == ["vda", "vdb"]


@pytest.mark.parametrize(
    ("kind", "argument", "options", "code", "part"),
    [
        ("device", "/nowhere/sdx", {}, 2, "lsblk"),
        ("device", "", {}, 1, "needs a path"),
        ("loop", "1x", {}, 1, "not a size"),
        ("loop", "1g", {"image_dir": "/nowhere"}, 1, "--image-dir /nowhere does not exist"),
        ("loop", "1g", {"device_count": "3"}, 1, "not one of 1, 2"),
        ("loop", "1g", {"allow_knobs_on": "vda"}, 1, "has no allow_knobs_on"),
        ("dir", "", {}, 1, "needs a path"),
        ("dir", "/nowhere/at/all", {}, 1, "mkdir -p"),
        ("dir", "/etc/passwd", {}, 1, "is not a directory"),
        ("dir", "~nobody-like-this/x", {}, 1, "write the whole path"),
        ("/tmp", "", {}, 1, "--on dir:/tmp"),
        ("lop", "1g", {}, 1, "not a kind of testbed"),
    ],
)
def test_refusals(kind, argument, options, code, part):
    with pytest.raises(TestbedError) as caught:
        make_testbed(kind, argument, options)
    assert caught.value.exit_code == code
    assert part in str(caught.value)


def test_an_image_must_hold_the_files():
    LoopTestbed(1 << 30).check_space(512 << 20)
    with pytest.raises(TestbedError, match=r"loop:2g"):
        LoopTestbed(1 << 30).check_space(1 << 30)


@pytest.mark.parametrize(
    ("size_gib", "free_gib", "file_gib", "is_fine"),
    [
        (200, 100, 10, True),
        (200, 100, 81, False),
        (100, 12, 8, False),
        (4, 3, 2, True),
        (4, 1, 0.9, False),
    ],
)
def test_a_directory_keeps_its_reserve(
    tmp_path, monkeypatch, size_gib, free_gib, file_gib, is_fine
):
    status = SimpleNamespace(f_bavail=free_gib << 18, f_blocks=size_gib << 18, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda path: status)
    testbed = DirectoryTestbed(tmp_path)
    if is_fine:
        testbed.check_space(int(file_gib * (1 << 30)))
        return
    with pytest.raises(RefusedError, match="or leave less than"):
        testbed.check_space(int(file_gib * (1 << 30)))


def test_an_external_journal_takes_a_second_device(tmp_path):
    assert with_journal_device(LoopTestbed()).device_count == 2
    directory = DirectoryTestbed(tmp_path)
    assert with_journal_device(directory) is directory


def test_places_are_testbeds_of_their_own(tmp_path):
    request = load.testbed_request(f"loop:64m,backup=loop:1g:ext2,log=dir:{tmp_path}")
    found = make_testbed(request.kind, request.argument, dict(request.options))
    assert found.text == f"loop:64m,backup=loop:1g:ext2,log=dir:{tmp_path}"
    kind, argument, options = found.request
    assert make_testbed(kind, argument, dict(options)) == found, "what is stored is the same again"
    spec = found.agent_spec()
    assert (spec["kind"], spec["main"]["size_bytes"]) == ("places", 64 << 20)
    backup, log = spec["others"]
    assert (backup["name"], backup["stack"]["fs"]) == ("backup", "ext2")
    assert (log["testbed"]["kind"], log["stack"]) == ("directory", None)


def test_a_comma_in_a_path_separates_nothing(tmp_path):
    folder = tmp_path / "a,b"
    folder.mkdir()
    assert load.testbed_request(f"dir:{folder}").argument == str(folder)


@pytest.mark.parametrize(
    ("named", "message", "hint"),
    [
        ("/dev/nosuch", "there is no /dev/nosuch", "`lsblk` lists the disks"),
        ("/dev/null", "/dev/null is not a kind of testbed", "--on device:/dev/null measures"),
    ],
)
def test_a_device_without_a_word_is_told_what_to_write(named, message, hint):
    """``--on /dev/nosuch`` was advised to become ``--on dir:/dev/nosuch``."""
    with pytest.raises(TestbedError) as caught:
        make_testbed(named, "", {})
    assert message in str(caught.value)
    assert hint in str(caught.value.hint)
