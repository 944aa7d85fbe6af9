from __future__ import annotations

from jupyter_agentbox.core.signatures import not_in_full, replaced, signature


def test_call_is_written_as_code_would_write_it() -> None:
    arguments = {"product_id": 5, "price": 14.9, "note": "it's", "tags": ["a", None], "at": {"x": True}}

    assert signature("shop.set_price", arguments) == (
        """shop.set_price(product_id=5, price=14.9, note="it's", tags=['a', None], at={'x': True})"""
    )
    assert signature("shop.list", {}) == "shop.list()"


def test_long_values_and_calls_are_cut_and_show_their_ends() -> None:
    line = signature("shop.query", {"sql": "x" * 10_000 + "; DROP TABLE orders"})

    assert line == f"shop.query(sql='{'x' * 40}'… (10,019 characters) …'{'x' * 5}; DROP TABLE orders')"
    many = signature("shop.query", {f"a{n}": "x" * 50 for n in range(100)})
    assert len(many) <= 400
    assert many.endswith(f", …, a99='{'x' * 50}')")
    assert len(signature("s" * 1000, {"a" * 1000: "\x1b" * 1000, "b" * 1000: ["\x1b" * 1000]})) <= 400


def test_nested_values_are_cut_and_show_their_ends() -> None:
    rows = [{"id": n} for n in range(1000)]

    assert signature("shop.add", {"rows": rows}) == (
        "shop.add(rows=[{'id': 0}, {'id': 1}, {'id': 2}, {'id': … 'id': 998}, {'id': 999}])"
    )
    assert signature("f", {"o": {"text": "x" * 500, "token": "abc"}}).endswith("'token': •••})")


def test_blanks_do_not_hide_that_a_value_goes_on() -> None:
    hidden = "ls" + " " * 160 + "; rm -rf ~"

    assert signature("shell.run", {"command": hidden}) == ("shell.run(command='ls '… (172 characters) …' ; rm -rf ~')")
    assert replaced({"command": hidden}, {"command": "ls"}) == "command='ls '… (172 characters) …' ; rm -rf ~'"
    assert signature("shell.run", {"command": "ls" + " " * 100}) == "shell.run(command='ls ')"


def test_nothing_in_it_reorders_the_line_or_begins_another() -> None:
    line = signature("shop.\u202ebuy", {"a\nb": "one\n\u202etwo", "c": ["\x1b[31m"]})

    assert line == "shop.<U+202E>buy(a b='one\\n\\u202etwo', c=['\\x1b[31m'])"


def test_secrets_are_hidden_wherever_they_are() -> None:
    arguments = {"api_key": "k", "login": {"password": "p", "name": "ada"}, "token": None}

    assert signature("shop.login", arguments) == (
        "shop.login(api_key=•••, login={'password': •••, 'name': 'ada'}, token=None)"
    )


def test_arguments_of_which_any_character_is_missing_are_named() -> None:
    arguments = {"id": 5, "sql": "x" * 81, "two  blanks": 1, "blanks": "a  b", "token": "t", "at": {"x": [1, None]}}

    assert not_in_full("shop.query", arguments) == ["sql", "two  blanks", "blanks", "token"]
    assert not_in_full("shop.list", {}) == []
    many = {f"a{n}": "x" * 50 for n in range(10)}
    assert not_in_full("shop.query", many) == list(many)
