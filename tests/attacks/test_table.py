"""The table in the docs says what the attacks show."""

from __future__ import annotations

from pathlib import Path

from .attack import HERE, attacks, modules, table

TABLE = Path(__file__).parents[2] / "docs" / "explanation" / "attack-table.md"


def test_the_table_in_the_docs_has_every_attack_and_what_comes_of_it() -> None:
    assert TABLE.read_text("utf-8") == table(), "run `python -m tests.attacks.attack`"


def test_every_file_of_attacks_declares_its_attack() -> None:
    files = [path for path in HERE.glob("test_*.py") if path.name != "test_table.py"]

    assert len(attacks()) == len(files)


def test_every_attack_is_seen_to_work_on_something_that_nothing_protects() -> None:
    missing = [
        module.ATTACK.name
        for module in modules()
        if module.ATTACK.plain is False and not callable(getattr(module, module.ATTACK.control, None))
    ]
    unknown = [one.ATTACK.control for one in modules() if one.ATTACK.control and not hasattr(one, one.ATTACK.control)]

    assert (missing, unknown) == ([], [])
