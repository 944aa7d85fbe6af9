"""A machine with users of its own, for a Hub whose servers run as real users of the system.

It is a mount namespace: what `useradd` and an administrator's commands change in it is gone with it. Processes and the
network are those of the machine that runs the tests.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .hub import ROOT, TIMEOUT

#: What has to be found in it: the checkout, Python, and Node for the proxy.
NEEDED = [
    ROOT,
    Path(sys.base_prefix),
    *(Path(found).resolve().parent.parent for found in [shutil.which("node")] if found),
]

#: Arguments are directories that are needed and may be below one that is closed to others, such as /root.
SET_UP = """
set -eu
mkdir -p "$PLACE"
mount -t tmpfs -o mode=755 tmpfs "$PLACE"
cp -a /etc "$PLACE/etc"
mount --bind "$PLACE/etc" /etc
mkdir "$PLACE/opt"
[ ! -d /opt ] || mount --rbind /opt "$PLACE/opt"
number=0
for path; do
    number=$((number + 1))
    mkdir "$PLACE/$number"
    mount --rbind "$path" "$PLACE/$number"
done
for path in /home /run /var/lib /opt $CLOSED; do
    mount -t tmpfs -o mode=755 tmpfs "$path"
done
for path in "$PLACE"/opt/*; do
    [ ! -d "$path" ] || { mkdir "/opt/${path##*/}"; mount --rbind "$path" "/opt/${path##*/}"; }
done
number=0
for path; do
    number=$((number + 1))
    case $path in /usr) continue ;; esac
    mkdir -p "$path"
    mount --rbind "$PLACE/$number" "$path"
done
echo ready
exec cat
"""

#: Runs a command as a user, as `sudo -u` does; all else as root.
SUDO = """
sudo() {
    [ "$1" = -u ] || { "$@"; return; }
    user=$2; shift 2
    setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$(getent passwd "$user" | cut -d: -f6)" "$@"
}
"""


def why_no_machine() -> str:
    """Return why there can be none; empty if there can be one."""
    if not sys.platform.startswith("linux"):
        return "users and mounts of a machine's own are made as Linux makes them"
    if os.geteuid() != 0:
        return "only root can start servers as other users of the system, as a Hub that runs as root does"
    if any(shutil.which(program) is None for program in ("unshare", "nsenter", "useradd", "setpriv")):
        return "`unshare`, `nsenter`, `setpriv` (util-linux) and `useradd` (passwd) are needed to make users"
    tried = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    return "" if tried.returncode == 0 else "root may make no mounts here, and so no users that are gone afterwards"


class Machine:
    """A running one.

    Parameters
    ----------
    keeper : int
        The process that keeps it.
    environment : Mapping
        What every command gets.
    """

    def __init__(self, keeper: int, environment: Mapping[str, str]) -> None:
        self._namespace = Path(f"/proc/{keeper}/ns/mnt").readlink()
        self._enter = ["nsenter", f"--target={keeper}", "--mount", "--wd=/", "--"]
        self.environment = dict(environment)

    def command(self, script: str, user: str = "") -> list[str]:
        """Return how a script of the shell is run in it, as root or as a user."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"] if user else []
        return [*self._enter, *as_user, "sh", "-c", script]

    def run(self, script: str, user: str = "", *, home: bool = False) -> str:
        """Run a script of the shell in it, perhaps in the user's home; it must succeed. Return what it prints."""
        done = self.attempt(f"cd ~{user} && {script}" if home else script, user)
        assert done.returncode == 0, (script, done.stdout)
        return done.stdout

    def attempt(self, script: str, user: str = "", given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a script of the shell in it, and give it something to read."""
        return subprocess.run(
            self.command(f"{SUDO}\n{script}", user),
            env=self.environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    def kill_all(self, name: str) -> None:
        """End all processes of this machine, and of no other, whose command has a name in it."""
        for process in Path("/proc").iterdir():
            try:
                is_here = process.name.isdecimal() and (process / "ns" / "mnt").readlink() == self._namespace
                if is_here and name.encode() in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                continue  # it has ended

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of root's."""
        subprocess.run(
            self.command(f"umask 077 && mkdir -p {Path(path).parent} && cat > {path} && chmod {mode:o} {path}"),
            input=text.encode(),
            check=True,
        )
        self.run(f"chmod a+rx {Path(path).parent}")


@contextmanager
def running_machine(place: Path) -> Iterator[Machine]:
    """Make a machine with a directory for what is mounted there."""
    closed = {
        str(above[-1]) for path in NEEDED if (above := [one for one in path.parents if not one.stat().st_mode & 1])
    }
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "HOME": "/",
        **({"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}),
    }
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation=private", "sh", "-c", SET_UP, "sh", *map(str, NEEDED)],
        env={**environment, "PLACE": str(place), "CLOSED": " ".join(sorted(closed))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "ready\n", "no machine could be made"
        yield Machine(keeper.pid, environment)
        assert keeper.stdin is not None
        keeper.stdin.close()
