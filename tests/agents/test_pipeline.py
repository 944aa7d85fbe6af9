"""The pipeline on fakes: what is tried again, what the next attempt gets, what can never run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox import AttemptError, CodeGeneratorConfigurationError, CodeRequest, CodeStatus, MockCodeGenerator
from jupyter_agentbox.agents.pipeline import CodePipeline
from jupyter_agentbox.agents.ports import Execution, Waiting
from jupyter_agentbox.agents.results import TRANSITIONS, CodeResult, Stage, step
from jupyter_agentbox.analysis.findings import SYNTAX_ERROR, Analysis, AnalysisOutcome, Finding, Severity
from jupyter_agentbox.exceptions import InvalidTransitionError, StorageError

#: What may become of an attempt: where it ends.
GOES_ON = ("no code", "not a string", "raises", "syntax", "fails", "no results", "wrong type")
ENDS = ("succeeded", "rejected", "expired", "blocked", "cancelled", "refused call", "configuration", "no store")


class FakeAnalyzer:
    async def analyze(self, code: str) -> Analysis:
        if not code.startswith("syntax"):
            return Analysis()
        finding = Finding(code=SYNTAX_ERROR, severity=Severity.ERROR, message="SyntaxError: no", line=1, column=1)
        return Analysis(findings=(finding,), outcome=AnalysisOutcome.ASK)


class FakeGenerator:
    """Gives a numbered piece of code that says what will become of it."""

    def __init__(self, endings: Sequence[str]) -> None:
        self.endings = endings
        self.chains: list[list[AttemptError]] = []

    async def generate_code(self, _request: CodeRequest, error_chain: Sequence[AttemptError]) -> Any:
        self.chains.append(list(error_chain))
        ending = self.endings[len(self.chains) - 1]
        match ending:
            case "no code":
                return " \n"
            case "not a string":
                return None
            case "raises":
                raise OSError(f"raises {len(self.chains)}")
            case "configuration":
                raise CodeGeneratorConfigurationError("no key")
            case _:
                return f"{ending} {len(self.chains)}"

    def get_generation_metadata(self) -> dict[str, int]:
        return {"tokens": len(self.chains)}


class FakeRunner:
    """Runs each piece of code in the way that it says."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
        self.asked.append(code)
        on_waiting(True)
        ending = code.rpartition(" ")[0]
        if ending == "no store":
            raise StorageError("no store")
        if ending in {"rejected", "expired", "blocked", "cancelled"}:
            return Execution(status=CodeStatus(ending), error=ending, request_id=f"r-{code}")
        on_waiting(False)
        ran = {"request_id": f"r-{code}", "approved_code": code, "analysis": analysis}
        match ending:
            case "fails":
                return Execution(status=CodeStatus.FAILED, error=f"ValueError: {code}", **ran)
            case "refused call":
                return Execution(status=CodeStatus.REJECTED, error="refused", **ran)
            case "no results":
                return Execution(status=CodeStatus.SUCCEEDED, error="NameError: none", **ran)
            case "wrong type":
                return Execution(status=CodeStatus.SUCCEEDED, results={"n": "one"}, **ran)
        return Execution(status=CodeStatus.SUCCEEDED, results={"n": 1}, text="hi", **ran)


async def pipeline(endings: Sequence[str], most: int) -> tuple[CodeResult, FakeGenerator, FakeRunner, list[CodeStatus]]:
    generator, runner, statuses = FakeGenerator(endings), FakeRunner(), list[CodeStatus]()
    request = CodeRequest(user_query="q", task_objective="t", expected_results={"n": "int"}, max_attempts=most)
    line = CodePipeline(generator=generator, analyzer=FakeAnalyzer(), on_status=statuses.append)
    async with asyncio.timeout(60):
        return await line.run(request, runner), generator, runner, statuses


@given(endings=st.lists(st.sampled_from(GOES_ON + ENDS), min_size=6, max_size=6), most=st.integers(1, 6))
def test_attempts_end_where_they_should_and_learn_from_the_last_two(endings: list[str], most: int) -> None:
    result, generator, runner, statuses = asyncio.run(pipeline(endings, most))
    last = next((n for n, ending in enumerate(endings[:most]) if ending in ENDS), most - 1)

    assert [attempt.number for attempt in result.attempts] == list(range(1, last + 2))
    errors = [attempt.error for attempt in result.attempts]
    assert generator.chains == [errors[max(0, n - 2) : n] for n in range(last + 1)]
    assert result.succeeded == (endings[last] == "succeeded")
    assert result.results == ({"n": 1} if result.succeeded else {})
    assert (result.error is None) == result.succeeded
    assert result.status.is_final
    # what is asked for is the attempt's own code, and what ran is what was asked for in the same attempt
    assert runner.asked == [a.code for a in result.attempts if a.code and not a.code.startswith("syntax")]
    assert all(a.approved_code in (None, a.code) for a in result.attempts)
    assert all(a.request_id in (None, f"r-{a.code}") for a in result.attempts)
    # every status followed from the one before
    for before, after in pairwise(statuses):
        assert before is after or step(before, after) is after
    assert statuses[-1] is result.status


@pytest.mark.parametrize(
    ("ending", "status", "stage"),
    [
        ("no code", "failed", Stage.GENERATION),
        ("raises", "failed", Stage.GENERATION),
        ("configuration", "failed", Stage.CONFIGURATION),
        ("no store", "failed", Stage.CONFIGURATION),
        ("syntax", "failed", Stage.ANALYSIS),
        ("rejected", "rejected", Stage.APPROVAL),
        ("expired", "expired", Stage.APPROVAL),
        ("blocked", "blocked", Stage.APPROVAL),
        ("cancelled", "cancelled", Stage.APPROVAL),
        ("fails", "failed", Stage.EXECUTION),
        ("refused call", "rejected", Stage.EXECUTION),
        ("no results", "failed", Stage.RESULTS),
        ("wrong type", "failed", Stage.RESULTS),
    ],
)
async def test_each_way_to_go_wrong_has_its_status_and_stage(ending: str, status: str, stage: Stage) -> None:
    result, *_ = await pipeline([ending], 1)

    assert (result.status.value, result.error and result.error.stage) == (status, stage)
    assert result.outputs == ()


async def test_metadata_of_the_generator_is_kept_with_its_attempt() -> None:
    result, *_ = await pipeline(["fails", "succeeded"], 2)

    assert [attempt.metadata for attempt in result.attempts] == [{"tokens": 1}, {"tokens": 2}]


async def test_a_generator_without_metadata_or_with_broken_metadata_is_no_problem() -> None:
    class Plain:
        async def generate_code(self, _request: object, _error_chain: object) -> str:
            return "succeeded 1"

    class Broken(Plain):
        def get_generation_metadata(self) -> dict[str, int]:
            raise OSError("gone")

    for generator in (Plain(), Broken()):
        line = CodePipeline(generator=generator, analyzer=FakeAnalyzer())
        result = await line.run(CodeRequest(user_query="", task_objective=""), FakeRunner())
        assert (result.succeeded, result.attempts[0].metadata) == (True, {})


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ({"n": 1}, False),
        ({"n": True}, True),
        ({"n": 1.5}, True),
        ({"n": "1"}, True),
        ({}, False),
        ([1], True),
        ("n", True),
        (None, True),
    ],
)
async def test_results_are_checked_for_the_types_that_were_named(results: object, problem: bool) -> None:
    class Runner(FakeRunner):
        async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
            on_waiting(False)
            return Execution(status=CodeStatus.SUCCEEDED, results=results, approved_code=code, analysis=analysis)

    generator = MockCodeGenerator("success")
    request = CodeRequest(
        user_query="", task_objective="", max_attempts=1, expected_results={"n": int, "plot": "a figure"}
    )
    line = CodePipeline(generator=generator, analyzer=FakeAnalyzer(), on_status=lambda _: None)
    result = await line.run(request, Runner())

    assert (result.error is not None and result.error.stage is Stage.RESULTS) == problem


async def test_keys_of_results_hide_nothing_of_the_result() -> None:
    keys = ("status", "attempts", "error", "findings", "results", "succeeded", "code", "__class__")

    class Runner(FakeRunner):
        async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
            on_waiting(False)
            results = dict.fromkeys(keys, "ours")
            return Execution(status=CodeStatus.SUCCEEDED, results=results, approved_code=code, analysis=analysis)

    line = CodePipeline(generator=MockCodeGenerator("success"), analyzer=FakeAnalyzer())
    result = await line.run(CodeRequest(user_query="", task_objective=""), Runner())

    assert result.results == dict.fromkeys(keys, "ours")
    assert (result.status, result.error, len(result.attempts)) == (CodeStatus.SUCCEEDED, None, 1)
    result.results["status"] = "changed"
    assert result.results["status"] == "ours"


async def test_a_cancelled_request_says_so_and_one_that_has_ended_stays_as_it_is() -> None:
    line = CodePipeline(generator=MockCodeGenerator("success"), analyzer=FakeAnalyzer())
    assert line.cancel().status is CodeStatus.CANCELLED
    assert [attempt.number for attempt in line.cancel().attempts] == [1]

    line = CodePipeline(generator=FakeGenerator(["succeeded"]), analyzer=FakeAnalyzer())
    await line.run(CodeRequest(user_query="", task_objective=""), FakeRunner())
    assert line.cancel().status is CodeStatus.SUCCEEDED


def test_a_status_that_is_final_is_followed_by_none() -> None:
    for before in CodeStatus:
        assert before.is_final == (before not in TRANSITIONS)
        for after in CodeStatus:
            if after not in TRANSITIONS.get(before, ()):
                with pytest.raises(InvalidTransitionError):
                    step(before, after)


def test_nothing_runs_that_was_refused() -> None:
    refused = {CodeStatus.REJECTED, CodeStatus.EXPIRED, CodeStatus.BLOCKED, CodeStatus.CANCELLED}

    assert not refused & TRANSITIONS.keys()
