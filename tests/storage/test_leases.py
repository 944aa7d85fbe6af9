from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine

from jupyter_agentbox.storage.leases import HEARTBEAT, SILENCE, FileLockLeases, HeartbeatLeases, Leases, owners_for
from jupyter_agentbox.storage.schema import migrate
from jupyter_agentbox.testing import FakeClock

Make = Callable[[str], Leases]


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection)
        yield connection
    engine.dispose()


@pytest.fixture(params=["locks", "signs of life"])
def make(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Make]:
    made: list[Leases] = []

    def make(owner: str) -> Leases:
        path = tmp_path / "approvals.db" if request.param == "locks" else None
        made.append(owners_for(path, owner=owner, clock=clock))
        return made[-1]

    yield make
    for owners in made:
        owners.release()


def test_who_claims_is_alive(make: Make, connection: Connection) -> None:
    one, other = make("one"), make("other")
    one.claim(connection)
    other.claim(connection)

    assert not one.is_gone(connection, "other")
    assert not other.is_gone(connection, "one")


def test_who_never_claimed_is_gone(make: Make, connection: Connection) -> None:
    assert make("one").is_gone(connection, "other")


def test_who_let_go_is_gone_and_leaves_no_trace(make: Make, connection: Connection, clock: FakeClock) -> None:
    one, other = make("one"), make("other")
    other.claim(connection)
    other.release()
    clock.advance(SILENCE + 1)
    one.claim(connection)

    assert one.is_gone(connection, "other")
    one.sweep(connection)
    assert one.is_gone(connection, "other")
    assert not other.is_gone(connection, "one")


def test_a_claim_can_be_repeated(make: Make, connection: Connection, clock: FakeClock) -> None:
    one, other = make("one"), make("other")
    for _ in range(10):
        one.claim(connection)
        clock.advance(HEARTBEAT)
        other.sweep(connection)

    assert not other.is_gone(connection, "one")


def test_a_missed_sign_of_life_is_forgiven(connection: Connection, clock: FakeClock) -> None:
    owners = HeartbeatLeases(owner="one", clock=clock)
    owners.claim(connection)
    clock.advance(3 * HEARTBEAT)

    assert not owners.is_gone(connection, "one")


def test_a_lock_file_that_was_removed_is_made_again(tmp_path: Path, connection: Connection) -> None:
    owners = FileLockLeases(tmp_path, owner="one")
    owners.claim(connection)
    (tmp_path / "one.lock").unlink()

    assert FileLockLeases(tmp_path, owner="other").is_gone(connection, "one")
    owners.claim(connection)
    assert not FileLockLeases(tmp_path, owner="other").is_gone(connection, "one")
    owners.release()


def test_an_owner_that_cannot_be_looked_at_counts_as_alive(tmp_path: Path, connection: Connection) -> None:
    (tmp_path / "other.lock").mkdir()

    assert not FileLockLeases(tmp_path, owner="one").is_gone(connection, "other")


def test_who_sweeps_stays(connection: Connection, clock: FakeClock) -> None:
    owners = HeartbeatLeases(owner="one", clock=clock)
    owners.claim(connection)
    clock.advance(SILENCE + 1)
    owners.sweep(connection)
    clock.advance(-SILENCE)

    assert not owners.is_gone(connection, "one")
