from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine

from jupyter_agentbox.storage.leases import (
    GRACE,
    HEARTBEAT,
    SILENCE,
    FileLockLeases,
    HeartbeatLeases,
    Leases,
    owners_for,
)
from jupyter_agentbox.storage.schema import migrate, owners
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
    for leases in made:
        leases.release()


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


def test_after_a_new_connection_nobody_counts_as_gone_before_all_had_the_chance_to_say_that_they_are_there(
    connection: Connection, clock: FakeClock
) -> None:
    other, one = (HeartbeatLeases(owner=owner, clock=clock, grace=GRACE) for owner in ("other", "one"))
    other.connect(connection)
    clock.advance(SILENCE + 60)  # the database was away
    one.connect(connection)
    for _ in range(11):
        one.sweep(connection)
        assert not one.is_gone(connection, "other")
        clock.advance(HEARTBEAT)
        one.claim(connection)
    other.claim(connection)  # late, and in time
    clock.advance(HEARTBEAT)
    assert not one.is_gone(connection, "other")

    for _ in range(6):
        clock.advance(HEARTBEAT)
        one.claim(connection)
    assert one.is_gone(connection, "other")
    one.connect(connection)
    assert not one.is_gone(connection, "other")


def test_so_it_is_after_an_outage_in_which_a_pooler_kept_the_connection(
    connection: Connection, clock: FakeClock
) -> None:
    """Who was kept waiting itself cannot say of others that they were silent of their own accord."""
    other, one = (HeartbeatLeases(owner=owner, clock=clock, grace=GRACE) for owner in ("other", "one"))
    for leases in (other, one):
        leases.connect(connection)
    for _ in range(20):  # for longer than the grace of a new connection
        clock.advance(HEARTBEAT)
        other.claim(connection)
        one.claim(connection)
    clock.advance(SILENCE + 10)  # neither had the database

    assert not one.is_gone(connection, "other")
    one.claim(connection)
    one.sweep(connection)
    assert not one.is_gone(connection, "other")
    other.claim(connection)
    for _ in range(13):
        clock.advance(HEARTBEAT)
        one.claim(connection)
    assert one.is_gone(connection, "other")


def test_the_time_is_that_of_the_database(make_postgresql_database: Callable[[], str]) -> None:
    engine = create_engine(make_postgresql_database())
    early, late = FakeClock(), FakeClock()
    late.advance(600)
    one, other = HeartbeatLeases(owner="one", clock=late), HeartbeatLeases(owner="other", clock=early)
    with engine.begin() as connection:
        migrate(connection)
        one.connect(connection)
        other.connect(connection)
        one.sweep(connection)

        assert not one.is_gone(connection, "other")
        assert not other.is_gone(connection, "one")
        connection.execute(owners.update().values(seen_at=owners.c.seen_at - int(SILENCE * 1_000_000) - 1))
        assert one.is_gone(connection, "other")
    engine.dispose()


def test_who_sweeps_stays(connection: Connection, clock: FakeClock) -> None:
    owners = HeartbeatLeases(owner="one", clock=clock)
    owners.claim(connection)
    clock.advance(SILENCE + 1)
    owners.sweep(connection)
    clock.advance(-SILENCE)

    assert not owners.is_gone(connection, "one")


@pytest.mark.parametrize("grace", [0.0, GRACE])
def test_who_says_that_it_goes_is_gone_at_once_whatever_it_says_later(
    connection: Connection, clock: FakeClock, grace: float
) -> None:
    one = HeartbeatLeases(owner="one", clock=clock, grace=grace)
    other = HeartbeatLeases(owner="other", clock=clock, grace=grace)
    one.connect(connection)
    other.connect(connection)
    assert not one.is_gone(connection, "other")

    other.leave(connection)
    other.claim(connection)

    assert one.is_gone(connection, "other")
    assert not other.is_gone(connection, "one")
