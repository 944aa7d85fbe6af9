"""The packages that we are compared with: which versions, and an environment of its own for each."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

#: How long the installation of a peer may take, in seconds.
_INSTALL_TIMEOUT = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A package that does a part of what ours does.

    Parameters
    ----------
    name : str
        What `script` and the environment's directory are told: the package, as it is imported.
    requirements : tuple of str
        What is installed; the first is the package itself.
    script : str
        The file of this directory that makes both packages do the same.
    rounds : int
        How often each of the two runs, in turn, in a run of the benchmark.
    """

    name: str
    requirements: tuple[str, ...]
    script: str
    rounds: int = 2

    @property
    def title(self) -> str:
        """The package and its version."""
        return self.requirements[0]


PEERS = (
    Peer(name="ipybox", requirements=("ipybox==0.9.2", "mcp<2"), script="side.py"),
    Peer(name="osprey", requirements=("osprey-framework==0.11.5",), script="pipeline.py"),
    Peer(name="openai_codex", requirements=("openai-codex==0.163.0",), script="turns.py", rounds=3),
)


def interpreter_of(peer: Peer, directory: Path) -> Path | None:
    """Return an interpreter that has a peer; installs it if need be. ``None`` if that cannot be done, which is said."""
    place = directory / peer.name
    python, stamp = place / "bin" / "python", place / "requirements.txt"
    wanted = "\n".join(peer.requirements)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"{peer.title}: installing into {place}", file=sys.stderr)
    try:
        venv.create(place, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *peer.requirements],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=_INSTALL_TIMEOUT,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{peer.title} CANNOT BE INSTALLED HERE, so its rows have our figures alone: {error}", file=sys.stderr)
        return None
    stamp.write_text(wanted)
    return python
