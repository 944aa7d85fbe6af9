from __future__ import annotations

import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import TIMEOUT, Stage

ATTACK = Attack("get the next kernel another work directory, by swapping a folder and a link while it starts")

#: In a plain kernel, any of them may be the one.
STARTS = {Isolation.NONE: 25}
FEWER = 8


def attack(facts: dict[str, Any]) -> Any:
    import ctypes
    import os
    import pathlib
    import time

    os.mkdir("sub")
    os.symlink(facts["target"], "link")
    rename, exchange, here = ctypes.CDLL(None).renameat2, 2, -100
    pathlib.Path("swapping").touch()
    while not os.path.exists("enough"):
        rename(here, b"sub", here, b"link", exchange)
        time.sleep(0.0005)
    return "swapped"


def look(facts: dict[str, Any]) -> Any:
    import os

    return sorted(os.listdir())


def await_file(path: Path) -> None:
    limit = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < limit, f"`{path}` was not made"
        time.sleep(0.02)  # a kernel of another process makes it


@contextmanager
def started(stage: Stage, place: str) -> Iterator[Stage | None]:
    """Start a kernel for a notebook of a folder, and end it; gives nothing if it is refused."""
    name = f"at-{stage.level.value}"
    body = {"path": f"{place}/x.ipynb", "type": "notebook", "name": "x", "kernel": {"name": name}}
    try:
        kernel_id = stage.world.api("POST", "api/sessions", body)["kernel"]["id"]
    except urllib.error.HTTPError as error:
        if "sandboxed kernel" not in (said := error.read().decode()):
            pytest.fail(said)
        yield None
        return
    client = BlockingKernelClient(connection_file=str(stage.world.root / "runtime" / f"kernel-{kernel_id}.json"))
    client.load_connection_file()
    client.start_channels(hb=False)
    try:
        client.wait_for_ready(timeout=TIMEOUT)
        kernel = Stage(stage.world, stage.level)
        kernel._kernel = client
        yield kernel
    finally:
        client.stop_channels()
        client.context.destroy(linger=0)
        stage.world.api("DELETE", f"api/kernels/{kernel_id}")


def test_a_kernel_gets_the_folder_or_is_refused(stage: Stage) -> None:
    home = stage.world.root / "home"
    other = home / "other-project"
    other.mkdir(exist_ok=True)
    (other / "notes.txt").write_text("mine")
    place = f"swapping-{stage.level.value}"
    found: list[Any] = []
    with stage.alone(place) as own, own.running(attack, target=str(other)) as evidence:
        await_file(home / place / "swapping")
        for _ in range(STARTS.get(stage.level, FEWER)):
            with started(stage, f"{place}/sub") as kernel:
                found.append(None if kernel is None else kernel.run(look))
            if found[-1] not in (None, []):
                break
        (home / place / "enough").touch()
        assert evidence() == "swapped", own.said

    stage.judge(ATTACK, any(found))
