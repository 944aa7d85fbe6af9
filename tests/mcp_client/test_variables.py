from __future__ import annotations

import pytest

from jupyter_agentbox.mcp_client.variables import Expander, UnsetVariableError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain $HOME {x} $", "plain $HOME {x} $"),
        ("${A}", "1"),
        ("${env:A}", "1"),
        ("a${A}b${B:-two}c", "a1btwoc"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${B:-}", ""),
        ("${B:-a:-b}", "a:-b"),
        ("${env:B:-x}", "x"),
        ("${NESTED}", "${A}"),
    ],
)
def test_variables_are_replaced_once(text: str, expected: str) -> None:
    assert Expander({"A": "1", "EMPTY": "", "NESTED": "${A}"}).expand(text) == expected


@pytest.mark.parametrize(
    ("text", "named"), [("${B}", "`B`"), ("x${env:B}", "`B`"), ("${input:key}", "`${input:key}`"), ("${}", "`${}`")]
)
def test_what_has_no_value_is_named_and_never_left_as_it_is(text: str, named: str) -> None:
    with pytest.raises(UnsetVariableError) as caught:
        Expander({}).expand(text)
    assert named in str(caught.value)


def test_values_of_variables_with_telling_names_are_secrets() -> None:
    expander = Expander({"SHOP_TOKEN": "s3cret", "HOME": "/home/me"})
    expander.expand("${SHOP_TOKEN} ${HOME}")
    assert expander.secrets == {"s3cret"}
