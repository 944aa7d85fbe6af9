"""The idle culler of a real JupyterHub, and Jupyter's own of kernels, while a request waits and afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from .hub import API, CULLED, IDLE, OWNER, Hub
from .test_service import result_of, until

CODE = "from jupyter_agentbox import tools\nprint(tools.shop.delete_order(order_id=1210))"


@contextmanager
def running_culler(hub: Hub) -> Iterator[None]:
    """Stop servers that are idle, as the Hub's administrator lets a service do."""
    options = [f"--timeout={IDLE}", "--cull-every=1", f"--url={hub.url}hub/api"]
    with (
        (hub.root / "culler.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "jupyterhub_idle_culler", *options],
            cwd=hub.root,
            env={**os.environ, "JUPYTERHUB_API_TOKEN": hub.culler},
            stdout=log,
            stderr=log,
        ) as process,
    ):
        yield
        assert process.poll() is None, (hub.root / "culler.log").read_text()
        process.terminate()


@pytest.mark.usefixtures("shop")
def test_a_request_keeps_its_server_and_kernel_from_being_culled_until_it_expires_and_not_longer(hub: Hub) -> None:
    hub.start_servers(CULLED)
    with hub.kernel(server=CULLED) as kernel:
        running = kernel.execute(CODE)
        (request,) = until(
            lambda: hub.ask(f"{hub.server(CULLED)}{API}approvals?status=pending", token=hub.admin)[1]["approvals"]
        )
        expires = datetime.fromisoformat(request["expires_at"])
        # From here on nothing but the kernel gives a sign of life: the Hub counts what its proxy passes on.
        with running_culler(hub):
            said = result_of(kernel, running)
            until(lambda: CULLED not in hub.api(f"users/{OWNER}")["servers"])

    assert "ApprovalExpiredError" in said
    assert datetime.now(UTC) > expires
