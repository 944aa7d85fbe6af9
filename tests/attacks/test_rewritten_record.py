from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jupyter_agentbox.audit_sinks.spool import Spool
from jupyter_agentbox.core.audit_trail import TrailEnd, check_trail
from jupyter_agentbox.services.audit.deliveries import Delivery, Receipt, Waiting

from .attack import Attack

ATTACK = Attack(
    "give an audit sink another record than that of a call, by writing over it while it waits on disk",
    plain=False,
    control="test_a_server_that_hands_over_what_the_disk_says_reports_what_the_attacker_wrote",
    note="of a server that runs; what one left that is gone can be changed, and the check of the chain shows it",
)


class Place:
    """Takes no record before the attacker was there."""

    name = "the place"

    def __init__(self) -> None:
        self.is_up = False
        self.was_asked = asyncio.Event()
        self.lines: list[bytes] = []

    async def send(self, lines: Sequence[bytes]) -> None:
        self.was_asked.set()
        if not self.is_up:
            raise OSError("it is down")
        self.lines += lines


class Trusting(Delivery):
    """Reads again what it hands over, so that it need not keep it in memory."""

    def __init__(self, place: Place, *rest: Any, **options: Any) -> None:
        super().__init__(place, *rest, **options)
        self._place = place

    async def _hand_over(self, lines: Sequence[bytes], waiting: Waiting) -> Any:
        await super()._hand_over(lines[:1], waiting)  # the receiver comes back meanwhile
        self._place.lines.clear()
        return await super()._hand_over(waiting.read(1_000_000), waiting)


async def attack(kind: Callable[..., Delivery], directory: Path) -> bytes:
    """Return what the place has of a call that was made."""
    place = Place()
    spool = Spool.of(directory, address="x", chain="c1", most_bytes=10_000)
    delivery = kind(place, spool, pause=0)
    delivery.start()
    _, made = TrailEnd().then({"chain": "c1", "event": "decided", "tool": "drop"})
    receipt: Receipt = delivery.put(made)
    async with asyncio.timeout(60):
        await place.was_asked.wait()
        spool.path.write_bytes(TrailEnd().then({"chain": "c1", "event": "decided", "tool": "list"})[1] + b"\n")
        place.is_up = True
        await receipt.delivered
        await delivery.aclose(1)
    (chain,), strange = check_trail([line.decode() for line in place.lines])
    assert (chain.is_whole, strange) == (True, 0)  # no check finds the one that was written over
    return place.lines[0]


def test_a_server_that_hands_over_what_the_disk_says_reports_what_the_attacker_wrote(tmp_path: Path) -> None:
    assert b'"list"' in asyncio.run(attack(Trusting, tmp_path))


def test_what_was_made_arrives(tmp_path: Path) -> None:
    assert b'"drop"' in asyncio.run(attack(Delivery, tmp_path))
