"""One JupyterLab and one chromium for all browser tests; for each a notebook, and a page, or that of `same_page`."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, FloatRect, Locator, expect, sync_playwright

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.server.probes import select_level

from .accessibility import violations
from .lab import PATIENCE, Lab, running_lab
from .person import SIZE, LastingPerson, Person
from .pictures import faults

#: The same browser without its own windows, where Debian has it: a page then costs a fifth less.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
IMAGES = Path(__file__).parents[2] / "docs" / "images"

#: Seconds for a whole test, which waits many times; what hangs fails earlier, at one of them.
TEST_TIMEOUT = 600

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT), append=False)


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """Stand in for pytest-jupyter's fixture: here Playwright's loop runs, and there cannot be two."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """Stand in for pytest-jupyter's fixture: no server is in this process."""


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "the browser tests need Debian's `chromium`"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[[], BrowserContext]]:
    """Make browsers that know nothing of each other."""
    contexts: list[BrowserContext] = []

    def new_context() -> BrowserContext:
        context = browser.new_context(viewport=SIZE, locale="en-GB")
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        return context

    yield new_context
    for context in contexts:
        context.close()


@pytest.fixture
def new_person(lab: Lab, new_context: Callable[[], BrowserContext]) -> Iterator[Callable[[], Person]]:
    """Bring people, each at a browser of their own; afterwards no kernel runs and nothing waits."""
    yield lambda: Person(new_context().new_page(), lab)
    lab.shut_down_kernels()


@pytest.fixture
def person(new_person: Callable[[], Person]) -> Person:
    return new_person()


@pytest.fixture(scope="module")
def lasting_person(lab: Lab, browser: Browser) -> Iterator[LastingPerson]:
    with browser.new_context(viewport=SIZE, locale="en-GB") as context:
        context.set_default_timeout(PATIENCE)
        yield LastingPerson(context.new_page(), lab)


@pytest.fixture
def same_page(lasting_person: LastingPerson, lab: Lab, request: pytest.FixtureRequest) -> Iterator[Person]:
    """Someone who opens notebook after notebook on one page, with a fresh one after a test that failed.

    It is for tests that neither are about a fresh page nor change the page itself, by its settings or with scripts that
    stay. What they route and what size they give it lasts as long as the test.
    """
    failures = request.session.testsfailed
    yield lasting_person
    lasting_person.page.unroute_all()
    lasting_person.page.set_viewport_size(SIZE)
    lab.shut_down_kernels()
    if request.session.testsfailed == failures:
        lasting_person.tidy_up()


@pytest.fixture
def notebook(lab: Lab, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Write notebooks that are named after the test."""
    numbers = itertools.count(1)

    def write(*sources: str, kernel: str = "python3") -> str:
        name = request.node.name.removeprefix("test_").split("[")[0]
        path = f"{name[:40]}_{next(numbers)}.ipynb"
        lab.write_notebook(path, *(source or "" for source in sources), kernel=kernel)
        return path

    return write


@pytest.fixture
def level() -> Isolation:
    """The best level of isolation that this machine can reach."""
    try:
        return select_level(SANDBOX_LEVELS)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))


@pytest.fixture
def boxed(lab: Lab, level: Isolation) -> str:
    """The name of a kernel that is sandboxed at that level."""
    lab.install_kernel("boxed", level)
    return "boxed"


@pytest.fixture
def limited(lab: Lab, level: Isolation) -> str:
    """The name of a sandboxed kernel that may have 2 GiB of memory."""
    lab.install_kernel("limited", level, memory_limit=2 << 30)
    return "limited"


@pytest.fixture(params=THEMES)
def theme(request: pytest.FixtureRequest, lab: Lab) -> Iterator[str]:
    """The pages are light, and then dark."""
    with lab.settings("@jupyterlab/apputils-extension:themes", {"theme": THEMES[request.param]}):
        yield str(request.param)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The folder of the documentation's pictures, if `AGENTBOX_UPDATE_PICTURES` is set; else one to try it with."""
    return IMAGES if os.environ.get("AGENTBOX_UPDATE_PICTURES") else tmp_path


@pytest.fixture
def save_picture(pictures: Path) -> Callable[..., None]:
    """Save pictures for the documentation.

    What is worth a picture is also what everybody must be able to use: axe looks at it. A picture in which a part is
    covered or cut off is not saved.
    """

    def save(name: str, *parts: Locator, margin: int = 12) -> None:
        assert [fault for part in parts for fault in faults(part)] == [], f"`{name}` would not show what it is to show"
        boxes = [box for part in parts if (box := part.bounding_box())]
        left, top = (min(box[side] for box in boxes) - margin for side in ("x", "y"))
        right = max(box["x"] + box["width"] for box in boxes) + margin
        bottom = max(box["y"] + box["height"] for box in boxes) + margin
        clip = FloatRect(x=left, y=top, width=right - left, height=bottom - top)
        path = pictures / f"{name}.png"
        parts[0].page.screenshot(path=path, clip=clip, animations="disabled", caret="hide")
        assert path.stat().st_size < 200_000
        assert violations(parts[0].page) == []

    return save
