"""``python -m bench.many``: what a page does while a thousand calls wait, and how fast they are decided."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.browser.conftest import CHROMIUM, CHROMIUM_OPTIONS
from tests.browser.lab import Lab, running_lab
from tests.browser.person import KERNEL_IS_READY

#: Seconds for which an idle page is watched.
IDLE = 10
ASK = """import asyncio
from jupyter_agentbox import tools
async def ask(number):
    try:
        await tools.shop.restock.aio(product_id=1 + number % 8, quantity=1 + number)
    except Exception:
        pass
await asyncio.gather(*(ask(number) for number in range({count})))"""
LONG_TASKS = """window.longTasks = [];
new PerformanceObserver(list => window.longTasks.push(...list.getEntries().map(one => one.duration)))
  .observe({type: 'longtask', buffered: true});"""
STATUS = "document.querySelector('.jp-AgentBox-status')?.textContent.trim()"


class Watch:
    """What one page uses."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")

    def _metrics(self) -> dict[str, float]:
        return {one["name"]: one["value"] for one in self._session.send("Performance.getMetrics")["metrics"]}

    @property
    def heap(self) -> float:
        """What JavaScript holds, in MB, once the garbage is collected."""
        self._session.send("HeapProfiler.collectGarbage")
        return self._metrics()["JSHeapUsedSize"] / 1e6

    def idle(self) -> dict[str, float]:
        """Look on for a while; return the part of a core that the page uses, and its longest task in milliseconds."""
        self.page.wait_for_timeout(2_000)
        self.page.evaluate("window.longTasks = []")
        before = self._metrics()
        self.page.wait_for_timeout(IDLE * 1000)
        after = self._metrics()
        share = (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"])
        return {"idle, % of a core": share * 100, "idle, longest task, ms": self.longest()}

    def longest(self) -> float:
        """Return the longest task since the last look, in milliseconds; 0 if none took 50."""
        found: float = self.page.evaluate("Math.max(0, ...window.longTasks.splice(0))")
        return found

    def until(self, count: int, began: float) -> float:
        """Wait until the page counts so many requests; return the seconds since `began`."""
        self.page.wait_for_function(f"{STATUS} === '{count}'", timeout=180_000, polling=50)
        return time.monotonic() - began


def measure(lab: Lab, browser: Browser, count: int, *, is_open: bool, batch: bool) -> dict[str, float]:
    """Let `count` calls wait in a notebook, look at the page, decide half of them and interrupt the rest."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(LONG_TASKS)
    path = f"many_{time.monotonic_ns()}.ipynb"
    lab.write_notebook(path, ASK.format(count=count))
    page.goto(f"{lab.url}lab/workspaces/{time.monotonic_ns()}/tree/{path}?token={lab.token}")
    page.wait_for_function(KERNEL_IS_READY, timeout=90_000)
    watch = Watch(page)
    if is_open:
        page.locator(".jp-AgentBox-status button").click()
    found = {"heap before, MB": watch.heap}
    page.locator(".jp-Notebook .cm-content").first.click()
    began = time.monotonic()
    page.keyboard.press("Control+Enter")
    found["until all are counted, s"] = watch.until(count, began)
    found["longest task meanwhile, ms"] = watch.longest()
    found |= watch.idle()
    found["heap with all, MB"] = watch.heap
    began = time.monotonic()
    half = pending(lab)[: count // 2]
    found["listed by REST, s"] = time.monotonic() - began
    began = time.monotonic()
    decide(lab, half, batch=batch)
    found[f"{len(half)} rejected by REST, s"] = time.monotonic() - began
    found["until the page shows it, s"] = watch.until(count - len(half), began)
    found["longest task of it, ms"] = watch.longest()
    began = time.monotonic()
    [session] = lab.ask("api/sessions")
    lab.ask(f"api/kernels/{session['kernel']['id']}/interrupt", {})
    found["interrupt until none waits, s"] = watch.until(0, began)
    found["longest task of that, ms"] = watch.longest()
    page.wait_for_timeout(2_000)
    found["heap after, MB"] = watch.heap
    lab.shut_down_kernels()
    page.close()
    return found


def pending(lab: Lab) -> list[Any]:
    """Return all requests that wait."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = lab.ask(f"jupyter-agentbox/approvals?status=pending&limit=200&cursor={cursor}")
        found += page["approvals"]
        cursor = page["next"]
        if not cursor:
            return found


def decide(lab: Lab, requests: list[Any], *, batch: bool) -> None:
    """Reject requests: all at once, or one after the other."""
    answers = [{"id": one["id"], "decision": "reject_once", "digest": one["call"]["digest"]} for one in requests]
    if batch:
        body = {"decisions": answers}
        assert {one["code"] for one in lab.ask("jupyter-agentbox/approvals/decisions", body)["decisions"]} <= {200}
        return
    for one, answer in zip(requests, answers, strict=True):
        answer.pop("id")
        lab.ask(f"jupyter-agentbox/approvals/{one['id']}/decision", answer)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--one-by-one", action="store_true", help="decide with a request of HTTP for each")
    parser.add_argument("--closed", action="store_true", help="leave the side panel closed")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        running_lab(Path(directory)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        found = measure(lab, browser, options.count, is_open=not options.closed, batch=not options.one_by_one)
        for what, value in found.items():
            print(f"{what:36} {value:10,.2f}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
