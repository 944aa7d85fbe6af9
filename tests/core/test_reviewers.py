from __future__ import annotations

import pytest

from jupyter_agentbox.core.reviewers import DecideWith, Reviewer, Via
from jupyter_agentbox.exceptions import NeedsPersonError


@pytest.mark.parametrize("via", Via)
def test_every_way_counts_where_any_does(via: Via) -> None:
    Reviewer(name="ada", via=via).check(DecideWith.ANY)


@pytest.mark.parametrize("via", Via)
def test_only_a_browsers_login_counts_as_a_person(via: Via) -> None:
    reviewer = Reviewer(name="ada", via=via)
    if via is Via.BROWSER:
        reviewer.check(DecideWith.PERSON)
    else:
        with pytest.raises(NeedsPersonError):
            reviewer.check(DecideWith.PERSON)
