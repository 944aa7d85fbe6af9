from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("take all memory with many processes (`memory_limit` is set)", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import os

    taken, size = [], 320 << 20
    fed, feed = os.pipe()
    alive, end = os.pipe()
    for _ in range(facts["memory_limit"] // size + 2):
        taken.append(os.fork())
        if taken[-1] == 0:
            os.close(end)
            kept = bytearray(size)
            kept[::4096] = b"x" * (size // 4096)  # a byte of each page: Linux gives all of it
            os.write(feed, b"x")
            os.close(feed)
            os.read(alive, 1)  # until all have what they want
            os._exit(0)
    os.close(feed)
    had = 0
    while had < len(taken) and os.read(fed, 1):
        had += 1
    os.close(end)
    ended = {os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in taken}
    assert ended == {0}, ended
    return had


def test_memory_of_all_processes_has_its_limit_and_there_is_a_kernel_afterwards(stage: Stage) -> None:
    limited = stage.limited()
    limited.expect(ATTACK, attack)
    assert limited.run(alive) == "alive"


def alive(facts: dict[str, Any]) -> Any:
    return "alive"
