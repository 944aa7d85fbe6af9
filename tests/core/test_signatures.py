from __future__ import annotations

import pytest

from jupyter_agentbox.core.signatures import is_secret_name, replaced, signature


def test_call_is_written_as_code_would_write_it() -> None:
    arguments = {"product_id": 5, "price": 14.9, "note": "it's", "tags": ["a", None], "at": {"x": True}}

    assert signature("shop.set_price", arguments) == (
        """shop.set_price(product_id=5, price=14.9, note="it's", tags=['a', None], at={'x': True})"""
    )
    assert signature("shop.list", {}) == "shop.list()"


def test_long_values_are_cut_and_the_call_too() -> None:
    line = signature("shop.query", {"sql": "x" * 10_000})

    assert line.startswith("shop.query(sql='xxx")
    assert line.endswith("…)")
    assert len(line) < 120
    assert len(signature("shop.query", {f"a{n}": "x" * 50 for n in range(100)})) == 400


def test_blanks_do_not_hide_that_a_value_goes_on() -> None:
    hidden = "ls" + " " * 160 + "; rm -rf ~"

    assert signature("shell.run", {"command": hidden}) == "shell.run(command='ls …)"
    assert replaced({"command": hidden}, {"command": "ls"}) == "command='ls …"
    assert signature("shell.run", {"command": "ls" + " " * 100}) == "shell.run(command='ls ')"


def test_nothing_in_it_reorders_the_line_or_begins_another() -> None:
    line = signature("shop.\u202ebuy", {"a\nb": "one\n\u202etwo", "c": ["\x1b[31m"]})

    assert line == "shop.<U+202E>buy(a b='one\\n\\u202etwo', c=['\\x1b[31m'])"


def test_secrets_are_hidden_wherever_they_are() -> None:
    arguments = {"api_key": "k", "login": {"password": "p", "name": "ada"}, "token": None}

    assert signature("shop.login", arguments) == (
        "shop.login(api_key=•••, login={'password': •••, 'name': 'ada'}, token=None)"
    )


@pytest.mark.parametrize("name", ["token", "apiKey", "API_KEY", "user-password", "accessKey", "jwt"])
def test_name_tells_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["key", "primary_key", "tokenizer", "author", "passenger"])
def test_name_tells_of_none(name: str) -> None:
    assert not is_secret_name(name)
