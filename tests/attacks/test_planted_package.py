from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import TIMEOUT, Stage, World, write_spec

ATTACK = Attack(
    "leave `jupyter_agentbox` or a module that it needs in the work directory, for the plain kernel that somebody"
    " starts there next, and in which the server loads its own part",
    plain=False,
    control="test_they_run_where_the_package_is_imported_as_a_cell_imports",
)
NAMES = (
    *("jupyter_agentbox", "comm", "ipywidgets", "jupyterlab_widgets", "traitlets", "typing_extensions"),
    *("IPython", "zmq", "json", "dataclasses", "unicodedata", "uuid", "queue"),
)
KERNEL = "without-python-path"


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    work = pathlib.Path(facts["work"])
    for name in facts["names"]:
        (work / name).mkdir()
        code = f"import pathlib\npathlib.Path({str(work)!r}, 'ran').open('a').write({name + ' '!r})\n"
        (work / name / "__init__.py").write_text(code)
    return "planted"


@contextmanager
def plain_kernel(world: World, directory: str) -> Iterator[BlockingKernelClient]:
    """Start a plain kernel in which only what is installed can be imported, as it is for most users."""
    if not (world.root / "data" / "kernels" / KERNEL).exists():
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": KERNEL, "language": "python", "env": {"PYTHONPATH": ""}}
        write_spec(world.root, KERNEL, spec)
    kernel = world.start_kernel(KERNEL, directory)
    try:
        yield kernel
    finally:
        kernel.stop_channels()
        kernel.context.destroy(linger=0)


def says(kernel: BlockingKernelClient, expression: str) -> str:
    reply = kernel.execute("", silent=True, user_expressions={"it": expression}, reply=True, timeout=TIMEOUT)
    return str(reply["content"]["user_expressions"]["it"]["data"]["text/plain"])


def wait_until_loaded(kernel: BlockingKernelClient) -> None:
    limit = time.monotonic() + TIMEOUT
    while says(kernel, "'agentbox' in get_ipython().magics_manager.magics['line']") != "True":
        assert time.monotonic() < limit, "the kernel side was not loaded"


def call_from_a_cell(kernel: BlockingKernelClient, world: World) -> None:
    """Call a tool as a cell of JupyterLab does, which shows a widget, and wait until it has ended."""
    code = {"code": "from jupyter_agentbox import tools; tools.ledger.ready()", "silent": False, "store_history": False}
    message = kernel.session.msg("execute_request", code)
    message["metadata"]["cellId"] = "one"
    kernel.shell_channel.send(message)
    [request] = world.await_pending("ready")
    world.decide(request, "allow_once")
    assert kernel.get_shell_msg(timeout=TIMEOUT)["content"]["status"] == "ok"


def ran(work: Path) -> set[str]:
    return set((work / "ran").read_text().split()) if (work / "ran").exists() else set()


def make_work(world: World, name: str) -> tuple[Path, str]:
    directory = f"project/{name}"
    work = world.root / "home" / directory
    work.mkdir(exist_ok=True)
    return work, directory


def test_nothing_that_was_left_runs_by_our_doing(stage: Stage) -> None:
    work, directory = make_work(stage.world, f"modules-{stage.level.value}")
    with stage.alone(directory) as sandboxed:
        assert sandboxed.run(attack, work=str(work), names=NAMES) == "planted", sandboxed.said

    with plain_kernel(stage.world, directory) as kernel:
        wait_until_loaded(kernel)
        unasked = ran(work)
        if stage.level is Isolation.NONE:  # once is enough: what is left is the same
            call_from_a_cell(kernel, stage.world)
            unasked = ran(work)

    stage.said = f"ran: {unasked}"
    stage.judge(ATTACK, bool(unasked))


def test_they_run_where_the_package_is_imported_as_a_cell_imports(world: World) -> None:
    work, directory = make_work(world, "modules-of-a-cell")
    attack({"work": str(work), "names": ["ipywidgets"]})
    with plain_kernel(world, directory) as kernel:
        wait_until_loaded(kernel)
        says(kernel, "__import__('ipywidgets')")
    before = ran(work)
    attack({"work": str(work), "names": ["jupyter_agentbox"]})
    with plain_kernel(world, directory) as kernel:
        says(kernel, "[__import__('sys').modules.pop('jupyter_agentbox', None), __import__('jupyter_agentbox')]")

    assert (before, ran(work)) == ({"ipywidgets"}, {"ipywidgets", "jupyter_agentbox"})
