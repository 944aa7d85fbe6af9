"""Records that wait on disk for a place that does not take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_agentbox.audit_sinks.spool import Spool

MOST = 1000


def spool_of(directory: Path, chain: str = "c1", *, most: int = MOST) -> Spool:
    return Spool.of(directory, address="https://log.example?key=secret", chain=chain, most_bytes=most)


def left(directory: Path) -> list[Spool]:
    return list(Spool.left_behind(directory, address="https://log.example?key=secret", most_bytes=MOST))


def test_what_was_kept_first_is_read_first_until_it_was_sent(tmp_path: Path) -> None:
    spool = spool_of(tmp_path)
    spool.append([b"1", b"2"])
    spool.append([b"3"])
    assert spool.read(4) == spool.read(4) == [b"1", b"2"]
    spool.sent([b"1", b"2"])
    assert spool.read(100) == [b"3"]
    spool.sent([b"3"])
    assert (spool.read(100), spool.path.stat().st_size) == ([], 0)
    spool.append([b"4"])
    assert spool.read(100) == [b"4"]
    spool.close()


def test_a_record_that_is_longer_than_what_is_wanted_is_read_whole(tmp_path: Path) -> None:
    spool = spool_of(tmp_path)
    spool.append([b"long" * 10, b"2"])
    assert spool.read(7) == [b"long" * 10]
    spool.close()


def test_what_is_too_much_is_refused_and_nothing_of_it_kept(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, most=5)
    spool.append([b"1"])
    with pytest.raises(OSError, match="wait already"):
        spool.append([b"2", b"3"])
    assert spool.read(100) == [b"1"]
    spool.sent([b"1"])
    spool.append([b"2", b"3"])
    spool.close()


def test_the_file_is_the_users_alone_and_its_name_has_no_secret(tmp_path: Path) -> None:
    spool = spool_of(tmp_path / "spool")
    spool.append([b"1"])
    (found,) = (tmp_path / "spool").iterdir()
    assert found.stat().st_mode & 0o777 == 0o600
    assert "secret" not in found.name
    spool.close()


def test_what_a_server_left_that_is_gone_is_found_and_of_one_that_runs_it_is_not(tmp_path: Path) -> None:
    gone, running = spool_of(tmp_path, "c1"), spool_of(tmp_path, "c2")
    gone.append([b"1"])
    running.append([b"2"])
    gone.close()

    (found,) = left(tmp_path)
    assert found.read(100) == [b"1"]
    assert left(tmp_path) == []  # it is being handed over
    found.discard()
    assert not gone.path.exists()
    running.close()


def test_a_closed_spool_leaves_no_file_if_nothing_waits(tmp_path: Path) -> None:
    spool = spool_of(tmp_path)
    spool.close()
    spool.append([b"1"])
    spool.sent([b"1"])
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_server_was_writing_when_it_was_killed_is_no_record(tmp_path: Path) -> None:
    spool = spool_of(tmp_path)
    spool.append([b"1"])
    spool.close()
    with spool.path.open("ab") as file:
        file.write(b'{"half')
    (found,) = left(tmp_path)
    assert found.read(100) == [b"1"]
    found.sent([b"1"])
    assert found.read(100) == []
    found.discard()


def test_a_file_that_another_put_there_as_a_link_is_not_followed(tmp_path: Path) -> None:
    spool = spool_of(tmp_path / "spool")
    (tmp_path / "spool").mkdir()
    victim = tmp_path / "victim"
    spool.path.with_suffix(".new").symlink_to(victim)
    with pytest.raises(OSError):
        spool.append([b"1"])
    assert not victim.exists()
