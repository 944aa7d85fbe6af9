"""A command in a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import signal
from typing import Self

TIMEOUT = 60


class TerminalCommand:
    """A command that has a terminal, and somebody who types there.

    Parameters
    ----------
    environment : dict
        The command's.
    argv : list of str
        The command.
    """

    def __init__(self, environment: dict[str, str], argv: list[str]) -> None:
        self.shown = ""
        self._seen = 0
        self._data = b""
        self._pid, self._terminal = pty.fork()
        self._status: int | None = None
        if self._pid == 0:
            os.execve(argv[0], argv, environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def type(self, keys: str) -> None:
        """Type."""
        os.write(self._terminal, keys.encode())

    def read_until(self, text: str) -> None:
        """Wait until the terminal shows this, after what was waited for before."""
        while (found := self.shown.find(text, self._seen)) < 0:
            assert self._read(), f"the command ended and has not shown {text!r}, but {self.shown!r}"
        self._seen = found + len(text)

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and all that was shown."""
        while self._read():
            pass
        self._status = os.waitpid(self._pid, 0)[1]
        return os.waitstatus_to_exitcode(self._status), self.shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], TIMEOUT)
        assert ready, f"nothing more was shown than {self.shown!r}"
        try:
            data = os.read(self._terminal, 4096)
        except OSError:  # Linux says so at the end
            return False
        self._data += data
        self.shown = self._data.decode("utf-8", "replace")
        return bool(data)
