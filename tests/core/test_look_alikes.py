from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_agentbox.core.look_alikes import LookAlike, look_alikes, look_alikes_to_json

CORPUS = Path(__file__).parents[1] / "data" / "mcp-corpus"


def found(name: str) -> dict[str, str]:
    return {one.letter: one.like for one in look_alikes(server="shop", tool=name)}


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("rem\u043eve", {"\u043e": "o"}),
        ("r\u0435m\u043eve", {"\u0435": "e", "\u043e": "o"}),
        ("get_\u0430\u0440\u0440", {"\u0430": "a", "\u0440": "p"}),
        ("plan_\u0430", {"\u0430": "a"}),
        ("\u0441\u043e\u0440\u0443", {"\u0441": "c", "\u043e": "o", "\u0440": "p", "\u0443": "y"}),
        ("\u03b1lpha", {"\u03b1": "a"}),
        ("\u0570ost", {"\u0570": "h"}),
        ("\u0261et", {"\u0261": "g"}),
        ("\U0001d42bemove", {"\U0001d42b": "r"}),
        ("\uff45\uff44it", {"\uff45": "e", "\uff44": "d"}),
        ("\ufb01le", {"\ufb01": "fi"}),
        ("\u212aelvin", {"\u212a": "K"}),
        ("bank\u2024pay", {"\u2024": "."}),
        ("a\u2010b", {"\u2010": "-"}),
        ("search\u0448", {"\u0448": ""}),
        ("\u13e2\u13aa", {"\u13e2": "P", "\u13aa": "A"}),
        ("\u2c9e\u2ca2\u2c95", {"\u2c9e": "O", "\u2ca2": "P", "\u2c95": ""}),
        ("\ua4d1\ua4ee\ua4ec", {"\ua4d1": "P", "\ua4ee": "A", "\ua4ec": "Y"}),
        ("li\u0455t", {"\u0455": "s"}),
        ("\U0001d6c2dmin", {"\U0001d6c2": "a"}),
        ("\u1d0fpen", {"\u1d0f": "o"}),
        ("a\u2215b", {"\u2215": "/"}),
        ("\u05e9\u05dcget", {"\u05e9": "", "\u05dc": ""}),
        ("\u03b1\u0430", {"\u03b1": "a", "\u0430": "a"}),
    ],
    ids=ascii,
)
def test_what_is_not_what_it_looks_like_is_found(name: str, letters: dict[str, str]) -> None:
    assert found(name) == letters


@pytest.mark.parametrize(
    "name",
    [
        "remove",
        "\u00dcberschrift_\u00e9t\u00e9",
        "kay\u0131t_bul",
        "\u043f\u043e\u0438\u0441\u043a_\u0437\u0430\u043a\u0430\u0437\u043e\u0432",
        "\u0437\u0430\u043a\u0430\u0437\u044b_\u0441_\u0441\u0430\u0439\u0442\u0430",
        "get_\u0440\u043e\u0437\u0430",
        "github_\u0448\u043b\u044e\u0437",
        "\u691c\u7d22API",
        "\u691c\u7d22\u30c4\u30fc\u30eb",
        "\ud55c\uad6d\uc5b4tool",
        "\u0928\u092e\u0938\u094d\u0924\u0947get",
        "\u062e\u062f\u0645\u0629_get",
        "\u05e9\u05dc\u05d5\u05dd",
        "\u0394t",
        "\u03c3_max",
        "area_km\u00b2",
        "area_\u00b5m",
        "n\u00ba_factura",
        "paral\u00b7lel",
        "remo\u200bve",
        "2020\u20132021",
        "A\u222aB",
        "\u01a1n_vi\u1ec7t",
        "b\u0153uf",
        "\u12d0\u1200",
        "\ud800",
        "\u0441",
    ],
    ids=ascii,
)
def test_other_names_are_just_names(name: str) -> None:
    assert found(name) == {}


def test_names_of_servers_tools_and_all_fields_of_arguments_are_looked_at() -> None:
    odd = "\u0430pi"
    told = look_alikes(server=odd, tool=odd, arguments={"list": [{"inner": {odd: 1}}], "text": f"{odd} docs"})

    assert [one.of for one in told] == ["server", "tool", "argument"]
    assert look_alikes_to_json(told)[2] == {
        "of": "argument",
        "code": "U+0430",
        "name": "CYRILLIC SMALL LETTER A",
        "like": "a",
    }


@pytest.mark.parametrize(
    ("value", "letters"),
    [
        ("https://ex\u0430mple.org/pay", {"\u0430": "a"}),
        ("https://\u0430\u0440\u0440\u04cf\u0435.com", dict(zip("\u0430\u0440\u04cf\u0435", "aple", strict=True))),
        ("Send it to <b\u043ebby@bank.example>, please", {"\u043e": "o"}),
        ("see ex\u0430mple.org for more", {"\u0430": "a"}),
        ("rm /home/\uff41da/notes", {"\uff41": "a"}),
        ("C:\\us\u0435rs\\ada", {"\u0435": "e"}),
        ("\u0430dmin", {"\u0430": "a"}),
        ("https://bank.example\u2044evil.test/", {"\u2044": "/"}),
    ],
    ids=ascii,
)
def test_names_and_addresses_among_the_values_are_looked_at(value: str, letters: dict[str, str]) -> None:
    told = look_alikes(server="shop", tool="find", arguments={"list": [{"inner": value}, 1, None]})

    assert {one.letter: one.like for one in told} == letters
    assert {one.of for one in told} == {"value"}


@pytest.mark.parametrize(
    "value",
    [
        "\u0441\u043e\u0440",
        "a word like \u0430dmin in prose",
        "\u041f\u0440\u0438\u0432\u0435\u0442, ada@example.org",
        "https://ru.wikipedia.org/wiki/\u041c\u043e\u0441\u043a\u0432\u0430",
        "\u043e\u0442\u0447\u0451\u0442.txt",
        "r\u00e9sum\u00e9.pdf",
        "3 \u00b5m and \u03b1x",
    ],
    ids=ascii,
)
def test_other_values_are_just_values(value: str) -> None:
    assert look_alikes(server="shop", tool="find", arguments={"text": value}) == []


def test_what_looks_like_another_is_told_first_and_not_all_is() -> None:
    told = look_alikes(server="x", tool="\u0448\u0449\u044e\u044f\u0436\u0434\u043eab")

    assert told[0] == LookAlike(of="tool", letter="\u043e", like="o")
    assert len(told) == 5


def test_a_sentence_says_where_and_what() -> None:
    assert LookAlike(of="tool", letter="\u0430", like="a").text == (
        "In the tool's name, U+0430 CYRILLIC SMALL LETTER A looks like `a`."
    )
    assert LookAlike(of="argument", letter="\u0448").text == (
        "In the name of an argument, U+0448 CYRILLIC SMALL LETTER SHA differs in alphabet from its neighbors."
    )
    assert LookAlike(of="value", letter="\uff41", like="a").text == (
        "In a value, U+FF41 FULLWIDTH LATIN SMALL LETTER A looks like `a`."
    )


def test_what_is_looked_at_is_bounded() -> None:
    odd = "\u0430pi"
    long = {f"{number}" + "\u0436" * 5_000: 1 for number in range(200)}

    assert look_alikes(server="shop", tool="find", arguments={odd: 1, **long})
    assert not look_alikes(server="shop", tool="find", arguments={**long, odd: 1})


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_no_published_server_has_such_a_name(path: Path) -> None:
    listed = json.loads(path.read_text("utf-8"))
    for tool in listed["tools"]:
        assert look_alikes(server=listed["server"], tool=tool["name"], arguments=tool["inputSchema"]) == []
