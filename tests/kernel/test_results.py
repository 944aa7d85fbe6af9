from __future__ import annotations

import base64
import copy
import json
import pickle
import re
import sys
from typing import Any

import pytest

from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.kernel.media import Blocks, Media
from jupyter_agentbox.kernel.results import CallResult, Integer, Number, Record, Records, Text, result_of

PNG = base64.b64encode(b"png").decode()


def value(**fields: Any) -> Any:
    return result_of(ToolResult(**fields).to_json(), "r1").value


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_structured_content_has_attributes_and_items_at_every_level() -> None:
    found = value(structured={"orders": [{"id": 1, "lines": [[{"sku": "a"}]]}]}, content=(text("{}"),))

    assert found.orders[0].lines[0][0].sku == "a"
    assert found["orders"][0]["id"] == 1
    assert found == {"orders": [{"id": 1, "lines": [[{"sku": "a"}]]}]}
    assert list(found.keys()) == ["orders"]
    assert isinstance(found.raw, CallResult)
    assert found.raw.request_id == "r1"
    assert repr(found) == "{'orders': [{'id': 1, 'lines': [[{'sku': 'a'}]]}]}"


@pytest.mark.parametrize(
    ("structured", "kind"), [([1, [2]], Records), ("text", Text), (3, Integer), (2.5, Number), ({"a": 1}, Record)]
)
def test_wrapper_is_unwrapped_and_the_value_carries_the_whole_result(structured: Any, kind: type) -> None:
    found = value(structured={"result": structured}, wrapped=True)

    assert found == structured
    assert type(found) is kind
    assert found.raw.structured == {"result": structured}


@pytest.mark.parametrize("plain", [True, False, None])
def test_values_that_cannot_carry_anything_stay_what_they_are(plain: Any) -> None:
    assert value(structured={"result": plain}, wrapped=True) is plain


def test_object_that_only_looks_like_a_wrapper_stays() -> None:
    assert value(structured={"result": 1}) == {"result": 1}
    assert value(structured={"other": 1}, wrapped=True) == {"other": 1}


def test_items_named_like_methods_are_items_only() -> None:
    found = value(structured={"items": [1], "raw": "data", "__setstate__": "x"})

    assert found["items"] == [1]
    assert callable(found.items)
    assert found["raw"] == "data"
    assert isinstance(found.raw, CallResult)


def test_missing_attribute_names_those_that_exist() -> None:
    found = value(structured={"city": "Oslo"})

    with pytest.raises(AttributeError, match="`city`"):
        _ = found.town
    with pytest.raises(AttributeError):
        del found.town
    assert not hasattr(found, "__wrapped__")


def test_record_can_be_changed_both_ways_and_completed() -> None:
    found = value(structured={"a": 1})

    found.b = 2
    del found.a

    assert found == {"b": 2}
    assert "b" in dir(found)
    assert found._ipython_key_completions_() == ["b"]
    assert type(found.copy()) is Record


@pytest.mark.parametrize("structured", [{"a": [{"b": 1}], "__setstate__": "x"}, {"result": "text"}, {"result": 3}])
def test_results_can_be_pickled_copied_and_written_as_json(structured: Any) -> None:
    found = value(structured=structured, wrapped="result" in structured)

    for twin in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert twin == found
        assert type(twin) is type(found)
        assert twin.raw == found.raw
    assert json.loads(json.dumps(found)) == found


def test_text_blocks_are_one_text() -> None:
    found = value(content=(text("one"), text("two"), {"type": "resource", "resource": {"text": "three"}}))

    assert found == "one\ntwo\nthree"
    assert [block.type for block in found.raw.content] == ["text", "text", "resource"]


def test_empty_answer_is_an_empty_text() -> None:
    assert value() == ""
    assert value().raw == CallResult(request_id="r1")


def test_image_is_shown_by_the_notebook() -> None:
    found = value(content=({"type": "image", "mimeType": "image/png", "data": PNG},))

    assert found == Media("image/png", b"png", found.raw)
    assert found._repr_mimebundle_() == {"text/plain": "<image/png, 3 bytes>", "image/png": PNG}


@pytest.mark.parametrize(
    ("block", "element"),
    [
        ({"type": "audio", "mimeType": "audio/wav", "data": PNG}, f'audio controls src="data:audio/wav;base64,{PNG}"'),
        ({"type": "image", "mimeType": "image/svg+xml", "data": PNG}, f'img src="data:image/svg+xml;base64,{PNG}"'),
    ],
)
def test_audio_and_svg_are_data_of_an_element(block: dict[str, Any], element: str) -> None:
    markup = value(content=(block,))._repr_mimebundle_()["text/html"]

    assert markup.startswith(f"<{element}>")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "mimeType": 'image/png"><script>', "data": PNG},
        {"type": "image", "mimeType": "text/html", "data": PNG},
        {"type": "image", "mimeType": "image/png", "data": "no base64!"},
        {"type": "image", "mimeType": "image/png", "data": "é"},
        {"type": "image"},
        {"type": "resource", "resource": "none"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "from the future", "html": "<script>"},
    ],
)
def test_block_that_is_no_medium_stays_data(block: dict[str, Any]) -> None:
    found = value(content=(block,))

    assert found == block
    assert isinstance(found, Record)
    assert found.raw.content == [block]


def test_several_blocks_are_a_sequence_that_shows_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    image = {"type": "resource", "resource": {"uri": "a", "mimeType": "image/png", "blob": PNG}}
    found = value(content=(text("a chart"), image))

    assert isinstance(found, Blocks)
    assert found[0] == "a chart"
    assert found[1].data == b"png"
    assert found.raw.text == "a chart"
    found._ipython_display_()
    found.raw._ipython_display_()
    assert capsys.readouterr().out.count("image/png, 3 bytes") == 2


def test_very_deep_result_stays_plain_below() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep}

    assert value(structured=deep) == deep


def test_answer_with_broken_fields_is_read_as_far_as_it_goes() -> None:
    assert result_of({"content": "none", "meta": None, "wrapped": 1}) == CallResult()


def test_pretty_printer_shows_a_record_as_a_dict() -> None:
    from IPython.lib.pretty import pretty

    found = value(structured={"a": [{"b": 1}]})
    found["self"] = found

    assert pretty(found) == "{'a': [{'b': 1}], 'self': {...}}"


def an_image(data: str = PNG) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


@pytest.mark.parametrize(
    "structured", [{"data": PNG, "name": "dot.png", "all": [PNG]}, [PNG, "dot.png"]], ids=["object", "array"]
)
def test_image_beside_structured_content_is_shown_instead_of_its_data(
    structured: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    found = value(structured=structured, content=(text("{}"), an_image()))

    found._ipython_display_()

    image, rest = capsys.readouterr().out.splitlines()
    assert image == "<image/png, 3 bytes>"
    assert PNG not in rest
    assert "<image/png, 3 bytes>" in rest
    assert "dot.png" in rest
    assert found == structured


@pytest.mark.parametrize("content", [(), (text("{}"),), (an_image("broken"),)], ids=["none", "text", "broken"])
def test_structured_content_without_an_image_is_shown_as_any_value(content: tuple[Any, ...]) -> None:
    for found in (value(structured={"a": 1}, content=content), Record(), Records()):
        with pytest.raises(NotImplementedError):  # so IPython goes on as with any value
            found._ipython_display_()


def test_list_of_objects_is_a_table_with_nothing_that_a_tool_could_turn_into_markup() -> None:
    rows = value(structured={"result": [{"id": 1, "name": "<b>tea</b>"}, {"id": 2, "note": None}]}, wrapped=True)
    html = rows._repr_html_()
    assert re.findall(r"<th>(.*?)</th>", html) == ["id", "name", "note"]
    assert re.findall(r"<td[^>]*>(.*?)</td>", html) == ["1", "&lt;b&gt;tea&lt;/b&gt;", "", "2", "", ""]


@pytest.mark.parametrize("rows", [[], [1, 2], [{"a": 1}, 2], [{}], [{f"c{n}": n for n in range(21)}]])
def test_other_lists_are_shown_as_lists(rows: list[Any]) -> None:
    assert value(structured={"result": rows}, wrapped=True)._repr_html_() is None


def test_table_of_many_rows_says_that_there_are_more() -> None:
    html = value(structured={"result": [{"n": n} for n in range(1000)]}, wrapped=True)._repr_html_()
    assert html.count("<tr>") == 61
    assert "60 of 1000 rows" in html


def test_list_of_objects_becomes_a_data_frame_at_any_depth() -> None:
    found = value(structured={"orders": [{"id": 1, "total": 2.5}, {"id": 2, "note": "late"}]})

    frame = found.orders.df()

    assert list(frame.columns) == ["id", "total", "note"]
    assert frame.id.tolist() == [1, 2]
    assert frame.note.isna().tolist() == [True, False]


def test_without_pandas_a_data_frame_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pandas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without("pandas"), *sys.meta_path])

    with pytest.raises(ImportError, match="%pip install pandas") as refusal:
        value(structured={"result": [{"a": 1}]}, wrapped=True).df()

    assert refusal.value.name == "pandas"
    assert refusal.value.__suppress_context__


class Without:
    """A finder that says of a package that it is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_data_frame_of_items_that_have_no_columns_in_common_is_refused_in_time() -> None:
    with pytest.raises(ValueError, match="5,000 rows and 5,000 columns"):
        Records([{f"column {number}": 1} for number in range(5_000)]).df()
