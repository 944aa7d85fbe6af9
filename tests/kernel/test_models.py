from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.kernel import models
from jupyter_agentbox.kernel.models import FreeForm, Model
from jupyter_agentbox.kernel.results import result_of

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///x", "name": "x"}


class Order(Model):
    total: int


class Named(Model):
    raw: str


def given(result: Any, *content: Any, structured: Any = None) -> Any:
    return models._result(result_of({"content": list(content), "structured": structured}), "shop.get", result)


def test_text_is_a_string_that_has_the_images_and_links_beside_it() -> None:
    value = given(None, {"type": "text", "text": "seen"}, IMAGE, LINK)
    assert value == "seen"
    assert value.raw.content == [{"type": "text", "text": "seen"}, IMAGE, LINK]


def test_without_text_the_value_is_what_the_blocks_hold() -> None:
    assert given(None, LINK) == LINK
    assert [block.raw.content for block in given(None, IMAGE, LINK)] == [[IMAGE, LINK]] * 2


@pytest.mark.parametrize("content", [(), ({"type": "text", "text": ""},)], ids=["nothing", "empty"])
def test_no_text_is_none(content: Any) -> None:
    assert given(None, *content) is None


def test_a_typed_result_has_the_whole_answer() -> None:
    order = given(Order, IMAGE, structured={"total": 3})
    assert order.total == 3
    assert order.raw.content == [IMAGE]
    assert order == Order(total=3)
    assert order.model_dump() == {"total": 3}
    free = given(FreeForm, IMAGE, structured={"a": 1})
    assert (free, free.raw.content) == ({"a": 1}, [IMAGE])


def test_a_field_of_that_name_comes_before_the_whole_answer() -> None:
    assert given(Named, structured={"raw": "fish"}).raw == "fish"
    with pytest.raises(AttributeError):
        _ = Order(total=1).raw


def test_a_result_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ToolServerError):
        given(Order, {"type": "text", "text": "3"})
