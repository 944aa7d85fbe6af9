"""How long it takes to find what a thousand rules say of a call, and to see that no file of rules has changed.

Run ``python -m bench.rules``. Prints microseconds, the median of many.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_agentbox.core.calls import JsonObject, Origin, ToolCall
from jupyter_agentbox.core.rule_text import write_text
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.storage.rule_files import RuleFiles

_RULES = 1000
_TIMES = 2000
_CALL = ToolCall(
    server="server7",
    tool="list_orders",
    arguments={"path": "/data/orders/2026", "limit": 50},
    origin=Origin(kernel_id="k1", notebook_path="work/orders.ipynb"),
)

#: What the rules of a file look like.
_KINDS: dict[str, Callable[[int], JsonObject]] = {
    "a rule a server": lambda n: {"server": f"server{n}", "tool": "list_*"},
    "patterns of servers": lambda n: {"server": f"*r{n}", "tool": "list_*"},
    "patterns that all match, with arguments that do not": lambda n: {
        "server": "server*",
        "tool": "list_*",
        "arguments": {"path": f"/data/{n}/*", "limit": {"max": 100}},
    },
    "one tool, by arguments and notebook": lambda n: {
        "server": "server7",
        "tool": "list_orders",
        "notebook": f"work/{n}/*",
        "arguments": {"limit": [n, {"max": -1}]},
    },
}


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        for kind, make in _KINDS.items():
            path = Path(directory) / f"{len(kind)}.json"
            path.write_text(write_text([{"effect": "allow", **make(number)} for number in range(_RULES)]), "utf-8")
            files = RuleFiles(user=path)
            started = time.perf_counter()
            files.load()
            read = time.perf_counter() - started
            time.sleep(2.1)  # a file that has just changed is looked at more closely
            files.load()
            policies = PolicyManager(source=files)
            print(
                f"{_RULES} rules, {kind}: {_median(lambda: policies.evaluate(_CALL)):.1f} µs a call,"  # noqa: B023
                f" {_median(files.load):.1f} of it to look at the file; {read * 1e3:.0f} ms to read it"
            )


def _median(what: Callable[[], object]) -> float:
    what()
    times = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        what()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


if __name__ == "__main__":
    main()
