from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.names import python_names, server_names

texts = st.text(st.characters(exclude_categories=[]))


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("list_orders", "list_orders"),
        ("get-user", "get_user"),
        ("from", "from_"),
        ("None", "None_"),
        ("match", "match"),
        ("list", "list"),
        ("a b.c/d", "a_b_c_d"),
        ("-x-", "x"),
        ("3d", "n_3d"),
        ("", "n"),
        ("!!!", "n"),
        ("__init__", "init__"),
        ("_private", "private"),
        ("ﬁle", "file"),
        ("größe", "größe"),
        ("x²", "x2"),
        ("x\N{BENGALI CURRENCY NUMERATOR ONE}", "n_x_"),
        ("a\u0f2a", "n_a_"),
        ("٣d", "n_٣d"),
        ("x" * 200, "x" * 80),
    ],
)
def test_name_becomes_an_identifier(name: str, identifier: str) -> None:
    assert python_names([name]) == {name: identifier}


def test_names_that_can_stay_go_first_and_others_are_numbered() -> None:
    names = ["a-b", "a.b", "a_b", "a b"]

    assert python_names(names) == {"a-b": "a_b_", "a.b": "a_b_2", "a_b": "a_b", "a b": "a_b_3"}


def test_reserved_names_are_not_used() -> None:
    assert python_names(["reload", "import"], reserved={"reload", "import_"}) == {
        "reload": "reload_",
        "import": "import_2",
    }


def test_leading_underscores_stay_where_names_need_not_be_public() -> None:
    assert python_names(["_meta", "__debug__", "_"], public=False) == {
        "_meta": "_meta",
        "__debug__": "debug__",
        "_": "_",
    }


@given(st.lists(texts, unique=True, max_size=30), st.booleans())
def test_any_names_become_different_identifiers(names: list[str], public: bool) -> None:
    mapped = python_names(names, public=public)

    assert list(mapped) == names
    assert len(set(mapped.values())) == len(names)
    for identifier in mapped.values():
        assert identifier.isidentifier()
        assert not keyword.iskeyword(identifier)
        assert not (public and identifier.startswith("_"))


def test_a_server_takes_no_name_that_the_tools_have_of_their_own() -> None:
    assert server_names(["reload", "my-shop", "3d"]) == {"reload": "reload_", "my-shop": "my_shop", "3d": "server_3d"}
