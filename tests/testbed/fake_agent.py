#!/usr/bin/env python3
"""A stand-in for iolab-agent that speaks protocol 1 and touches nothing.

``FAKE_AGENT_MODE`` is a comma-separated list of ``name[=value]``:

``delay=S``       a trial takes S seconds (an interrupt ends it early);
``die=tNNNN``     exit 1 with words on standard error in the middle of that trial;
``garbage=tNNNN`` answer that trial with a line that is no message;
``odd=KIND``      answer every trial with a line of ``ODD``;
``fail=tNNNN``    answer that trial with error code ``failed``; ``fail=all`` every trial;
``decline``       refuse every trial in a dry run;
``refuse``        refuse to open the testbed;
``slow_close=S``  exit S seconds after the end of input or the shutdown, then log ``exit``;
``incomplete``    exit with code 3;
``knob=NAME:V``   read back NAME as V in every trial that asks for it;
``unrestored``    close_testbed reports a problem;
``alive``         restore finds a run that is under way;
``idle``          restore finds nothing;
``journal``       hello reports an open journal;
``user``          not root.

``FAKE_AGENT_LOG`` names a file that receives one line per method and finished trial.
"""

import json
import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path

MODE = dict(
    item.partition("=")[::2] for item in os.environ.get("FAKE_AGENT_MODE", "").split(",") if item
)
SCHEDULERS = ["none", "mq-deadline", "bfq"]
FIXED_RATE = {"none": 400e6, "mq-deadline": 390e6, "bfq": 300e6}
ODD = {
    "huge": '{"id": 1, "result": {"elapsed_ns": 99999999999999999999}}\n',
    "infinite": '{"id": 1, "result": {"elapsed_ns": 1e400}}\n',
    "nothing": '{"id": 1, "result": {"elapsed_ns": NaN}}\n',
    "deep": "[" * 200_000 + "\n",
    "endless": "x" * (70 << 20),
}


def log(text):
    if os.environ.get("FAKE_AGENT_LOG"):
        with Path(os.environ["FAKE_AGENT_LOG"]).open("a") as file:
            file.write(text + "\n")


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def action(kind, target, detail=""):
    return {"class": "B", "kind": kind, "target": target, "detail": detail}


class AnswerError(Exception):
    def __init__(self, code, message, hint=""):
        super().__init__(message)
        self.answer = {"code": code, "message": message, "hint": hint}


class FakeAgent:
    def __init__(self):
        self.is_dry_run = False
        self.buffer = b""
        self.lines = []

    def next_line(self, timeout=None):
        """Next request, None after `timeout` seconds, empty at the end of input."""
        while not self.lines:
            if not select.select([0], [], [], timeout)[0]:
                return None
            chunk = os.read(0, 65536)
            if not chunk:
                return b""
            *lines, self.buffer = (self.buffer + chunk).split(b"\n")
            self.lines += lines
        return self.lines.pop(0)

    def serve(self):
        while line := self.next_line():
            request = json.loads(line)
            log(("rehearse " if self.is_dry_run else "") + request["method"])
            try:
                result = getattr(self, request["method"])(request["params"])
            except AnswerError as failure:
                send({"id": request["id"], "error": failure.answer})
                continue
            send({"id": request["id"], "result": result})
            if request["method"] == "shutdown":
                return
        log("end of input")

    def hello(self, params):
        self.is_dry_run = params["is_dry_run"]
        journals = [{"run": "r-old", "entries": 2}] if "journal" in MODE else []
        return {
            "protocol": 1,
            "version": "0.1.0",
            "is_root": "user" not in MODE,
            "uid": 0,
            "boot_id": "b",
            "open_journals": journals,
        }

    def doctor(self, params):
        return {"checks": [{"name": "root", "status": "warn", "message": "no", "hint": "sudo"}]}

    def open_testbed(self, params):
        if "refuse" in MODE:
            raise AnswerError("refused", "/dev/vda carries the running system", "use loop:1g")
        return {
            "class": "B",
            "directory": "/x/.iolab-1",
            "devices": ["loop8"],
            "knob_devices": ["loop8"],
            "schedulers": SCHEDULERS,
            "free_bytes": 10**9,
            "facts": {"kernel.release": "9.9"} if "moved" in MODE else {},
            "warnings": [{"code": "nested_loop", "message": "two block layers", "hint": ""}],
            "actions": [action("attach_loop", "/dev/loop8")],
        }

    def run_trial(self, params):
        trial = params["trial"]
        if self.is_dry_run:
            if "decline" in MODE:
                raise AnswerError("refused", "no testbed takes the mount option 'ro'")
            knobs = params["knobs"].items()
            actions = [action("write_knob", name, f"old -> {value}") for name, value in knobs]
            return self.record(params, "dry_run", [], actions)
        send({"event": "progress", "params": {"trial": trial, "phase": "write", "share": 0.4}})
        status = self.work(float(MODE.get("delay", "0")))
        if MODE.get("die") == trial:
            print("panicked at trial", file=sys.stderr, flush=True)
            sys.exit(1)
        if MODE.get("garbage") == trial:
            print("hello, I am no message", flush=True)
        if odd := MODE.get("odd"):
            sys.stdout.write(ODD[odd])
            sys.stdout.flush()
        if MODE.get("unmountable") in (params["stack"] or {}).get("mount_options", ()):
            raise AnswerError("failed", "mount failed", "correct the options")
        if MODE.get("fail-scheduler") == params["knobs"].get("scheduler", "-"):
            raise AnswerError("failed", "it went wrong", "see dmesg")
        if MODE.get("fail") in (trial, "all"):
            raise AnswerError("failed", f"mkfs.ext4 failed on loop{trial[1:]}", "see dmesg")
        log(f"done {trial} {status}")
        phases = self.phases(params) if status == "ok" else []
        return self.record(params, status, phases, [])

    def work(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            line = self.next_line(left)
            if line == b"":
                log("end of input")
                sys.exit(0)
            if line is not None and (request := json.loads(line))["method"] == "interrupt":
                send({"id": request["id"], "result": {}})
                return "interrupted"
        return "ok"

    def phases(self, params):
        knobs, found = params["knobs"], []
        for index, name in enumerate(params["workload"]["tests"]):
            elapsed = int(2**20 / FIXED_RATE[knobs.get("scheduler", "none")] * 1e9)
            elapsed += (int(params["trial"][1:]) * 7919 + index * 104729) % 50_000
            is_read = "read" in name
            histogram = {
                "unit": "ns",
                "count": 256,
                "min": 1000,
                "max": 9000,
                "sum": 512000,
                "sub_bucket_bits": 7,
                "counts": [[10, 256]],
            }
            worker = {
                "worker": 0,
                "ops": 256,
                "bytes": 2**20,
                "read_bytes": 2**20 * is_read,
                "write_bytes": 2**20 * (not is_read),
                "elapsed_ns": elapsed,
                "errors": 0,
                "first_error": None,
            }
            service = {"read": None, "write": None, "sync": None}
            service["read" if is_read else "write"] = histogram
            tenant = {
                "name": "main",
                "workers": [worker],
                "service": service,
                "response": None,
                "series": None,
                "depth_reached_mean": 1.0,
            }
            device = {
                "name": "loop8",
                "read_bytes": 2**20 * is_read,
                "write_bytes": 2**20 * (not is_read),
                "flushed_write_bytes": 0,
                "reads": 1,
                "writes": 1,
                "io_ticks_ns": 1,
            }
            found.append(
                {
                    "name": name,
                    "started_ns": 0,
                    "elapsed_ns": elapsed,
                    "io_size_bytes": 4096,
                    "cache": {"asked": "cold", "method": "mincore", "resident_before_share": 0.0},
                    "cpu": {"user_ns": 1, "system_ns": 2},
                    "harness_ns_per_op": 52.0,
                    "devices": [device],
                    "tenants": [tenant],
                    "warnings": [],
                }
            )
        return found

    def record(self, params, status, phases, actions):
        return {
            "trial": params["trial"],
            "status": status,
            "error": None,
            "started_at_unix_ns": time.time_ns(),
            "elapsed_ns": 1_000_000,
            "engine": "psync",
            "knobs": self.read_back(params["knobs"]),
            "stack": params["stack"],
            "facts": {"kernel.release": "6.18", "trial.id": params["trial"]},
            "warnings": [],
            "actions": actions,
            "phases": phases,
        }

    def read_back(self, knobs):
        name, _, value = MODE.get("knob", "").partition(":")
        return {**knobs, name: value} if name in knobs else knobs

    def close_testbed(self, params):
        problems = ["/sys/block/loop8/queue/scheduler"] if self.is_unrestored() else []
        actions = [action("detach_loop", "/dev/loop8")]
        return {"is_restored": not problems, "problems": problems, "actions": actions}

    def is_unrestored(self):
        return "unrestored" in MODE and not self.is_dry_run

    def restore(self, params):
        problems = ["loop8 is busy"] if "unrestored" in MODE else []
        if "idle" in MODE:
            return {"restored": [], "obsolete": [], "problems": [], "alive": []}
        if "alive" in MODE:
            alive = "run r-new (pid 77) is under way: its changes are in place, nothing was undone"
            return {"restored": [], "obsolete": [], "problems": [], "alive": [alive]}
        return {"restored": ["scheduler of loop8"], "obsolete": [], "problems": problems}

    def interrupt(self, params):
        return {}

    def shutdown(self, params):
        return {"problems": []}


if __name__ == "__main__":
    try:
        with suppress(BrokenPipeError):  # Whom it answers may have been killed.
            FakeAgent().serve()
    finally:
        if "slow_close" in MODE:
            time.sleep(float(MODE["slow_close"]))
            log("exit")
    sys.exit(3 if "incomplete" in MODE else 0)
