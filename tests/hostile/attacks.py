"""The attacks, as data: what is asked, and what must not come of it.

Each was possible, or was thought of when the ones before it had been closed. All but the last
request of an attack are granted: they are the way to it. The last one must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .arena import ALICE, GUARD, HOMES, MALLORY
from .requests import (
    Request,
    device,
    directory,
    hello,
    logging,
    loop,
    made,
    mounted,
    replaying,
    stack,
    trial,
    workload,
    writing,
)

MINE: Final = f"{HOMES}/{MALLORY}"
ALICES: Final = f"{HOMES}/{ALICE}"
REFUSED: Final = frozenset({"refused", "usage"})


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack through the protocol."""

    name: str
    harm: str
    """Harm that must not happen."""
    requests: tuple[Request, ...]
    """After `hello`, or with their own."""
    codes: frozenset[str] = REFUSED
    """Codes with which the last one may be answered."""
    plant: str = ""
    """Preparations of mallory, as a shell script."""


def _greeting(name: str, harm: str, **changed: Any) -> Attack:
    return Attack(name, harm, (hello(**changed),))


def _opening(name: str, harm: str, *requests: Request, plant: str = "") -> Attack:
    return Attack(name, harm, (hello(), *requests), plant=plant)


def _trial(name: str, harm: str, request: Request, plant: str = "") -> Attack:
    return Attack(name, harm, (request,), plant=plant)


GREETINGS: Final = (
    _greeting("state_dir in /etc", "a journal, then files there", state_dir="/etc/iolab-state"),
    _greeting("state_dir of mallory", "journals of mallory's are believed", state_dir="/tmp"),
    _greeting("state_dir relative", "the same", state_dir="../../tmp"),
    _greeting("run climbs", "a journal outside", run="../../../etc/cron.d/x"),
    _greeting("run with a slash", "a journal outside", run="a/b-c-d"),
    _greeting("run with a NUL", "a name cut short", run="abcd\0.jsonl"),
    _greeting("run empty", "the folder itself", run=""),
    _greeting("run dots", "the folder above", run="...."),
    _greeting("run long", "a name without end", run="a" * 4096),
    _greeting("protocol of tomorrow", "a guess", protocol=1 << 40),
    _greeting("protocol negative", "a guess", protocol=-1),
    _greeting("policy in the request", "a policy of mallory's", policy="/tmp/agent.toml"),
    _greeting("boundary off", "no boundary", boundary=None),
)

_SWAP = "rm -f /var/tmp/{0}; ln -s {1} /var/tmp/{0}"

TESTBEDS: Final = (
    _opening("directory of root", "writes there", directory(f"{GUARD}/roots")),
    _opening("directory of alice", "writes there", directory(f"{GUARD}/alices")),
    _opening("directory for all", "class A+ unasked", directory(f"{GUARD}/open")),
    _opening("own directory", "class A+ unasked", directory(MINE)),
    _opening(
        "own directory is a link",
        "writes in root's",
        directory(f"{MINE}/link"),
        plant=f"ln -sfn {GUARD}/roots {MINE}/link",
    ),
    _opening("in place at alice's", "her file", directory(f"{GUARD}/alices", in_place=True)),
    _opening("in place in /etc", "passwd", directory("/etc", in_place=True)),
    _opening(
        "scratch of alice's",
        "recursive removal",
        directory(f"{GUARD}/alices", in_place=True, scratch=["Bonnie.4711"]),
    ),
    _opening(
        "scratch climbs",
        "recursive removal",
        directory(MINE, in_place=True, scratch=["Bonnie.1/../../../usr/local/guard"]),
    ),
    _opening(
        "knobs of the system's disk",
        "its scheduler",
        directory(MINE, allow_knobs_on=["vda", "sda", "nvme0n1"]),
    ),
    _opening("directory /proc", "kernel files", directory("/proc/sys", in_place=True)),
    _opening("directory /sys", "kernel files", directory("/sys", in_place=True)),
    _opening("whole device", "erased", device("/dev/vda", erase_serial="")),
    _opening(
        "whole device in a rehearsal", "its serial", hello(is_dry_run=True), device("/dev/vda")
    ),
    _opening("device is a loop control", "control", device("/dev/loop-control")),
    _opening(
        "device through a link",
        "erased",
        device(f"{MINE}/disk", erase_serial="x"),
        plant=f"ln -sfn /dev/vda {MINE}/disk",
    ),
    _opening("device protects by reading", "names", device("/dev/null", protected=["/etc/shadow"])),
    _opening("images in /etc", "files there", loop(image_dir="/etc")),
    _opening("images in /", "files there", loop(image_dir="/")),
    _opening("images climb", "files in /etc", loop(image_dir="/var/tmp/../../etc")),
    _opening("images in /tmp", "not in the policy", loop(image_dir="/var/tmp/../../tmp")),
    _opening("images in own folder", "not in the policy", loop(image_dir=MINE)),
    _opening("images at alice's", "files there", loop(image_dir=ALICES)),
    _opening("images in a device folder", "files there", loop(image_dir="/dev/shm")),
    _opening("images relative", "files in root's", loop(image_dir="var/tmp")),
    _opening("images with a NUL", "a name cut short", loop(image_dir="/var/tmp\0/x")),
    _opening(
        "images through a link",
        "files in /etc",
        loop(image_dir="/var/tmp/link-to-etc"),
        plant=_SWAP.format("link-to-etc", "/etc"),
    ),
    _opening(
        "images through a link's parent",
        "files in /etc",
        loop(image_dir="/var/tmp/link-to-root/etc"),
        plant=_SWAP.format("link-to-root", "/"),
    ),
    _opening("an exbibyte", "the disk is full", loop(size_bytes=1 << 60)),
    _opening("more than the policy has", "the disk is full", loop(size_bytes=(64 << 30) + 4096)),
    _opening("sizes that wrap", "a size beyond checks", loop(size_bytes=(1 << 64) - 4096)),
    _opening("two that wrap", "the same", loop(size_bytes=(1 << 64) - 4096, device_count=2)),
    _opening("size negative", "the same", loop(size_bytes=-4096)),
    _opening("size a fraction", "the same", loop(size_bytes=67108864.5)),
    _opening("a thousand devices", "numbers without end", loop(device_count=1000)),
    _opening("no device", "nothing to own", loop(device_count=0)),
    _opening("blocks of nothing", "a division", loop(logical_block_bytes=0)),
    _opening("a field more", "a guess", loop(backing_file="/etc/passwd")),
    _opening("kind unknown", "a guess", ("open_testbed", {"kind": "../loop"})),
    _opening("kind missing", "a guess", ("open_testbed", {})),
    _opening("params are a list", "a guess", ("open_testbed", [1, 2])),
)

_WAIT = {"kind": "semaphores", "numbers": {"write": 0}}

TRIALS: Final = (
    _trial("trial climbs", "files outside", trial(trial="../../etc/cron.d/x")),
    _trial("trial is absolute", "files outside", trial(trial="/etc/cron.d/x")),
    _trial(
        "phase climbs",
        "files outside",
        logging("log", phase="../../../../../etc/x"),
    ),
    _trial(
        "phase climbs, log in its own folder",
        "files outside",
        logging(".", phase="../x"),
    ),
    _trial("operations into /etc", "files there", logging("/etc")),
    _trial("operations into alice's", "files there", logging(f"{GUARD}/alices")),
    _trial("operations into open", "through a link", logging(f"{GUARD}/open")),
    _trial("operations climb", "files outside", logging("../../../etc")),
    _trial(
        "operations through mallory's link",
        "files in /etc",
        logging(f"{MINE}/logs"),
        plant=f"ln -sfn /etc {MINE}/logs",
    ),
    _trial("file absolute", "it is overwritten", writing(file=f"{GUARD}/secret")),
    _trial("file absolute, as listed", "the same", writing(files=[f"{GUARD}/secret"])),
    _trial("file climbs", "the same", writing(file="../../usr/local/guard/secret")),
    _trial("file climbs, as listed", "the same", writing(files=["../../etc/passwd"])),
    _trial("file climbs from below", "the same", writing(file="x/../../../etc/passwd")),
    _trial("file is the folder", "the same", writing(file="..")),
    _trial("file with a NUL", "a name cut short", writing(file="data\0x")),
    _trial(
        "file absolute, only read",
        "its blocks are measured",
        writing(file="/etc/shadow", direction={"kind": "read"}, opening="existing"),
    ),
    _trial(
        "a set of files climbs",
        "files outside",
        writing(
            file="../../usr/local/guard",
            file_set={
                "action": "remove",
                "order": "sequential",
                "files": 4,
                "directories": 1,
                "size_min_bytes": 0,
                "size_max_bytes": 0,
                "link": "none",
                "is_flushed": False,
            },
        ),
    ),
    _trial("measured as root by number", "root", trial(run_as={"uid": 0, "gid": 0, "groups": [0]})),
    _trial(
        "measured as alice",
        "alice",
        trial(run_as={"uid": 61002, "gid": 61002, "groups": [61002]}),
    ),
    _trial(
        "measured with root's group",
        "a group of root's",
        trial(run_as={"uid": 61001, "gid": 61001, "groups": [61001, 0]}),
    ),
    _trial(
        "measured with the group of disks",
        "all devices",
        trial(run_as={"uid": 61001, "gid": 6, "groups": [6]}),
    ),
    _trial("knob climbs", "kernel files", trial(knobs={"../../../kernel/core_pattern": "|/x"})),
    _trial("knob of vm", "of the whole machine", trial(knobs={"vm.dirty_ratio": "1"})),
    _trial("knob of vm unlisted", "the same", trial(knobs={"vm.overcommit_memory": "2"})),
    _trial("knob of the processor", "the same", trial(knobs={"cpu.governor": "powersave"})),
    _trial("knob of another device", "vda's", trial(knobs={"vda.scheduler": "none"})),
    _trial("tunable climbs", "kernel files", trial(knobs={"bfq.../../../x": "1"})),
    _trial("value with a line", "two values", trial(knobs={"scheduler": "none\nbfq"})),
    _trial("value is a path", "a module is loaded", trial(knobs={"scheduler": "../../x"})),
    _trial(
        "knob of vm in the middle",
        "of the whole machine",
        trial(changes=[{"at_ns": 1, "knobs": {"vm.dirty_ratio": "1"}}]),
    ),
    _trial(
        "weight beyond all",
        "everybody else waits",
        trial(io_groups=[{"tenants": ["main"], "weight": (1 << 32) - 1}]),
    ),
    _trial("file system is a path", "a program of mallory's", trial(stack=stack(fs="../../tmp/x"))),
    _trial(
        "file system of mallory's",
        "the same",
        trial(stack=stack(fs="evil")),
        plant="printf '#!/bin/sh\\ntouch /etc/evil\\n' > /tmp/mkfs.evil; chmod 755 /tmp/mkfs.evil",
    ),
    _trial("file system of the net", "a mount from outside", trial(stack=stack(fs="nfs"))),
    _trial("file system proc", "kernel files", trial(stack=stack(fs="proc"))),
    _trial("mkfs -d", "reads a tree of root's", made("-d", "/etc")),
    _trial("mkfs -d attached", "the same", made("-d/etc")),
    _trial("recorded stream of root's", "reads a file of root's", replaying("/etc/shadow")),
    _trial("recorded stream of a device", "waits, or worse", replaying("/dev/zero")),
    _trial(
        "recorded stream by descriptor",
        "reads what root has open",
        replaying("/proc/self/fd/0"),
    ),
    _trial("mkfs -l", "reads a file of root's", made("-l", "/etc/shadow")),
    _trial("mkfs -z", "writes a file", made("-z", "/etc/undo")),
    _trial("mkfs -z relative", "writes a file in /", made("-z", "safety-undo")),
    _trial("mkfs -J device", "another device", made("-J", "device=/dev/vda")),
    _trial("mkfs -O journal_dev", "another thing than asked", made("-O", "journal_dev")),
    _trial("mkfs another device", "erased", made("/dev/vda")),
    _trial("mkfs no more options", "erased", made("--", "/dev/vda")),
    _trial("mkfs twice", "an option within", made("-m", "0 -z /etc/undo")),
    _trial("mkfs -E tricks", "a file elsewhere", made("-E", "offset=1048576")),
    _trial("mkfs.btrfs --rootdir", "reads a tree", made("--rootdir", "/etc", fs="btrfs")),
    _trial("mkfs.btrfs -r", "reads a tree", made("-r", "etc", fs="btrfs")),
    _trial("mkfs.xfs -p", "reads a file", made("-p", "/etc/shadow", fs="xfs")),
    _trial("mkfs.xfs -c", "reads a file", made("-c", "options=/etc/shadow", fs="xfs")),
    _trial("mkfs.xfs -l logdev", "another device", made("-l", "logdev=/dev/vda", fs="xfs")),
    _trial("mount X-mount.subdir", "another disk", mounted("X-mount.subdir=lost+found")),
    _trial("mount X-mount.mkdir", "folders", mounted("X-mount.mkdir=0777")),
    _trial("mount x-anything", "what a helper makes of it", mounted("x-systemd.automount")),
    _trial("mount bind", "the host's files", mounted("bind")),
    _trial("mount remount", "the host's root", mounted("remount")),
    _trial("mount move", "the host's mounts", mounted("move")),
    _trial("mount shared", "what is seen outside", mounted("shared")),
    _trial("mount suid", "programs of root", mounted("suid")),
    _trial("mount dev", "devices", mounted("dev")),
    _trial("mount errors=panic", "the machine dies", mounted("errors=panic")),
    _trial("mount loop", "another loop device", mounted("loop=/dev/loop0")),
    _trial("mount journal_path", "another device", mounted("journal_path=/dev/vda")),
    _trial("mount two in one", "one within", mounted("noatime,errors=panic")),
    _trial("mount helper", "a program", mounted("helper=evil")),
    _trial("mount context", "labels", mounted("rootcontext=x")),
    _trial("mount uid", "what is not ext4's", mounted("usrquota=../../etc/x")),
    _trial(
        "journal that is not there", "another device", trial(stack=stack(has_external_journal=True))
    ),
    _trial("memory of nothing", "a group that kills", trial(memory_limit_bytes=0)),
    _trial("a field more in a trial", "a guess", trial(command="/bin/sh")),
    _trial("workload of tomorrow", "a guess", trial(workload={**workload(), "version": 2})),
    _trial("workload is a text", "a guess", trial(workload="rm -rf /")),
    _trial("phase has a device", "vda", writing(device={"node": "/dev/vda"})),
    Attack(
        "engine is a path",
        "a library",
        (trial(workload={**workload(), "engine": "/tmp/x.so"}),),
        codes=REFUSED | {"failed_trial"},
    ),
    _trial("a mebibyte of workers", "the machine's processes", writing(workers=1 << 20)),
    _trial("a depth without end", "the machine's memory", writing(depth=(1 << 32) - 1)),
    _trial("files beyond the policy", "the disk is full", writing(file_bytes=1 << 50)),
    _trial("a record of an exbibyte", "the machine's memory", writing(io_size_bytes=1 << 60)),
    _trial(
        "runs before everybody else",
        "the machine's processors",
        trial(workload=workload(manner={"nice": -20})),
    ),
    _trial(
        "does I/O before everybody else",
        "the machine's disks",
        writing(priority={"class": "rt", "level": 0}),
    ),
    _trial("waits for semaphores of others", "waits for ever", trial(waits=_WAIT)),
    _trial("proceeds to a second testbed", "two at once", loop()),
    _trial("greets again while open", "another run's journal", hello(run="hostile-2")),
)

WIDE_POLICY: Final = f"""\
classes = ["A+", "B"]
directories = ["{GUARD}", "{HOMES}", "/tmp"]
knobs = ["device"]
"""
"""Policy that a generous administrator might write; the attacks below are tried under it."""

_OWN = directory(MINE)
_IN_PLACE = directory(MINE, in_place=True)
_PLAIN = {"stack": None, "is_fresh_fs": False}


def _own_trial(name: str, harm: str, testbed: Request, **changed: Any) -> Attack:
    codes = REFUSED | {"failed_trial", "failed"}
    return Attack(name, harm, (hello(), testbed, trial(**_PLAIN, **changed)), codes=codes)


def _wide(name: str, harm: str, testbed: Request, plant: str = "") -> Attack:
    return Attack(name, harm, (hello(), testbed), codes=REFUSED | {"failed"}, plant=plant)


WIDE: Final = (
    _wide("in root's closed directory", "writes there", directory(f"{GUARD}/roots")),
    _wide("in alice's", "writes there", directory(f"{GUARD}/alices")),
    _wide("in alice's home", "writes there", directory(ALICES)),
    _wide("in /etc, not listed", "writes there", directory("/etc")),
    _wide("climbing from a listed one", "writes there", directory(f"{MINE}/../../etc")),
    _wide(
        "own link to root's",
        "writes there",
        directory(f"{MINE}/to-roots"),
        plant=f"ln -sfn {GUARD}/roots {MINE}/to-roots",
    ),
    _wide(
        "own link to /etc",
        "writes there",
        directory(f"{MINE}/to-etc", in_place=True),
        plant=f"ln -sfn /etc {MINE}/to-etc",
    ),
    _wide(
        "scratch of alice's, listed",
        "recursive removal",
        directory(f"{GUARD}/alices", in_place=True, scratch=["Bonnie.4711"]),
    ),
    _wide("scratch that climbs", "removal", directory(MINE, in_place=True, scratch=["../alice"])),
    _wide(
        "scratch that is a link",
        "recursive removal through it",
        directory(MINE, in_place=True, scratch=["Bonnie.4712"]),
        plant=f"ln -sfn {GUARD}/alices {MINE}/Bonnie.4712",
    ),
    _wide(
        "knobs of a device not listed",
        "its scheduler",
        directory(MINE, allow_knobs_on=["vda", "sda", "nvme0n1"]),
    ),
    _own_trial(
        "in place in alice's",
        "her file",
        directory(f"{GUARD}/alices", in_place=True),
        workload=workload(files=["file"]),
    ),
    _own_trial(
        "in place, a file of root's",
        "it is overwritten",
        _IN_PLACE,
        workload=workload(files=[f"{GUARD}/secret"]),
    ),
    _own_trial(
        "in place, a file of alice's",
        "it is overwritten",
        _IN_PLACE,
        workload=workload(files=[f"{ALICES}/file"]),
    ),
    _own_trial(
        "in place, through mallory's link",
        "root's file is overwritten",
        _IN_PLACE,
        workload=workload(files=["to-secret"], opening="keep"),
    ),
    _own_trial(
        "own directory, root's log",
        "files in /etc",
        _OWN,
        workload=workload(manner={"op_log": "/etc"}),
    ),
    _own_trial(
        "own directory, alice's log",
        "files there",
        _OWN,
        workload=workload(manner={"op_log": f"{GUARD}/alices"}),
    ),
    _own_trial("own directory, as root", "root", _OWN, run_as={"uid": 0, "gid": 0, "groups": [0]}),
    _own_trial("own directory, vm knob", "everybody's", _OWN, knobs={"vm.dirty_ratio": "1"}),
    _own_trial("own directory, system's knob", "vda's", _OWN, knobs={"scheduler": "none"}),
)
WIDE_PLANT: Final = f"ln -sfn {GUARD}/secret {MINE}/to-secret"
"""Links that mallory lays out before these."""

AFTERWARDS: Final = (
    Attack("restore climbs", "a journal outside", (hello(), ("restore", {"run": "../../x"}))),
    Attack("restore with a field more", "a guess", (hello(), ("restore", {"run": None, "as": 0}))),
    Attack("trial without a testbed", "a guess", (hello(), trial())),
    Attack("testbed before hello", "no journal", (loop(),)),
    Attack("close without a testbed", "a guess", (hello(), ("close_testbed", {}))),
    Attack("method unknown", "a guess", (hello(), ("exec", {"command": "id"}))),
)
