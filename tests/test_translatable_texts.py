"""Every text of the page, and of its settings, can be translated, and has forms for one and for many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyterlab_server.translation_utils import translator

LAB = Path(__file__).parents[1] / "labextension"
SCHEMAS = sorted((LAB / "schema").glob("*.json"))
SOURCES = sorted((LAB / "src").rglob("*.ts*"))

#: A text that is translated without a number.
PLAIN = re.compile(r"""\.(?:__|gettext)\(\s*(['"`])(.*?)\1""", re.DOTALL)

#: A number, and what there are so many of: other languages have other words for one and for many.
COUNTED = re.compile(
    r"%\d (of %\d )?((more|new|pending|tool) )*"
    r"((agent|call|cell|character|file|kernel|line|minute|notebook|question|request|row|rule|server|time|tool)s?"
    r"|allowed|approved|at the Hub|failed|not decided|rejected|shown|used|waiting)\b"
)

#: A label that is there in English only.
BARE = re.compile(r"""\b(label|caption|title|placeholder|aria-label)(: |=)["'`][A-Z][a-z]""")


class Brackets:
    """A language in which each translated text stands in brackets."""

    def pgettext(self, _context: str, text: str) -> str:
        return f"⟦{text}⟧"


def texts(schema: Any) -> Iterator[str]:
    """What a person reads of the settings, wherever it stands."""
    for key, value in schema.items():
        if isinstance(value, dict):
            yield from texts(value)
        elif key in ("title", "description", "label", "jupyter.lab.setting-icon-label"):
            yield value


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_no_word_of_the_settings_is_only_english(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def load(domain: str) -> Brackets:
        asked.append(domain)
        return Brackets()

    monkeypatch.setattr(translator, "_LOCALE", "xx_XX")
    monkeypatch.setattr(translator, "load", load)
    found = list(texts(translator.translate_schema(json.loads(path.read_text()))))
    assert asked == ["jupyter_agentbox"]
    assert found
    assert all(text.startswith("⟦") for text in found), found


def test_a_text_that_counts_something_has_a_form_for_one_and_for_many() -> None:
    texts = [text for path in SOURCES for _, text in PLAIN.findall(path.read_text())]
    assert len(texts) > 500
    assert [text for text in texts if COUNTED.search(text)] == []


def test_each_label_of_a_command_a_button_or_a_dialog_is_translated() -> None:
    lines = [f"{path.name}: {line.strip()}" for path in SOURCES for line in path.read_text().splitlines()]
    assert [line for line in lines if BARE.search(line)] == []
