from __future__ import annotations

import pytest

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.core.spawn_profile import profile_of


def effect_at(level: Isolation, environment: dict[str, str]) -> str:
    profile = profile_of(environment)
    assert profile is not None
    call = ToolCall(server="shop", tool="list", arguments={}, origin=Origin(kernel_id="k1", isolation=level))
    return Policy(profile.rules).evaluate(call).effect.value


def test_no_variable_says_nothing_and_those_of_kernels_are_none_of_a_profile() -> None:
    assert profile_of({"PATH": "/bin"}) is None
    assert profile_of({"JUPYTER_AGENTBOX_NO_SERVER": "1", "JUPYTER_AGENTBOX_AGENT_KERNEL": "1"}) is None


def test_a_level_denies_the_calls_of_kernels_below_it() -> None:
    environment = {"JUPYTER_AGENTBOX_MIN_ISOLATION": "landlock"}

    effects = {level.value: effect_at(level, environment) for level in Isolation}

    assert effects == {
        "bubblewrap": "ask", "bubblewrap-host-proc": "ask", "landlock": "ask",
        "srt": "deny", "none": "deny", "remote": "deny",
    }  # fmt: skip


def test_features_are_turned_off_and_the_reason_names_the_variable() -> None:
    profile = profile_of({"JUPYTER_AGENTBOX_GRANTS": "off", "JUPYTER_AGENTBOX_LOCAL_SERVERS": "off"})

    assert profile is not None
    assert [feature for feature in Feature if profile.site.is_off(feature)] == [Feature.GRANTS, Feature.LOCAL_SERVERS]
    assert profile.site.files == ("$JUPYTER_AGENTBOX_GRANTS", "$JUPYTER_AGENTBOX_LOCAL_SERVERS")
    assert profile.site.off_by(Feature.GRANTS) == ("$JUPYTER_AGENTBOX_GRANTS",)
    assert profile.problems == ()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("GRANTS", "on", "tightens, never loosens"),
        ("AGENTS", "", "tightens, never loosens"),
        ("MIN_ISOLATION", "none", "must be one of bubblewrap"),
        ("MIN_ISOLATOIN", "landlock", "no such variable"),
    ],
)
def test_what_would_loosen_or_is_not_known_is_a_problem(name: str, text: str, words: str) -> None:
    profile = profile_of({f"JUPYTER_AGENTBOX_{name}": text})

    assert profile is not None
    assert [problem.path for problem in profile.problems] == [f"$JUPYTER_AGENTBOX_{name}"]
    assert words in profile.problems[0].message
