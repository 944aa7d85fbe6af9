from __future__ import annotations

from pathlib import Path

from jupyter_agentbox.sandbox.server.writable_directories import record, recorded


def test_places_are_known_to_all_servers_once(tmp_path: Path) -> None:
    one, two = Path("/home/one"), Path("/home/t\u0065\nwo")
    assert recorded(tmp_path) == frozenset()

    record(tmp_path, [one])
    record(tmp_path, [one, two])

    assert recorded(tmp_path) == {one, two}
    assert len((tmp_path / "kernels-places").read_text().splitlines()) == 2


def test_a_kernels_own_directory_is_not_kept(tmp_path: Path) -> None:
    record(tmp_path, [tmp_path / "run" / "work"])

    assert recorded(tmp_path) == frozenset()


def test_a_line_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "kernels-places").write_text('nothing\n["/no"]\n"/yes"\n"/half')

    assert recorded(tmp_path) == {Path("/yes")}
