from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, create_engine, select

from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.storage.leases import (
    FORGOTTEN,
    GRACE,
    HEARTBEAT,
    SILENCE,
    FileLockLeases,
    HeartbeatLeases,
    Leases,
    owners_for,
)
from jupyter_agentbox.storage.schema import grants, migrate, owners
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


def own_something(connection: Connection, owner: str) -> None:
    connection.execute(grants.insert().values(id=owner, owner=owner, used=0, last_used_at=0, content=b""))


def of_grants(owner: str, clock: FakeClock, grace: float = 0.0) -> HeartbeatLeases:
    """Return leases of a process that owns what is in the table with the fewest columns."""
    return HeartbeatLeases(owner=owner, clock=clock, grace=grace, owned=grants.c.owner)


def seen_at(connection: Connection, owner: str) -> int | None:
    return connection.scalar(select(owners.c.seen_at).where(owners.c.id == owner))


def test_signs_of_life_are_given_while_something_is_owned_and_no_longer(
    connection: Connection, clock: FakeClock
) -> None:
    one = of_grants("one", clock)
    one.connect(connection)
    assert one.interval is None

    clock.advance(10 * SILENCE)
    own_something(connection, "one")
    one.hold(connection)
    first = seen_at(connection, "one")
    assert (first, one.interval) == (microseconds(clock.now()), HEARTBEAT)
    clock.advance(HEARTBEAT)
    one.beat(connection)
    second = seen_at(connection, "one")
    assert (second, one.interval) == (microseconds(clock.now()), HEARTBEAT)

    connection.execute(grants.delete())
    clock.advance(HEARTBEAT)
    one.beat(connection)
    assert (seen_at(connection, "one"), one.interval) == (second, None)


def test_who_owned_nothing_for_long_is_alive_from_the_moment_at_which_it_does(
    connection: Connection, clock: FakeClock
) -> None:
    one, other = of_grants("one", clock), of_grants("other", clock)
    for leases in (one, other):
        leases.connect(connection)
    clock.advance(FORGOTTEN + 1)
    one.sweep(connection)
    assert seen_at(connection, "other") is None

    own_something(connection, "other")
    other.hold(connection)

    assert not one.is_gone(connection, "other")
    assert not one.is_forgotten(connection, "other")


def test_who_may_have_had_no_reason_for_a_sign_of_life_is_forgotten_after_a_day(
    connection: Connection, clock: FakeClock
) -> None:
    one, other = of_grants("one", clock), of_grants("other", clock)
    other.connect(connection)
    clock.advance(FORGOTTEN - 1)
    one.sweep(connection)
    assert not one.is_forgotten(connection, "other")
    clock.advance(2)
    assert one.is_forgotten(connection, "other")
    other.claim(connection)
    assert not one.is_forgotten(connection, "other")
    other.leave(connection)
    assert one.is_forgotten(connection, "other")


@pytest.fixture
def transactions(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path / 'approvals.db'}")
    with engine.begin() as connection:
        migrate(connection)
    yield engine
    engine.dispose()


def test_a_sign_of_life_that_was_rolled_back_is_given_again(transactions: Engine, clock: FakeClock) -> None:
    one = of_grants("one", clock)
    with transactions.connect() as connection:
        one.hold(connection)
        connection.rollback()
        own_something(connection, "one")
        one.hold(connection)
        connection.commit()

        assert seen_at(connection, "one") is not None


def test_after_the_sleep_of_its_machine_a_process_gives_a_sign_with_the_next_thing_that_it_owns(
    transactions: Engine, clock: FakeClock
) -> None:
    one = of_grants("one", clock)
    with transactions.begin() as connection:
        own_something(connection, "one")
        one.hold(connection)
        one.beat(connection)
    clock.advance(10 * SILENCE)
    with transactions.begin() as connection:
        one.hold(connection)

        assert seen_at(connection, "one") == microseconds(clock.now())


def test_who_may_be_gone_is_watched_and_what_was_found_holds_for_a_later_connection(
    connection: Connection, clock: FakeClock
) -> None:
    """A process that closes its connection between two looks would else begin anew with each of them."""
    other, one = of_grants("other", clock), of_grants("one", clock, GRACE)
    other.connect(connection)
    clock.advance(SILENCE + 60)
    one.connect(connection)
    assert not one.is_gone(connection, "other")
    watched = 0
    while one.interval is not None:
        clock.advance(one.interval)
        one.beat(connection)
        watched += 1

    one.connect(connection)
    assert watched == GRACE / HEARTBEAT
    assert one.is_gone(connection, "other")
    other.claim(connection)  # it was frozen
    assert not one.is_gone(connection, "other")


def test_who_gives_signs_of_life_is_watched_no_longer(connection: Connection, clock: FakeClock) -> None:
    other, one = of_grants("other", clock), of_grants("one", clock, GRACE)
    for leases in (other, one):
        leases.connect(connection)
    assert not one.is_gone(connection, "other")
    assert one.is_watching

    clock.advance(HEARTBEAT)
    other.claim(connection)
    one.beat(connection)
    assert not one.is_watching
    clock.advance(HEARTBEAT)
    other.claim(connection)
    assert not one.is_gone(connection, "other")
    assert not one.is_watching


def test_a_watch_begins_anew_after_an_outage(connection: Connection, clock: FakeClock) -> None:
    other, one = of_grants("other", clock), of_grants("one", clock, GRACE)
    for leases in (other, one):
        leases.connect(connection)
    assert not one.is_gone(connection, "other")
    clock.advance(GRACE + SILENCE)  # neither had the database, behind a pooler that kept the connections
    one.beat(connection)
    assert one.is_watching
    assert not one.is_gone(connection, "other")

    other.claim(connection)
    one.beat(connection)
    assert not one.is_watching
