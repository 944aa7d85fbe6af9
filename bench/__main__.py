"""``python -m bench``: runs both packages in turn, prints a table, writes JSON. ``make bench`` makes what it needs."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
PEER = "ipybox==0.9.2"
#: Work -> the ratio to the peer's median that we want to reach.
WANTED = {
    "import": 0.25,
    "start to first result": 0.35,
    "warm execute": 0.15,
    "call, no approval": 0.8,
    "call, approval accepted at once": 1.0,
    "100 calls in a cell, approvals": 0.9,
    "50 calls from 16 threads, approvals": 0.8,
    "50 calls by gather, approvals": 0.8,
    "first tool import": 0.05,
    "first call, server start included": 0.6,
    "tool API of 200 tools": 0.05,
    "10,000 flushed prints": 0.7,
    "10,000 displays": 0.5,
    "cancel": 0.15,
    "memory, idle": 0.6,
}
#: The time of this is taken off before the ratio is made: what the server itself takes to start and list its tools.
FLOORS = {"tool API of 200 tools": "tool API of 1 tool (the start)"}

#: Of what has no counterpart: a call with nothing around it, and one from a cell, which is recorded.
BARE, CELL = "bare MCP call", "the same, from a cell"
#: How many times the first the second may take.
TIMES_BARE = 4.0

Samples = dict[str, list[float]]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="how often each package runs (default: 2, A B A B)")
    parser.add_argument("--peer-python", type=Path, help="an interpreter that has the peer; without, only ours is run")
    parser.add_argument("--output", type=Path, default=Path("bench.json"), help="where the samples are written")
    options = parser.parse_args()
    ours: Samples = defaultdict(list)
    peers: Samples = defaultdict(list)
    for number in range(options.rounds):
        add(ours, run(sys.executable, "side.py", "jupyter_agentbox"), f"round {number + 1}: jupyter_agentbox")
        if options.peer_python is not None:
            add(peers, run(str(options.peer_python), "side.py", "ipybox"), f"round {number + 1}: {PEER}")
    alone: Samples = defaultdict(list)
    add(alone, run(sys.executable, "alone.py"), "what has no counterpart")
    machine = {"platform": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()}
    options.output.write_text(json.dumps({"machine": machine, "ours": ours, PEER: peers, "alone": alone}, indent=1))
    print(table(ours, peers, alone))


def run(python: str, script: str, *args: str) -> Samples:
    """Run a script of this directory and return its samples."""
    environment = {**os.environ}
    if python == sys.executable:
        environment["PYTHONPATH"] = str(HERE.parent)
    done = subprocess.run(
        [python, str(HERE / script), *args], stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    found: Samples = json.loads(done.stdout.splitlines()[-1])
    return found


def add(all_samples: Samples, found: Samples, what: str) -> None:
    """Add a run's samples, and say that it is done."""
    print(what, file=sys.stderr)
    for name, values in found.items():
        all_samples[name] += values


def p95(values: list[float]) -> float:
    """Return the value that 95 of 100 do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * 0.95) - 1)]


def table(ours: Samples, peers: Samples, alone: Samples) -> str:
    """Return the results for people."""
    lines = [
        "Medians and 95th percentiles in milliseconds; memory in MB.",
        "",
        f"| {'work':38} | {'ours':>9} | {'p95':>9} | {'peer':>9} | {'p95':>9} | {'ratio':>6} | {'wanted':>6} |",
        f"|{'-' * 40}|{'-' * 11}|{'-' * 11}|{'-' * 11}|{'-' * 11}|{'-' * 8}|{'-' * 8}|",
    ]
    for name, values in ours.items():
        peer = peers.get(name)
        median = statistics.median(values)
        row = f"| {name:38} | {median:9.2f} | {p95(values):9.2f} |"
        if peer:
            off = statistics.median(ours[FLOORS[name]]) if name in FLOORS else 0.0
            peers_median = statistics.median(peer)
            ratio = (median - off) / peers_median if peers_median else 0.0
            wanted = WANTED.get(name)
            mark = "" if wanted is None else f"{wanted:.2f}"
            missed = "" if wanted is None or ratio <= wanted else " missed"
            row += f" {peers_median:9.2f} | {p95(peer):9.2f} | {ratio:6.3f} | {mark:>6} |{missed}"
        else:
            row += f" {'':9} | {'':9} | {'':6} | {'':6} |"
        lines.append(row)
    lines += ["", "Without a counterpart:", ""]
    for name, values in alone.items():
        lines.append(f"| {name:42} | {statistics.median(values):9.2f} | {p95(values):9.2f} | best {min(values):9.2f} |")
    if BARE in alone and CELL in alone:
        times, best = (value(alone[CELL]) / value(alone[BARE]) for value in (statistics.median, min))
        told = f"{times:.1f} times the bare one, {best:.1f} times at best; wanted: {TIMES_BARE:g}"
        lines += ["", f"A call from a cell takes {told}."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
