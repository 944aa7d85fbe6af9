"""The policy of the server's pages, over HTTP against a real Jupyter server with JupyterLab and Notebook 7."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from traitlets import TraitError

from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.content_security import content_security_policy
from jupyter_agentbox.sandbox.install import kernelspec

HEADER = "Content-Security-Policy"
PAGES = ("lab", "lab/tree/a.ipynb", "doc/tree/a.ipynb", "notebooks/a.ipynb", "consoles/a", "tree", "edit/a.txt",
         "files/a.html", "files/a.svg", "nbconvert/html/a.ipynb", "lab/workspaces/w")  # fmt: skip


@pytest.fixture
def agentbox_config() -> dict[str, Any]:
    return {}


@pytest.fixture
def tornado_settings() -> dict[str, Any]:
    return {}


@pytest.fixture
def jp_server_config(tmp_path: Path, agentbox_config: dict[str, Any], tornado_settings: dict[str, Any]) -> Any:
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_agentbox": True, "jupyterlab": True, "notebook": True},
            "tornado_settings": tornado_settings,
        },
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            **agentbox_config,
        },
    }


@pytest.fixture
def sandboxed(jp_data_dir: Path) -> None:
    directory = jp_data_dir / "kernels" / "boxed"
    directory.mkdir(parents=True)
    (directory / "kernel.json").write_text(json.dumps(kernelspec(sys.executable, display_name="boxed")))


@pytest.fixture
def pages(jp_serverapp: Any, jp_fetch: Any, jp_root_dir: Path) -> Any:
    del jp_serverapp
    nbformat.write(nbformat.v4.new_notebook(), jp_root_dir / "a.ipynb")
    (jp_root_dir / "a.txt").write_text("")
    (jp_root_dir / "a.html").write_text("<p>")
    (jp_root_dir / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")

    async def ask(path: str) -> Any:
        return await jp_fetch(*path.split("/"))

    return ask


def policies(answer: Any) -> list[str]:
    found: list[str] = answer.headers.get_list(HEADER)
    return found


def ours(answer: Any) -> str:
    return content_security_policy(re.sub("^https?://|/.*$", "", answer.request.url))


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_of_a_server_with_sandboxed_kernels_has_the_policy(pages: Any, path: str) -> None:
    answer = await pages(path)

    assert answer.headers["Content-Type"].partition(";")[0] in ("text/html", "image/svg+xml")
    others = [policy for policy in policies(answer) if policy != ours(answer)]
    assert len(others) == 1
    assert "frame-ancestors" in others[0]
    assert answer.headers["X-DNS-Prefetch-Control"] == "off"


@pytest.mark.parametrize("path", PAGES)
async def test_no_page_of_a_server_without_sandboxed_kernels_has_it(pages: Any, path: str) -> None:
    answer = await pages(path)

    assert len(policies(answer)) == 1
    assert "img-src" not in policies(answer)[0]
    assert "X-DNS-Prefetch-Control" not in answer.headers


async def test_a_kernelspec_that_comes_later_is_noticed(pages: Any, request: pytest.FixtureRequest) -> None:
    assert ours(await pages("lab")) not in policies(await pages("lab"))
    request.getfixturevalue("sandboxed")
    answer = await pages("lab")

    assert ours(answer) in policies(answer)


@pytest.mark.usefixtures("sandboxed")
async def test_what_is_no_page_is_left_alone(pages: Any) -> None:
    assert len(policies(await pages("api/status"))) == 1


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize("agentbox_config", [{"content_security_policy": "never"}])
async def test_a_site_can_do_without(pages: Any) -> None:
    assert len(policies(await pages("lab"))) == 1


@pytest.mark.parametrize("agentbox_config", [{"content_security_policy": "always"}])
async def test_a_site_can_have_it_always(pages: Any) -> None:
    answer = await pages("lab")

    assert ours(answer) in policies(answer)


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    "agentbox_config", [{"content_security_policy_sources": {"img-src": ["https://images.example.org"]}}]
)
async def test_a_site_can_add_sources(pages: Any) -> None:
    answer = await pages("lab")

    assert any("img-src 'self' blob: data: https://images.example.org;" in policy for policy in policies(answer))


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    "tornado_settings",
    [{"headers": {HEADER: "frame-ancestors https://hub.example.org; report-uri /hub/csp", "X-Hub": "1"}}],
)
async def test_a_policy_that_a_site_or_a_hub_sets_is_kept_beside_it(pages: Any) -> None:
    answer = await pages("lab")

    assert policies(answer) == ["frame-ancestors https://hub.example.org; report-uri /hub/csp", ours(answer)]
    assert answer.headers["X-Hub"] == "1"


@pytest.mark.parametrize("wrong", [{"pictures": ["https:"]}, {"img-src": ["https: http:"]}])
def test_sources_that_cannot_be_in_a_policy_are_refused_at_the_start(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(TraitError):
        AgentBoxApp(content_security_policy_sources=wrong)


async def told(pages: Any, path: str, name: str = "agentboxSandboxedKernels") -> Any:
    body = (await pages(path)).body.decode()
    found = re.search(r'<script id="jupyter-config-data" type="application/json">(.*?)</script>', body, re.DOTALL)
    assert found
    return json.loads(found[1]).get(name)


@pytest.mark.parametrize("path", ["lab", "notebooks/a.ipynb"])
async def test_the_page_is_told_whether_there_are_sandboxed_kernels(
    pages: Any, path: str, request: pytest.FixtureRequest
) -> None:
    assert await told(pages, path) is False
    assert await told(pages, path, "agentboxHubService") is False  # so that the page asks for nothing
    request.getfixturevalue("sandboxed")
    assert await told(pages, path) is True


@pytest.mark.parametrize("tornado_settings", [{"page_config_hook": lambda _, config: {**config, "hubUser": "ada"}}])
async def test_what_a_hub_tells_pages_is_kept(pages: Any) -> None:
    assert b'"hubUser": "ada"' in (await pages("lab")).body
    assert await told(pages, "lab") is False


async def test_what_a_hub_tells_pages_is_kept_where_its_extension_is_initialized_later(
    pages: Any, jp_serverapp: Any
) -> None:
    jp_serverapp.web_app.settings["page_config_hook"] = lambda _, config: {**config, "hubUser": "ada"}
    extension = jp_serverapp.extension_manager.extension_apps["jupyter_agentbox"]
    for app in extension:
        await app._start_jupyter_server_extension(jp_serverapp)

    assert b'"hubUser": "ada"' in (await pages("lab")).body
    assert await told(pages, "lab") is False
