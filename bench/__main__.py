"""``python -m bench``: runs our package and its peers in turn, prints tables, writes JSON."""

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

from jupyter_agentbox.testing import MockModelServer

from .peers import PEERS, Peer, interpreter_of

HERE = Path(__file__).parent
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
    "pipeline, mock generator": 0.02,
    "a turn of one message": 0.5,
    "first turn, with import and start": 1.0,
}
#: The time of this is taken off before the ratio is made: what the server itself takes to start and list its tools.
FLOORS = {"tool API of 200 tools": "tool API of 1 tool (the start)"}

#: Of what has no counterpart: a call with nothing around it, and one from a cell, which is recorded.
BARE, CELL = "bare MCP call", "the same, from a cell"
#: How many times the first the second may take.
TIMES_BARE = 4.0
#: From the model's code to its output being sent back, and the same code without an agent.
TURNS_CODE, DIRECT_CODE = "from a model's code to its output, by a rule", "the same code, run directly"
#: How many milliseconds the first may take longer.
MORE_IN_A_TURN = 15.0

HEAD = (
    f"| {'work':38} | {'ours':>9} | {'p95':>9} | {'peer':>9} | {'p95':>9} | {'ratio':>6} | {'best':>6} | wanted |",
    f"|{'-' * 40}|{'-' * 11}|{'-' * 11}|{'-' * 11}|{'-' * 11}|{'-' * 8}|{'-' * 8}|{'-' * 8}|",
)

Samples = dict[str, list[float]]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="how often each package runs, A B A B (default: 2, or 3)")
    parser.add_argument("--peers", type=Path, help="where the peers are installed; without, only ours is run")
    parser.add_argument("--only", action="append", choices=[*(peer.name for peer in PEERS), "alone"], help="only this")
    parser.add_argument("--output", type=Path, default=Path("bench.json"), help="where the samples are written")
    options = parser.parse_args()
    found: dict[str, Samples] = {}
    for peer in PEERS:
        if not options.only or peer.name in options.only:
            python = interpreter_of(peer, options.peers) if options.peers is not None else None
            ours, theirs = compare(peer, python, options.rounds or peer.rounds)
            found |= {f"ours, beside {peer.title}": ours, peer.title: theirs}
            print("\n".join(table(peer, ours, theirs)), flush=True)
    if not options.only or "alone" in options.only:
        alone: Samples = defaultdict(list)
        add(alone, run(sys.executable, "alone.py"), "what has no counterpart")
        found["alone"] = alone
        print("\n".join(table_alone(alone)))
    machine = {"platform": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()}
    options.output.write_text(json.dumps({"machine": machine, **found}, indent=1))


def compare(peer: Peer, python: Path | None, rounds: int) -> tuple[Samples, Samples]:
    """Have both do the same work in turn. The peer gives nothing if there is no interpreter that has it."""
    ours: Samples = defaultdict(list)
    theirs: Samples = defaultdict(list)
    with MockModelServer(answer=lambda _: [model.message("hello", "final_answer")]) as model:
        for number in range(1, rounds + 1):
            add(ours, run(sys.executable, peer.script, "jupyter_agentbox", model.base_url), f"round {number}: ours")
            if python is not None:
                title = f"round {number}: {peer.title}"
                add(theirs, run(str(python), peer.script, peer.name, model.base_url), title)
    return ours, theirs


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


def table(peer: Peer, ours: Samples, theirs: Samples) -> list[str]:
    """Return the results beside a peer for people."""
    beside = peer.title if theirs else f"{peer.title}, which is NOT INSTALLED: our figures alone"
    lines = ["", f"Beside {beside}. Medians and 95th percentiles in milliseconds; memory in MB.", "", *HEAD]
    return [*lines, *(row(name, ours, theirs.get(name)) for name in ours)]


def row(name: str, ours: Samples, theirs: list[float] | None) -> str:
    """Return a line of the table."""
    values = ours[name]
    text = f"| {name:38} | {statistics.median(values):9.2f} | {p95(values):9.2f} |"
    if not theirs:
        return f"{text} {'':9} | {'':9} | {'':6} | {'':6} | {'':6} |"
    off = statistics.median(ours[FLOORS[name]]) if name in FLOORS else 0.0
    ratio, best = (
        (value(values) - off) / value(theirs) if value(theirs) else 0.0 for value in (statistics.median, min)
    )
    wanted = WANTED.get(name)
    mark = "" if wanted is None else f"{wanted:.2f}"
    missed = "" if wanted is None or ratio <= wanted else " missed"
    text += f" {statistics.median(theirs):9.2f} | {p95(theirs):9.2f} | {ratio:6.3f} | {best:6.3f}"
    return f"{text} | {mark:>6} |{missed}"


def table_alone(alone: Samples) -> list[str]:
    """Return what has no counterpart for people."""
    lines = ["", "Without a counterpart:", ""]
    for name, values in alone.items():
        lines.append(f"| {name:50} | {statistics.median(values):9.2f} | {p95(values):9.2f} | best {min(values):9.2f} |")
    if BARE in alone and CELL in alone:
        times, best = (value(alone[CELL]) / value(alone[BARE]) for value in (statistics.median, min))
        told = f"{times:.1f} times the bare one, {best:.1f} times at best; wanted: {TIMES_BARE:g}"
        lines += ["", f"A call from a cell takes {told}."]
    if TURNS_CODE in alone and DIRECT_CODE in alone:
        more, best = (value(alone[TURNS_CODE]) - value(alone[DIRECT_CODE]) for value in (statistics.median, min))
        told = f"{more:.1f} ms longer than the same code alone, {best:.1f} ms at best; wanted: {MORE_IN_A_TURN:g}"
        lines += ["", f"Code of a turn takes {told}."]
    return lines


if __name__ == "__main__":
    main()
