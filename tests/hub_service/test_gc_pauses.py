"""What stays in memory is not looked through for garbage again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from jupyter_agentbox.hub.gc_pauses import AGAIN, LONG, LongCollections, kept_short


class Watch:
    """A clock."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def thawed() -> Iterator[None]:
    """Set nothing aside before the test, and leave nothing so."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def collected(collections: LongCollections, watch: Watch, seconds: float, generation: int = 2) -> int:
    """Return how many objects are set aside after a collection that took so long."""
    collections("start", {"generation": generation})
    watch.time += seconds
    collections("stop", {"generation": generation})
    return gc.get_freeze_count()


@pytest.mark.usefixtures("thawed")
def test_what_is_left_after_a_long_collection_is_set_aside_and_looked_at_again_later() -> None:
    watch = Watch()
    collections = LongCollections(watch)
    assert collected(collections, watch, LONG / 2) == 0
    assert collected(collections, watch, 2 * LONG, generation=1) == 0
    assert collected(collections, watch, 2 * LONG) > 0
    assert collected(collections, watch, LONG / 2) > 0
    watch.time += AGAIN
    assert collected(collections, watch, LONG / 2) == 0


@pytest.mark.usefixtures("thawed")
def test_garbage_that_was_set_aside_is_freed_once_it_is_looked_at_again() -> None:
    class Ring:
        """Refers to itself."""

        alive = 0

        def __init__(self) -> None:
            self.ring = self
            Ring.alive += 1

        def __del__(self) -> None:
            Ring.alive -= 1

    watch = Watch()
    ring = Ring()
    with kept_short(watch):
        gc.freeze()
        del ring
        gc.collect()
        assert Ring.alive == 1
        watch.time += 2 * AGAIN
        gc.collect()
        assert Ring.alive == 0
    assert all(not isinstance(one, LongCollections) for one in gc.callbacks)
