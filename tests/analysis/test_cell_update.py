"""Which cells take a person's edits, what becomes of their code, and which are left alone."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from jupyter_agentbox.analysis.cell_update import updated
from jupyter_agentbox.analysis.cell_updater import update_cell
from jupyter_agentbox.analysis.edited_call import EditedCall, NotUpdatableError

ASKED: dict[str, Any] = {"product_id": 3, "quantity": 25}
EDITED: dict[str, Any] = {"product_id": 3, "quantity": 30}


def edited(
    asked: dict[str, Any] = ASKED, after: dict[str, Any] = EDITED, *, positional: str | None = None
) -> EditedCall:
    return EditedCall(
        server="shop", function="restock", names={"from": "from_"}, positional=positional, asked=asked, edited=after
    )


@pytest.mark.parametrize(
    "source",
    [
        "from jupyter_agentbox import tools\n\nleft = tools.shop.restock(product_id=3, quantity=25)  # ü\n",
        "from jupyter_agentbox.tools.shop import restock as more\nprint('ü', more( quantity = 25 ,product_id=3))",
        "import jupyter_agentbox.tools as t\nt.shop.restock(product_id=3, quantity=25)",
        "shop.restock(product_id=3,\n    # a few\n    quantity=25,\n)",
        "product = 3\nawait tools.shop.restock.aio(product_id=product, quantity=(25))",
        "files = !ls\n%matplotlib inline\ntools.shop.restock(product_id=3, quantity=25)\nrestock?",
        "%%time\ntools.shop.restock(product_id=3, quantity=25)",
        "tools.shop.restock(product_id=4, quantity=25)\ntools.shop.restock(product_id=3, quantity=25)",
        "x = !echo \\ \ntools.shop.restock(product_id=3, quantity=25)",
        "%matplotlib inline\ntools.shop.restock(product_id=3, quantity=25)  # is it enough?",
        "\n  \n%%time\n\nif True:\n    x = 1\n    \n    shop.restock(product_id=3, quantity=25)",
        "for row in tools.shop.restock(product_id=3, quantity=25):\n    print(row)",
        "if True:\n\tx = [tools.shop.restock(product_id=3, quantity=25), f'{1}']",
        "if len(tools.shop.orders()) < 9:\n    print(tools.shop.restock(product_id=3, quantity=25))",
        "try:\n    tools.shop.restock(product_id=3, quantity=25)\nexcept Exception as error:\n    logging.info(error)",
        "with console:\n    tools.shop.restock(product_id=3, quantity=25)\n    log.info(len(str(1)))",
        "from time import sleep\nsleep(sum([0, 1]))\ntools.shop.restock(product_id=3, quantity=25)",
        "if pd.DataFrame().empty:\n    raise ValueError\ntools.shop.restock(product_id=3, quantity=25)",
        "if log.on and shop.restock(product_id=4, quantity=25):\n    1\ntools.shop.restock(product_id=3, quantity=25)",
    ],
)
def test_the_value_that_was_edited_changes_and_nothing_else(source: str) -> None:
    after = updated(source, edited())
    at = source.rindex("25")
    assert after == f"{source[:at]}30{source[at + 2 :]}"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("n = 25\ntools.shop.restock(product_id=3, quantity=n)", "`quantity` as a plain value"),
        ("tools.shop.restock(**{'product_id': 3, 'quantity': 25})", "`quantity` as a plain value"),
        ("for n in (25, 30):\n    tools.shop.restock(product_id=3, quantity=25)", "loop or a function"),
        ("[tools.shop.restock(product_id=3, quantity=25) for n in range(3)]", "loop or a function"),
        ("def more():\n    return tools.shop.restock(product_id=3, quantity=25)\nmore()", "loop or a function"),
        ("tools.shop.restock(product_id=3, quantity=25.0)", "other arguments now"),
        ("tools.shop.restock(product_id=3, quantity=25, note='x')", "other arguments now"),
        ("tools.shop.restock(product_id=3)", "other arguments now"),
        ("tools.shop.restock(3, 25)", "other arguments now"),
        ("more()", "other code made it"),
        ("from mine import tools\ntools.shop.restock(product_id=3, quantity=25)", "other code made it"),
        ("shop = mine()\nshop.restock(product_id=3, quantity=25)", "not certain"),
        ("if False:\n    shop.restock(product_id=3, quantity=25)\ngetattr(shop, 'restock')(**both)", "not certain"),
        ("0 and shop.restock(product_id=3, quantity=25)\nmore()", "not certain"),
        ("more() if 1 else shop.restock(product_id=3, quantity=25)", "not certain"),
        ("1 < 0 < shop.restock(product_id=3, quantity=25)\nmore()", "not certain"),
        ("assert more(), shop.restock(product_id=3, quantity=25)", "not certain"),
        ("match 1:\n    case 2:\n        shop.restock(product_id=3, quantity=25)\nmore()", "not certain"),
        ("try:\n    1 / 0\n    shop.restock(product_id=3, quantity=25)\nexcept:\n    more()", "not certain"),
        ("try:\n    more()\nexcept:\n    shop.restock(product_id=3, quantity=25)", "not certain"),
        ("with suppress(Exception):\n    1 / 0\n    shop.restock(product_id=3, quantity=25)\nmore()", "not certain"),
        ("more()\nraise ValueError\nshop.restock(product_id=3, quantity=25)", "not certain"),
        ("print = more\nif False:\n    shop.restock(product_id=3, quantity=25)\nprint()", "not certain"),
        ("more()\ntools.shop.restock(product_id=3, quantity=25)", "also calls `more`"),
        ("tools.shop.restock(product_id=3, quantity=25)\nprint(more())", "also calls `more`"),
        ("from mine import more\nmore()\ntools.shop.restock(product_id=3, quantity=25)", "also calls `more`"),
        ("def more():\n    mine.run()\nmore()\nshop.restock(product_id=3, quantity=25)", "also calls `more`"),
        ("print = more\nprint()\ntools.shop.restock(product_id=3, quantity=25)", "also calls `print`"),
        ("other.restock(product_id=3, quantity=25)", "not certain"),
        ("get().restock(product_id=3, quantity=25)", "not certain"),
        ("x = tools.shop.restock(product_id=3, quantity=25), shop.restock(product_id=n, quantity=25)", "More than one"),
        ("%%sql\ntools.shop.restock(product_id=3, quantity=25)", "`%%sql`"),
        ("%%time\n%%timeit\ntools.shop.restock(product_id=3, quantity=25)", "`%%timeit`"),
        ("!echo \\\ntools.shop.restock(product_id=3, quantity=25)", "goes on in its next line"),
        ("x = !echo \\\ntools.shop.restock(product_id=3, quantity=25)", "goes on in its next line"),
        ("tools.shop = mine\ntools.shop.restock(product_id=3, quantity=25)", "not certain"),
        ("%time tools.shop.restock(product_id=3, quantity=25)", "in the command `%time`"),
        ("tools.shop.restock(product_id=3,\n   \n  quantity=25)", "IPython changes the lines"),
        ("tools.shop.restock(product_id=3, quantity=25)  # \u2028", "unusual way"),
        (
            "from jupyter_agentbox import tools\nfrom x import *\ntools.shop.restock(product_id=3, quantity=25)",
            "not certain",
        ),
        ("tools.shop.restock(product_id=3, quantity=25", "cannot be read"),
        ("(" * 500 + "tools.shop.restock(product_id=3, quantity=25)" + ")" * 500, "cannot be read"),
        ("tools.shop.restock(product_id=3, quantity=25)\r", "unusual way"),
    ],
)
def test_code_is_left_alone_where_there_is_doubt_and_the_person_reads_why(source: str, why: str) -> None:
    with pytest.raises(NotUpdatableError, match=why):
        updated(source, edited())


@pytest.mark.parametrize(
    ("source", "after", "expected"),
    [
        ("shop.restock(quantity=1)", {"quantity": 1, "from": 'it\'s "x"'}, 'from_="it\'s \\"x\\""'),
        ("shop.restock(quantity=1, )", {"quantity": 1, "from": None}, "shop.restock(quantity=1, from_=None, )"),
        ("shop.restock(quantity=1, from_='a')", {"quantity": 1}, "shop.restock(quantity=1)"),
        ("shop.restock(from_='a', quantity=1)", {"quantity": 1}, "shop.restock(quantity=1)"),
        ("shop.restock(from_='a')", {}, "shop.restock()"),
        ("shop.restock()", {"quantity": 149.0}, "shop.restock(quantity=149.0)"),
        ("shop.restock(from_='a')", {"from": "b\u202e\n"}, "shop.restock(from_='b\\u202e\\n')"),
        ("shop.restock(from_='''a\nb''')", {"from": "a\n'''c"}, "shop.restock(from_='''a\n\\'\\'\\'c''')"),
        ("shop.restock(quantity={'a': n, 'b': [1, 2]})", {"quantity": {"a": 5, "b": [1, 3]}}, "{'a': n, 'b': [1, 3]}"),
    ],
)
def test_arguments_come_go_and_change_inside(source: str, after: dict[str, Any], expected: str) -> None:
    asked = {"quantity": {"a": 5, "b": [1, 2]}} if "'b'" in source else {}
    if not asked:
        call = ast.parse(source).body[0]
        assert isinstance(call, ast.Expr)
        assert isinstance(call.value, ast.Call)
        asked = {str(each.arg).rstrip("_"): ast.literal_eval(each.value) for each in call.value.keywords}
    assert expected in updated(source, edited(asked, after))


@pytest.mark.parametrize(
    ("source", "asked", "after", "expected"),
    [
        ("shop.restock(7)", {"from": 7}, {"from": 8}, "shop.restock(8)"),
        ("shop.restock.raw( (7) , )", {"from": 7}, {"from": 8}, "shop.restock.raw( (8) , )"),
        ("await shop.restock.aio('ü', n=1)", {"from": "ü", "n": 1}, {"from": 'a"\n', "n": 2}, "'a\"\\n', n=2)"),
        ("shop.restock(7, n=1)", {"from": 7, "n": 1}, {"from": 7, "n": 2}, "shop.restock(7, n=2)"),
        ("shop.restock(x, n=1)", {"from": 7, "n": 1}, {"from": 7, "n": 2}, "shop.restock(x, n=2)"),
        ("shop.restock(7, **more)", {"from": 7, "n": 1}, {"from": 8, "n": 1}, "shop.restock(8, **more)"),
        ("shop.restock([x, 2])", {"from": [1, 2]}, {"from": [1, 3]}, "shop.restock([x, 3])"),
        ("shop.restock((1, 2))", {"from": [1, 2]}, {"from": []}, "shop.restock([])"),
        ("shop.restock('a')", {"from": "a"}, {"from": "a", "n": "b"}, "shop.restock('a', n='b')"),
        ("shop.restock(7, )", {"from": 7}, {"from": 8, "n": 2}, "shop.restock(8, n=2, )"),
        ("shop.restock(7, n=1)", {"from": 7, "n": 1}, {"from": 8}, "shop.restock(8)"),
        ("shop.restock(7, n=1)", {"from": 7, "n": 1}, {"n": 1}, "shop.restock(n=1)"),
        ("shop.restock(7,)", {"from": 7}, {}, "shop.restock()"),
        ("shop.restock(7)", {"from": 7}, {"n": 1}, "shop.restock(n=1)"),
        ("shop.restock(from_=7)", {"from": 7}, {"from": 8}, "shop.restock(from_=8)"),
        ("shop.restock(7), shop.restock(6)", {"from": 7}, {"from": 8}, "shop.restock(8), shop.restock(6)"),
    ],
)
def test_an_argument_by_position_comes_out_as_the_person_left_it(
    source: str, asked: dict[str, Any], after: dict[str, Any], expected: str
) -> None:
    assert updated(source, edited(asked, after, positional="from")).endswith(expected)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("shop.restock(x)", "`from_` as a plain value"),
        ("shop.restock(*[7])", "other arguments now"),
        ("shop.restock(7, *rest)", "other arguments now"),
        ("shop.restock(7, 8)", "other arguments now"),
        ("shop.restock(7.0)", "other arguments now"),
        ("shop.restock(7, from_=7)", "other arguments now"),
        ("shop.restock(7, n=1)", "other arguments now"),
        ("shop.restock(7)\nshop.restock(from_=7)", "More than one"),
        ("shop.restock(7)\nshop.restock(x)", "More than one"),
        ("for n in 1, 2:\n    shop.restock(7)", "loop or a function"),
        ("shop.restock([  # why\n    7])", "other arguments now"),
    ],
)
def test_a_call_by_position_is_left_alone_where_there_is_doubt(source: str, why: str) -> None:
    with pytest.raises(NotUpdatableError, match=why):
        updated(source, edited({"from": 7}, {"from": 8}, positional="from"))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("shop.restock((7))", "updated safely"),
        ("shop.restock((7), n=1)", "updated safely"),
        ("shop.restock(7,  # why\n n=1)", "beside `from_`"),
    ],
)
def test_what_cannot_safely_be_taken_away_where_it_stands_by_position_stays(source: str, why: str) -> None:
    asked = {"from": 7, "n": 1} if "n=" in source else {"from": 7}
    with pytest.raises(NotUpdatableError, match=why):
        updated(source, edited(asked, {"m": 1, "n": 1}, positional="from"))


def test_zero_and_minus_zero_are_two_values() -> None:
    call = edited({"x": 0.0}, {"x": -0.0})
    assert updated("tools.shop.restock(x=0.0)", call) == "tools.shop.restock(x=-0.0)"


@pytest.mark.parametrize("name", ["raw", "aio"])
@pytest.mark.parametrize("code", ["tools.shop.{}(x=1)", "shop.{}.raw(x=1)", "shop.{}.aio(x=1)"])
def test_a_tool_may_be_called_as_a_variant_is(name: str, code: str) -> None:
    call = EditedCall(server="shop", function=name, names={}, positional=None, asked={"x": 1}, edited={"x": 2})
    assert updated(code.format(name), call) == code.format(name).replace("1", "2")


def test_a_number_that_is_no_literal_is_not_written() -> None:
    with pytest.raises(NotUpdatableError, match="without a literal"):
        updated("tools.shop.restock(x=1.0)", edited({"x": 1.0}, {"x": float("inf")}))


def test_a_line_of_many_spaces_is_read_in_no_time() -> None:
    with pytest.raises(NotUpdatableError, match="cannot be read"):
        updated(f"!ls\n{' ' * 150_000}x y", edited())


@pytest.mark.parametrize("line", [">>> y", "In [3]: y", "   ...: y", "[ins] In [3]: y", "   ", "\t"])
def test_ipython_takes_nothing_away_from_a_text_of_many_lines(line: str) -> None:
    after = updated('shop.restock(note="""x\ny""")', edited({"note": "x\ny"}, {"note": f"x\n{line}\n{line}"}))
    assert TransformerManager().transform_cell(after) == f"{after}\n"


texts = st.text(st.characters(exclude_categories=("Cs",)))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(
    asked=st.dictionaries(st.sampled_from("abcd"), json_values, max_size=3),
    after=st.dictionaries(st.sampled_from("abcd"), json_values, max_size=3),
    is_by_position=st.booleans(),
)
def test_new_code_always_gives_what_the_person_left_whatever_the_values_hold(
    asked: Any, after: Any, is_by_position: bool
) -> None:
    first = next(iter(asked), None) if is_by_position else None
    code = ", ".join(repr(value) if name == first else f"{name}={value!r}" for name, value in asked.items())
    result = updated(f"before = 'ü'; tools.shop.restock({code}); x = 1", edited(asked, after, positional=first))
    before, middle, last = ast.parse(result).body
    assert ast.unparse(before) == "before = 'ü'"
    assert ast.unparse(last) == "x = 1"
    assert isinstance(middle, ast.Expr)
    assert isinstance(middle.value, ast.Call)
    arguments = [(first, each) for each in middle.value.args]
    arguments += [(each.arg, each.value) for each in middle.value.keywords]
    gives = {str(name): ast.literal_eval(value) for name, value in arguments}
    # As text: 1, 1.0 and True are three values.
    assert json.dumps(gives, sort_keys=True) == json.dumps(after, sort_keys=True)


COMMANDS = ["!ls", "!ls \\", "x = !ls", "%time 1", "%%time", "%%sql", "x?", "why?", "# why?"]
PROMPTS = [">>> a", "... a", "In [1]: a", "   ...: a", "[ins] In [1]: a", "[nav] In [1]: a"]
#: What IPython reads in its own way, alone or in the middle of a text, among what it does not.
lines_of_ipython = st.sampled_from(["a", "b", "", "   ", "\t", "  b", "x = '''", "'''", *COMMANDS, *PROMPTS])
texts_of_ipython = st.lists(lines_of_ipython, max_size=5).map("\n".join)


def notes_that_run(code: str) -> tuple[list[str], str]:
    """Return the `note` of each call of `restock` as IPython runs it, and all of the code without them."""
    while (lines := code.strip().split("\n"))[0].strip() == "%%time":
        code = "\n".join(lines[1:])
    tree = ast.parse(TransformerManager().transform_cell(code))
    notes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "restock":
            notes += [ast.literal_eval(each.value) for each in node.keywords]
            node.keywords = []
    return notes, ast.dump(tree)


@given(
    before=texts_of_ipython,
    note=texts_of_ipython,
    behind=texts_of_ipython,
    asked=st.none() | texts_of_ipython,
    after=texts_of_ipython,
)
@settings(max_examples=600)
def test_what_ipython_runs_afterwards_is_what_the_person_left(
    before: str, note: str, behind: str, asked: str | None, after: str
) -> None:
    source = f'{before}\ntools.shop.restock(note="""{note}""")\n{behind}'
    try:
        result = updated(source, edited({"note": note if asked is None else asked}, {"note": after}))
    except NotUpdatableError:
        event("refused")
        return
    event("updated")
    (ran,), rest = notes_that_run(source)
    assert ran == (note if asked is None else asked)
    assert notes_that_run(result) == ([after], rest)


def test_code_that_ends_the_parser_is_refused_in_a_process_of_its_own() -> None:
    assert update_cell("shop.restock(product_id=3, quantity=25)", edited()).endswith("quantity=30)")
    with pytest.raises(NotUpdatableError, match="read"):
        update_cell("-" * 190_000 + "1", edited())
