"""Records how the running kernel places files: write patterns on a fresh file system, by FIEMAP.

Needs root. Every pattern of a `.pattern` file runs twice per mount option on a loop device of its
own; a recording that differs between the two is refused. The lines of a pattern are those that
`crates/iolab-files/tests/pattern` reads, so that kernel and model run the same text.

    python tools/record_extents.py --out tests/golden/extents [--only NAME] [--check]
"""

import argparse
import ctypes
import fcntl
import mmap
import os
import platform
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

FS_IOC_FIEMAP: Final = 0xC020660B
"""Linux include/uapi/linux/fs.h."""
FIEMAP_EXTENTS_MAX: Final = 4000
FLAGS: Final = {0x0002: "unknown", 0x0004: "delayed", 0x0800: "unwritten"}
"""Linux include/uapi/linux/fiemap.h."""
PUNCH_HOLE: Final = 0x03
"""FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, Linux include/uapi/linux/falloc.h."""
KEEP_SIZE: Final = 0x01
COLOURS: Final = 16
"""Linux fs/ext4/balloc.c: ext4_inode_to_goal_block colours the goal by the process's id."""
WRITEBACK_CPUS: Final = Path("/sys/devices/virtual/workqueue/writeback/cpumask")
SIZES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def value(text: str, names: Mapping[str, int]) -> int:
    """Value of an expression of numbers, loop variables, `*`, `%`, `+` and `-`."""
    tokens = re.findall(r"\d+[kmg]?|[a-z]\w*|[*%+-]", text)
    if "".join(tokens) != text:
        raise ValueError(f"no expression: {text}")

    def atom(token: str) -> int:
        if token in names:
            return names[token]
        size = SIZES.get(token[-1], 1)
        return int(token.rstrip("kmg")) * size

    total, sign, product, operator = 0, 1, 1, "*"
    for token in tokens:
        if token in "+-":
            total, sign, product, operator = (
                total + sign * product,
                1 if token == "+" else -1,
                1,
                "*",
            )
        elif token in "*%":
            operator = token
        else:
            product = product * atom(token) if operator == "*" else product % atom(token)
    return total + sign * product


def steps(lines: list[str], names: Mapping[str, int] | None = None) -> Iterator[list[str]]:
    """Yield the calls of a pattern with its loops unrolled."""
    names = dict(names or {})
    at = 0
    while at < len(lines):
        words = lines[at].split()
        if words and words[0] == "for":
            depth, end = 1, at + 1
            while depth:
                first = (lines[end].split() or [""])[0]
                depth += (first == "for") - (first == "end")
                end += 1
            for i in range(value(words[2], names)):
                yield from steps(lines[at + 1 : end - 1], {**names, words[1]: i})
            at = end
            continue
        if words and not words[0].startswith("#"):
            yield [
                words[0],
                *(
                    re.sub(r"\{([^}]*)\}", lambda m: str(value(m[1], names)), word)
                    if re.search(r"[a-z]\w*[./{]|^[a-z]\w*$", word) and word not in names
                    else str(value(word, names))
                    for word in words[1:]
                ),
            ]
        at += 1


class Files:
    """Open files of a pattern, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.open: dict[str, int] = {}
        self.buffer = mmap.mmap(-1, 64 << 20)
        for page in range(0, len(self.buffer), mmap.PAGESIZE):
            self.buffer[page] = 1  # A fault amid a write would shorten it, and free new blocks.

    def run(self, call: list[str]) -> None:
        """Make one call."""
        verb, name = call[0], call[1] if len(call) > 1 else ""
        numbers = [int(word) for word in call[2:] if word.isdigit()]
        if verb in ("open", "open-direct"):
            flags = os.O_RDWR | os.O_CREAT | (os.O_DIRECT if verb == "open-direct" else 0)
            self.open[name] = os.open(self.root / name, flags, 0o644)
        elif verb in ("fallocate", "reserve", "punch"):
            mode = {"fallocate": 0, "reserve": KEEP_SIZE, "punch": PUNCH_HOLE}[verb]
            libc_fallocate(self.open[name], mode, *numbers)
        elif verb in ("fsync", "fdatasync"):
            getattr(os, verb)(self.open[name])
        elif verb == "close":
            os.close(self.open.pop(name))
        elif verb == "write":
            view = memoryview(self.buffer)[: numbers[1]]
            assert os.pwritev(self.open[name], [view], numbers[0]) == numbers[1]
        elif verb == "blocks":
            view = memoryview(self.buffer)[:4096]
            for number in numbers:
                assert os.pwritev(self.open[name], [view], number * 4096) == 4096
        else:
            self.run_by_path(verb, name, call)

    def run_by_path(self, verb: str, name: str, call: list[str]) -> None:
        """Make a call that needs no open file."""
        path = self.root / name
        match verb:
            case "sync":
                os.sync()
            case "truncate":
                os.truncate(path, int(call[2]))
            case "unlink":
                path.unlink()
            case "rename":
                path.rename(self.root / call[2])
            case "wait":
                time.sleep(int(name))
            case "mkdir":
                path.mkdir()
            case _:
                raise ValueError(f"no call: {' '.join(call)}")


def libc_fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """Call fallocate(2), which `os` has only without modes."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def extents(path: Path, block: int) -> list[tuple[int, int, int, str]]:
    """Extents of a file in blocks: logical, blocks, physical, state."""
    fd = os.open(path, os.O_RDONLY)
    try:
        start, found = 0, []
        while True:
            head = struct.pack("=QQLLLL", start, 2**64 - 1 - start, 0, 0, FIEMAP_EXTENTS_MAX, 0)
            data = bytearray(head + bytes(56 * FIEMAP_EXTENTS_MAX))
            fcntl.ioctl(fd, FS_IOC_FIEMAP, data)
            count = struct.unpack_from("=L", data, 20)[0]
            if not count:
                break
            for i in range(count):
                logical, physical, length, _, _, flags = struct.unpack_from(
                    "=QQQQQL", data, 32 + 56 * i
                )
                words = [word for bit, word in FLAGS.items() if flags & bit]
                found.append(
                    (
                        logical // block,
                        length // block,
                        physical // block,
                        words[-1] if words else "written",
                    )
                )
                start = logical + length
        return merged(found)
    finally:
        os.close(fd)


def merged(found: list[tuple[int, int, int, str]]) -> list[tuple[int, int, int, str]]:
    """The same extents with neighbours of one state joined: records on disk are of limited size."""
    result: list[tuple[int, int, int, str]] = []
    for logical, blocks, physical, state in found:
        if result:
            last = result[-1]
            if (last[0] + last[1], last[2] + last[1], last[3]) == (logical, physical, state):
                result[-1] = (last[0], last[1] + blocks, last[2], state)
                continue
        result.append((logical, blocks, physical, state))
    return result


def command(*words: str) -> str:
    """Output of a program that must succeed."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def run_pattern(root: Path, lines: list[str]) -> None:
    """Run the calls in a child whose id has the colour 0, on one CPU."""
    while True:
        child = os.fork()
        if child == 0:
            if os.getpid() % COLOURS:
                os._exit(17)
            status = 1
            try:
                os.sched_setaffinity(0, {0})
                files = Files(root)
                for call in steps(lines):
                    files.run(call)
                status = 0
            except Exception as error:
                print(error, file=sys.stderr)
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        if status != 17:
            raise RuntimeError("a call of the pattern failed")


def record(folder: Path, header: Mapping[str, str], lines: list[str], mount: str) -> list[str]:
    """Rows of one pattern with one mount option, on a new file system."""
    image, root = folder / "image", folder / "mount"
    root.mkdir(exist_ok=True)
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(value(header["size"], {}))
    kind = header.get("fs", "ext4")
    command(f"mkfs.{kind}", "-q", *header.get("mkfs", "").split(), str(image))
    loop = command("losetup", "--show", "-f", str(image))
    try:
        rotational = Path(f"/sys/block/{Path(loop).name}/queue/rotational")
        rotational.write_text(header.get("rotational", "1"))
        command("mount", "-t", kind, "-o", mount, loop, str(root))
        try:
            run_pattern(root, lines)
            block = os.statvfs(root).f_bsize
            rows = []
            for path in sorted(p for p in root.rglob("*") if p.is_file()):
                for found in extents(path, block):
                    rows.append(",".join(map(str, (path.relative_to(root), *found))))
            return rows
        finally:
            command("umount", str(root))
    finally:
        command("losetup", "-d", loop)
        image.unlink()


def recorded(path: Path) -> str:
    """Text of the recording of one pattern file."""
    text = path.read_text().splitlines()
    header = dict(
        (part.strip() for part in line[1:].split("=", 1)) for line in text if line.startswith("@")
    )
    lines = [line for line in text if not line.startswith("@")]
    out = [f"# kernel {platform.release().split('-')[0]}, {os.cpu_count()} CPUs, colour 0"]
    out.append("mount,file,logical,blocks,physical,state")
    with tempfile.TemporaryDirectory(prefix="iolab-extents-") as temporary:
        for mount in header["mounts"].split():
            first, second = (record(Path(temporary), header, lines, mount) for _ in range(2))
            if first != second:
                raise RuntimeError(f"{path.stem}, {mount}: two recordings differ")
            out += [f"{mount.replace(',', '+')},{row}" for row in first]
    return "\n".join(out) + "\n"


def main() -> int:
    """Record, or compare with what is recorded."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of patterns and recordings")
    parser.add_argument("--only", default="", help="pattern to record, all without")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    cpus = WRITEBACK_CPUS.read_text()
    failed = 0
    try:
        WRITEBACK_CPUS.write_text("1")
        for path in sorted(options.out.glob("*.pattern")):
            if options.only and path.stem != options.only:
                continue
            try:
                text = recorded(path)
            except RuntimeError as error:
                print(error)
                failed += 1
                continue
            target = path.with_suffix(".csv")
            if not options.check:
                target.write_text(text)
            elif not target.exists() or target.read_text() != text:
                failed += 1
                print(f"{path.stem}: differs")
                continue
            print(f"{path.stem}: {text.count(chr(10)) - 2} extents")
    finally:
        WRITEBACK_CPUS.write_text(cpus)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
