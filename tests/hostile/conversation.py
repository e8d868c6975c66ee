"""A conversation with the agent, as somebody would have it who writes no polite front end."""

from __future__ import annotations

import json
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from .arena import AGENT_BY_SUDO, Arena

PATIENCE_S = 60.0
"""Longest time of one answer."""


class Conversation:
    """The agent through the user's sudo (or another command); ends with the end of its input."""

    def __init__(
        self,
        arena: Arena,
        user: str | None,
        command: Sequence[str] = AGENT_BY_SUDO,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        argv = arena.argv(command, user=user, environment=environment)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._buffer = b""
        self._next_id = 1
        self.answers: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def write(self, data: bytes) -> bool:
        """Send bytes as they are; whether they were taken."""
        assert self.process.stdin is not None
        view = memoryview(data)
        try:
            while view:
                view = view[self.process.stdin.write(view) :]
        except BrokenPipeError:
            return False
        return True

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """The answer to one request, events left out; `{}` if the agent has ended."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        self.write(json.dumps({"id": request_id, "method": method, "params": params}).encode())
        self.write(b"\n")
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next answer, events left out; `{}` if the agent has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            line, found, rest = self._buffer.partition(b"\n")
            if found:
                self._buffer = rest
                message = json.loads(line)
                if "event" not in message:
                    self.answers.append(message)
                    return message
                continue
            assert self.process.stdout is not None
            left = deadline - time.monotonic()
            assert left > 0, "the agent does not answer"
            if select.select([self.process.stdout], [], [], left)[0]:
                chunk = self.process.stdout.read(1 << 16)
                if not chunk:
                    return {}
                self._buffer += chunk

    def end(self) -> int:
        """Close its input and wait until it has put everything back; its exit code."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()
        if self.process.returncode is None:
            self.process.wait(PATIENCE_S)
            assert self.process.stdout is not None
            assert self.process.stderr is not None
            self.process.stdout.close()
            self.stderr = self.process.stderr.read().decode(errors="replace")
            self.process.stderr.close()
        return self.process.returncode


def code_of(answer: Mapping[str, Any]) -> str:
    """Code of an error, `failed_trial` for a record that is none, else `ok`; `gone` if none."""
    if not answer:
        return "gone"
    if "error" in answer:
        return str(answer["error"]["code"])
    return "failed_trial" if answer["result"].get("status") == "failed" else "ok"
