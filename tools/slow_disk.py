"""Run a command beside a loop device that is as slow as a disk: where schedulers matter.

Needs root. The device lies over the file of tools/slow_file.py (512 MiB; one head, seek, rotation
and transfer five times as fast as those of a 7200 rpm disk) and says that it is rotational. The
command finds its name in SLOW_DISK and its serial in SLOW_DISK_SERIAL; device, mount and server are
removed when it ends, and this program ends as it did. With SLOW_DISK_REQUEST_NS in the environment
every request takes so many nanoseconds instead.

    python tools/slow_disk.py sh -c 'iolab compare --on device:$SLOW_DISK ...'
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_PATIENCE_S = 10.0
"""A loop device that somebody glances at is detached when he closes it."""


@contextmanager
def attached(path: Path) -> Iterator[Path]:
    """Node of a loop device over a file; it is gone when this ends.

    A device of the kernel's choice may still be leaving somebody else: it is taken only when it
    shows this file.
    """
    end = time.monotonic() + _PATIENCE_S
    while True:
        command = ["losetup", "--find", "--show", str(path)]
        made = subprocess.run(command, check=False, capture_output=True, text=True)
        device = Path(made.stdout.strip())
        shown = Path("/sys/block") / device.name / "loop/backing_file"
        if made.returncode == 0 and shown.exists() and Path(shown.read_text().strip()) == path:
            break
        if time.monotonic() > end:
            raise SystemExit(f"no loop device could be attached: {made.stderr.strip()}")
        time.sleep(0.1)
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", str(device)], check=False)
        end = time.monotonic() + _PATIENCE_S
        while shown.exists() and time.monotonic() < end:
            time.sleep(0.05)


@contextmanager
def slow_disk(request_ns: str = "") -> Iterator[Path]:
    """Node of the device; everything is removed again, also after an error or an interrupt.

    `request_ns` is the time that every request takes; empty for those of a disk.
    """
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="slow-disk-")))
        server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("slow_file.py"), folder, *request_ns.split()],
            start_new_session=True,
        )
        undo.callback(server.wait, 10)
        undo.callback(server.terminate)
        undo.callback(subprocess.run, ["umount", folder], check=False)
        while not (folder / "data").exists():
            if server.poll() is not None:
                raise SystemExit("the model of the disk did not start")
            time.sleep(0.05)
        device = undo.enter_context(attached(folder / "data"))
        (Path("/sys/block") / device.name / "queue/rotational").write_text("1")
        yield device


def main() -> int:
    """Run the command of the arguments; its exit code."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: slow_disk.py COMMAND [ARGUMENT...]")
    with slow_disk(os.environ.get("SLOW_DISK_REQUEST_NS", "")) as device:
        backing = Path(f"/sys/block/{device.name}/loop/backing_file").read_text().strip()
        environment = {
            **os.environ,
            "SLOW_DISK": str(device),
            "SLOW_DISK_SERIAL": f"{Path(backing).name}-{Path(backing).stat().st_ino}",
        }
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
