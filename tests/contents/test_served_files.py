"""What the server serves as it is, where a sandboxed kernel can put links."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.contents.kernel_directories import KernelDirectories
from jupyter_agentbox.contents.served_files import serve_no_links

from .test_managers import Kernels


@pytest.fixture
def root(jp_root_dir: Path, jp_serverapp: Any) -> Path:
    (jp_root_dir / "work").mkdir()
    (jp_root_dir / "outside").mkdir()
    (jp_root_dir / "outside" / "secret.txt").write_text("secret")
    kernels = Kernels()
    kernels.places["one"] = (jp_root_dir / "work",)
    serve_no_links(jp_serverapp.web_app, KernelDirectories(cast(MultiKernelManager, kernels), EventLogger()))
    return jp_root_dir


async def test_a_file_is_served_with_its_type_in_parts_too(root: Path, jp_fetch: Any) -> None:
    (root / "work" / "picture.svg").write_text("<svg/>")

    whole = await jp_fetch("files", "work", "picture.svg")
    part = await jp_fetch("files", "work", "picture.svg", headers={"Range": "bytes=1-3"})
    head = await jp_fetch("files", "work", "picture.svg", method="HEAD")

    assert (whole.body, whole.headers["Content-Type"]) == (b"<svg/>", "image/svg+xml")
    assert (part.code, part.body) == (206, b"svg")
    assert head.headers["Content-Length"] == "6"


@pytest.mark.parametrize("path", ["work/link.txt", "work/sub/secret.txt"])
async def test_no_link_of_a_kernel_is_followed(root: Path, jp_fetch: Any, path: str) -> None:
    (root / "work" / "link.txt").symlink_to("../outside/secret.txt")
    (root / "work" / "sub").symlink_to("../outside")

    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch("files", *path.split("/"))
    assert refused.value.code == 403


async def test_elsewhere_files_are_served_as_ever(root: Path, jp_fetch: Any) -> None:
    (root / "link.txt").symlink_to("outside/secret.txt")

    assert (await jp_fetch("files", "link.txt")).body == b"secret"
    with pytest.raises(HTTPClientError) as missing:
        await jp_fetch("files", "work", "nothing.txt")
    assert missing.value.code == 404
