"""``python -m bench.many``: what a page does while a thousand calls wait, and how fast they are decided.

A notebook in JupyterLab, in Chromium, makes 1,000 calls that wait (``--count``). Half of them (``--decide``) are
rejected over the REST API, and an interrupt withdraws the others. The page is watched before they come, as they come,
while they wait, as they are decided and withdrawn, and after that.

What the page uses is told in time of a processor, which grows little with what else the machine does; how long
something takes is told in seconds of the clock, which do. What exceeds `MOST` or `KEPT` makes the command fail.
``docs/explanation/many-requests.md`` has what it measured, and when.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tests.browser.conftest import CHROMIUM, CHROMIUM_OPTIONS
from tests.browser.lab import Lab, running_lab
from tests.browser.person import KERNEL_IS_READY

#: Seconds for which an idle page is watched, and for which one is right after the last request came.
IDLE = 10
FIRST = 15
#: What the measures must not exceed: the longest tasks in ms, shares of a core in %, the interrupt in seconds.
MOST = {
    "arrival: longest task, ms": 200.0,
    "decisions: longest task, ms": 200.0,
    "interrupt: longest task, ms": 200.0,
    "idle, main thread, % of a core": 2.0,
    "idle, process, % of a core": 2.0,
    "interrupt until none waits, s": 3.0,
}
#: How many MB may stay on the heap for each withdrawn request, whose card's last state is in the notebook.
KEPT = 0.01
#: Lines that are printed of each profile.
LINES = 25
ASK = """import asyncio
from jupyter_agentbox import tools
async def ask(number):
    try:
        await tools.shop.restock.aio(product_id=1 + number % 8, quantity=1 + number)
    except Exception:
        pass
await asyncio.gather(*(ask(number) for number in range({count})))"""
PENDING = "jupyter-agentbox/approvals?status=pending&limit={limit}&cursor={cursor}"
CLEAR = "window.jupyterapp.shell.currentWidget.content.model.cells.get(0).outputs.clear()"
STATUS = "document.querySelector('.jp-AgentBox-status')?.textContent.trim()"


def processes() -> dict[str, psutil.Process]:
    """Return the server that this process started, and the kernel that the server did."""
    [server] = [each for each in psutil.Process().children() if "jupyterlab" in each.cmdline()]
    [kernel] = [each for each in server.children(recursive=True) if "ipykernel_launcher" in " ".join(each.cmdline())]
    return {"server": server, "kernel": kernel}


class Watch:
    """What one page uses. What it is measured at goes to `found`, and profiles, if they are wanted, to a folder."""

    def __init__(self, page: Page, profiles: Path | None = None) -> None:
        self.page = page
        self.found: dict[str, float] = {}
        self._profiles = profiles
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def _metrics(self) -> dict[str, float]:
        return {one["name"]: one["value"] for one in self._session.send("Performance.getMetrics")["metrics"]}

    @property
    def heap(self) -> float:
        """What JavaScript holds, in MB, once the garbage is collected."""
        self._session.send("HeapProfiler.collectGarbage")
        return self._metrics()["JSHeapUsedSize"] / 1e6

    def idle(self, when: str = "idle", *, settle: float = 5, seconds: float = IDLE) -> None:
        """Look on for a while; note which part of a core the page's main thread and its whole process use."""
        self.page.wait_for_timeout(settle * 1000)
        before = self._metrics()
        with self._profiled(when):
            self.page.wait_for_timeout(seconds * 1000)
        after = self._metrics()
        for name, metric in (("main thread", "TaskDuration"), ("process", "ProcessTime")):
            share = (after[metric] - before[metric]) / (after["Timestamp"] - before["Timestamp"])
            self.found[f"{when}, {name}, % of a core"] = share * 100

    @contextmanager
    def tasks(self, what: str) -> Iterator[None]:
        """Note how long the main thread works meanwhile, and on the longest task; and how long server and kernel do."""
        browser = self.page.context.browser
        assert browser is not None
        browser.start_tracing(page=self.page, categories=["toplevel"])
        before = {name: each.cpu_times() for name, each in processes().items()}
        with self._profiled(what):
            yield
        for name, each in processes().items():
            spent = each.cpu_times()
            self.found[f"{what}: {name}, s"] = spent.user + spent.system - before[name].user - before[name].system
        events = json.loads(browser.stop_tracing())["traceEvents"]
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        tasks = [
            event["tdur"] / 1000
            for event in events
            if event["name"] == "ThreadControllerImpl::RunTask"
            and "tdur" in event
            and names.get((event["pid"], event["tid"])) == "CrRendererMain"
        ]
        self.found[f"{what}: main thread, s"] = sum(tasks) / 1000
        self.found[f"{what}: longest task, ms"] = max(tasks, default=0)

    @contextmanager
    def _profiled(self, what: str) -> Iterator[None]:
        """Write down meanwhile where the main thread is, which costs it some time, and print where it was longest."""
        if self._profiles is None:
            yield
            return
        self._session.send("Profiler.enable")
        self._session.send("Profiler.setSamplingInterval", {"interval": 500})
        self._session.send("Profiler.start")
        yield
        profile = self._session.send("Profiler.stop")["profile"]
        (self._profiles / f"{what}.cpuprofile").write_text(json.dumps(profile))
        print(f"{what}, ms of the main thread:")
        for place, spent in busiest(profile).most_common(LINES):
            print(f"{spent:10,.1f}  {place}")

    def until(self, count: int, began: float) -> float:
        """Wait until the page counts so many requests; return the seconds since `began`."""
        shown = str(count) if count else ""  # of none, the status bar shows no number
        self.page.wait_for_function(f"{STATUS} === '{shown}'", timeout=180_000, polling=50)
        return time.monotonic() - began


def busiest(profile: Any) -> Counter[str]:
    """Return how many ms each function of a profile ran, without what it called."""
    places = {}
    for node in profile["nodes"]:
        frame = node["callFrame"]
        file = frame["url"].rsplit("/", 1)[-1].partition("?")[0]
        places[node["id"]] = f"{frame['functionName'] or '(anonymous)'} {file}:{frame['lineNumber']}"
    spent: Counter[str] = Counter()
    for id, delta in zip(profile["samples"], profile["timeDeltas"], strict=True):
        spent[places[id]] += delta / 1000
    return Counter({place: ms for place, ms in spent.items() if not place.startswith(("(idle)", "(program)"))})


def measure(
    lab: Lab,
    browser: Browser,
    count: int,
    *,
    is_open: bool,
    batch: bool,
    share: float = 0.5,
    profiles: Path | None = None,
) -> dict[str, float]:
    """Let `count` calls wait in a notebook, look at the page, decide a share of them and interrupt the rest."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    path = f"many_{time.monotonic_ns()}.ipynb"
    lab.write_notebook(path, ASK.format(count=count))
    page.goto(f"{lab.url}lab/workspaces/{time.monotonic_ns()}/tree/{path}?token={lab.token}")
    page.wait_for_function(KERNEL_IS_READY, timeout=90_000)
    watch = Watch(page, profiles)
    found = watch.found
    if is_open:
        page.locator(".jp-AgentBox-status button").click()
    found["heap before, MB"] = watch.heap
    watch.idle("idle before")
    page.locator(".jp-Notebook .cm-content").first.click()
    with watch.tasks("arrival"):
        began = time.monotonic()
        page.keyboard.press("Control+Enter")
        found["until all are counted, s"] = watch.until(count, began)
    watch.idle(f"first {FIRST} s", settle=0, seconds=FIRST)
    watch.idle()
    found["heap with all, MB"] = watch.heap
    began = time.monotonic()
    decided = pending(lab)[: int(count * share)]
    found["listed by REST, s"] = time.monotonic() - began
    if decided:
        with watch.tasks("decisions"):
            began = time.monotonic()
            decide(lab, decided, batch=batch)
            found[f"{len(decided)} rejected by REST, s"] = time.monotonic() - began
            found["until the page shows it, s"] = watch.until(count - len(decided), began)
    with watch.tasks("interrupt"), ThreadPoolExecutor() as beside:
        [session] = lab.ask("api/sessions")
        kernel = f"api/kernels/{session['kernel']['id']}"
        began = time.monotonic()
        lab.ask(f"{kernel}/interrupt", {})
        none = when(beside, lambda: not lab.ask(PENDING.format(limit=1, cursor=""))["approvals"], began)
        found["interrupt until none waits, s"] = watch.until(0, began)
        found["  until the server has none, s"] = none.result()
    watch.idle("idle after")
    found["heap after, MB"] = watch.heap
    page.evaluate(CLEAR)
    found["heap without the cell's outputs, MB"] = watch.heap
    lab.shut_down_kernels()
    page.close()
    return found


def when(beside: ThreadPoolExecutor, is_so: Callable[[], bool], began: float) -> Future[float]:
    """Return what will be the seconds from `began` until something is so, to a tenth of a second."""

    def look() -> float:
        while not is_so():
            time.sleep(0.1)
        return time.monotonic() - began

    return beside.submit(look)


def pending(lab: Lab) -> list[Any]:
    """Return all requests that wait."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = lab.ask(PENDING.format(limit=200, cursor=cursor))
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
    parser.add_argument("--decide", type=float, default=0.5, metavar="SHARE", help="how many to decide, 0 to 1")
    parser.add_argument("--closed", action="store_true", help="leave the side panel closed")
    parser.add_argument("--profiles", type=Path, help="write CPU profiles of the page, for Chrome, into this folder")
    options = parser.parse_args()
    if options.profiles is not None:
        options.profiles.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        running_lab(Path(directory)) as lab,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        found = measure(
            lab,
            browser,
            options.count,
            is_open=not options.closed,
            batch=not options.one_by_one,
            share=options.decide,
            profiles=options.profiles,
        )
        browser.close()
    missed = show(found, options.count)
    if missed:
        sys.exit(f"not reached: {'; '.join(missed)}")


def show(found: dict[str, float], count: int) -> list[str]:
    """Print what was measured, beside what is the most that it may be; return what exceeds that."""
    most = {**MOST, "heap after, MB": found["heap before, MB"] + KEPT * count}
    print(f"{'':36} {'measured':>10} {'at most':>10}")
    for what, value in found.items():
        print(f"{what:36} {value:10,.2f} {f'{most[what]:,.2f}' if what in most else '':>10}", flush=True)
    return [what for what, value in found.items() if value > most.get(what, value)]


if __name__ == "__main__":
    main()
