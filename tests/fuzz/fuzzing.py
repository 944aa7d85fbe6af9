"""Examples without end, for a while: Hypothesis, one seed after the other, until the time is over.

``AGENTBOX_FUZZ_SECONDS`` says how long each test goes on, ``AGENTBOX_FUZZ_SEED`` with which seed it begins. A failure
names the seed that shows it at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SECONDS: Final = float(os.environ.get("AGENTBOX_FUZZ_SECONDS", "10"))
FIRST_SEED: Final = int(os.environ.get("AGENTBOX_FUZZ_SEED", "0"))
#: Examples of one seed. Few, so that the end comes soon after the time is over.
EXAMPLES: Final = 50

#: For every test that fuzzes: what it is given, and what shrinking a failure takes.
limited = pytest.mark.timeout(2 * SECONDS + 280)

#: Text as people write it, and as attackers do: controls, lone surrogates, what turns a line around.
texts = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=st.characters(categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Mn")), max_size=10),
    st.sampled_from(["", "__proto__", "constructor", "../../etc/passwd", "<script>", "'; --", "{{x}}", "%s%n", "\0"]),
)
numbers = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([2**53 + 1, -0.0, 10**400])
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def fuzz(check: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> int:
    """Check examples of the strategies until the time is over; return how many there were.

    Parameters
    ----------
    check : callable
        Gets an example of each strategy by name, and raises if it finds something wrong.
    """
    done = 0

    def count(**examples: Any) -> None:
        nonlocal done
        done += 1
        check(**examples)

    end = time.monotonic() + SECONDS
    number = FIRST_SEED
    while time.monotonic() < end:
        options = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=False,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        try:
            seed(number)(options(given(**strategies)(count)))()
        except BaseException as error:
            error.add_note(f"seed {number}: AGENTBOX_FUZZ_SEED={number} begins with it")
            raise
        number += 1
    print(f"{done} examples, seeds {FIRST_SEED} to {number - 1}")
    return done
