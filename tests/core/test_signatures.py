from __future__ import annotations

from jupyter_agentbox.core.signatures import replaced, signature


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
