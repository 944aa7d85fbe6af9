"""An audit sink as a package could have it, which a test makes known by an entry point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .distributions import install


class QueueSink:
    """Writes records into the file that is the path of its address, while there is a directory for it."""

    def __init__(self, address: str, *, token_file: str, service: str) -> None:
        self.name = "queue"
        self._path = Path(address.partition("://")[2])
        assert (token_file, service.startswith("jupyter-agentbox")) == ("", True)

    async def send(self, lines: Sequence[bytes]) -> None:
        with self._path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))


def install_queue_sink(place: Path) -> None:
    """Make the sink known to whoever has this directory in `sys.path`."""
    install(place, "queue-sink", "[jupyter_agentbox.audit_sinks]\nqueue = tests.queue_sink:QueueSink\n")
