"""Generate, analyze, ask, run: with a real kernel, real requests, a real store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import (
    AnalysisSettings,
    ApprovalRequest,
    CodeRequest,
    CodeResult,
    CodeService,
    CodeStatus,
    MockCodeGenerator,
)
from jupyter_agentbox.agents.results import Stage
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.approvals import OutcomeState, Status
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.system import SystemClock

TIMEOUT = 60
ALLOW = Policy((Rule(server="notebook", tool="run_code", effect=Effect.ALLOW),))
ADD = "from jupyter_agentbox import tools\nresults = {'sum': int(tools.mini.add(a=1, b=2))}"

Make = Callable[..., CodeService]


def a_request(**options: Any) -> CodeRequest:
    return CodeRequest(**{"user_query": "Do it.", "task_objective": "It is done.", **options})


def given(*codes: str) -> MockCodeGenerator:
    generator = MockCodeGenerator()
    generator.set_code_sequence(codes)
    return generator


async def run(service: CodeService, **options: Any) -> CodeResult:
    async with asyncio.timeout(TIMEOUT):
        return await service.run(a_request(**options))


class Asked:
    """Accepts what asks, and remembers it."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.requests: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> None:
        self.requests.append(request)
        if request.tool_name in self.refused:
            await request.reject("not today")
        else:
            await request.accept()

    @property
    def names(self) -> list[str]:
        return [f"{request.server_name}.{request.tool_name}" for request in self.requests]


@pytest.fixture
def database(places: Path) -> str:
    return sqlite_url(str(places / "approvals.sqlite"))


async def stored(database: str) -> Sequence[StoredRequest]:
    store = SqlApprovalStore(database, clock=SystemClock())
    await store.open()
    try:
        return (await store.list(ApprovalQuery())).approvals[::-1]
    finally:
        await store.aclose()


@pytest.fixture
def make(places: Path, database: str) -> Make:
    def make(*codes: str, **options: Any) -> CodeService:
        chosen = {"generator": given(*codes)} if codes else {}
        return CodeService(**{"images_dir": places / "images", "database_url": database, **chosen, **options})

    return make


# -- the mock generator's behaviors


@pytest.mark.parametrize(
    ("behavior", "status", "attempts", "asked"),
    [
        ("success", "succeeded", 1, 1),
        ("syntax_error", "failed", 2, 0),
        ("runtime_error", "failed", 2, 2),
        ("missing_results", "failed", 2, 2),
        ("channel_read", "succeeded", 1, 1),
        ("channel_write", "succeeded", 1, 1),
        ("security_risk", "succeeded", 1, 1),
        ("error_aware", "succeeded", 2, 2),
    ],
)
async def test_each_behavior_of_the_mock_generator(
    make: Make, behavior: str, status: str, attempts: int, asked: int
) -> None:
    asks = Asked()
    async with make(generator=MockCodeGenerator(behavior), approve=asks) as service:
        result = await run(service, max_attempts=2)

    assert (result.status.value, len(result.attempts), asks.names) == (
        status,
        attempts,
        ["notebook.run_code"] * asked,
    )
    assert bool(result.results) == result.succeeded


async def test_the_result_has_what_the_code_left_and_showed(make: Make) -> None:
    code = (
        "import matplotlib.pyplot as plt, numpy as np\nprint('drawn')\nplt.plot([1, 2])\nplt.show()\n"
        "results = {'mean': np.float64(1.5), 'all': np.arange(3), 'nan': float('nan'), 'status': 'ours', 1: (1,)}"
    )
    async with make(code, policy=ALLOW) as service:
        result = await run(service)

    assert result.results == {"mean": 1.5, "all": [0, 1, 2], "nan": None, "status": "ours", "1": [1]}
    assert (result.status, result.code, result.error) == (CodeStatus.SUCCEEDED, code, None)
    assert result.text is not None
    assert result.text.startswith("drawn")
    assert [path.suffix for path in result.figures] == [".png"]
    assert result.outputs[0] == {"text/plain": result.text}
    assert "image/png" in result.outputs[1]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1", "NameError"),
        ("results = [1]", "`results` must be a dict, not list"),
        ("results = None", "`results` must be a dict, not NoneType"),
        ("results = {'n': 'one'}", "`results['n']` must be of type int, not str"),
    ],
)
async def test_results_of_a_wrong_type_are_an_error(make: Make, code: str, message: str) -> None:
    async with make(code, policy=ALLOW) as service:
        result = await run(service, expected_results={"n": "int"}, max_attempts=1)

    assert result.status is CodeStatus.FAILED
    assert result.error is not None
    assert result.error.stage is Stage.RESULTS
    assert message in result.error.message


# -- one way for all requests


async def test_the_code_is_a_request_like_any_other_and_so_are_its_calls(make: Make, database: str) -> None:
    asks = Asked()
    async with make(ADD, approve=asks) as service:
        result = await run(service)

    code, call = await stored(database)
    assert (result.results, asks.names) == ({"sum": 3}, ["notebook.run_code", "mini.add"])
    assert (code.call.qualified_name, code.call.arguments) == ("notebook.run_code", {"code": ADD})
    assert (code.id, code.status, code.outcome_state) == (
        result.attempts[0].request_id,
        Status.APPROVED,
        OutcomeState.SUCCEEDED,
    )
    assert code.call.origin == call.call.origin
    assert code.call.origin.kernel_id is not None
    assert code.decision is not None
    assert code.decision.reviewer == call.decision.reviewer if call.decision else False
    assert [finding.code for finding in asks.requests[0].findings] == ["AB302"]  # it adds
    assert asks.requests[1].findings == ()


async def test_without_a_decision_nothing_runs(
    make: Make, places: Path, database: str, let_time_pass: Callable[[float], None]
) -> None:
    code = f"open({str(places / 'ran')!r}, 'w')\nresults = {{}}"
    async with make(code, approval_timeout=100) as service:
        refused = await run(service)
        expired = service.start(a_request())
        await expired.waiting()
        let_time_pass(100)
        result = await expired.result()
    async with make(code, approve=Asked("run_code")) as service:
        rejected = await run(service)

    assert [each.status.value for each in (refused, result, rejected)] == ["rejected", "expired", "rejected"]
    assert [len(each.attempts) for each in (refused, result, rejected)] == [1, 1, 1]
    assert rejected.error is not None
    assert "not today" in rejected.error.message
    assert [each.status for each in await stored(database)] == [Status.REJECTED, Status.EXPIRED, Status.REJECTED]
    assert not (places / "ran").exists()


async def test_a_rule_that_denies_is_a_rejection_and_nobody_is_asked(make: Make) -> None:
    asks = Asked()
    deny = Policy((Rule(server="notebook", tool="*", effect=Effect.DENY, reason="not here"),))
    async with make("results = {}", policy=deny, approve=asks) as service:
        result = await run(service)

    assert (result.status, asks.requests, result.error and "not here" in result.error.message) == (
        *(CodeStatus.REJECTED, [], True),
    )


async def test_what_the_table_blocks_is_blocked_recorded_and_not_tried_again(
    make: Make, places: Path, database: str
) -> None:
    asks = Asked()
    code = f"import os\nos.system('touch {places / 'ran'}')  # noqa\nresults = {{}}"
    async with make(
        code, policy=ALLOW, approve=asks, analysis=AnalysisSettings(outcomes={"AB205": "block"})
    ) as service:
        result = await run(service)

    [request] = await stored(database)
    assert (result.status, len(result.attempts), asks.requests) == (CodeStatus.BLOCKED, 1, [])
    assert {"AB205", "S605"} <= {finding.code for finding in result.findings}
    assert (request.status, request.evaluation.effect) == (Status.REJECTED, Effect.DENY)
    assert not (places / "ran").exists()


async def test_findings_ask_though_a_rule_allows_and_never_the_other_way_round(make: Make) -> None:
    asks = Asked()
    async with make("import socket\nresults = {}", "results = {}", policy=ALLOW, approve=asks) as service:
        assert (await run(service)).succeeded
        assert (await run(service)).succeeded
        assert [[finding.code for finding in request.findings] for request in asks.requests] == [["AB203"]]
    async with make("results = {}", approve=asks, analysis=AnalysisSettings(outcomes={"": "allow"})) as service:
        assert (await run(service)).succeeded

    assert asks.names == ["notebook.run_code"] * 2  # no rule, so it asks


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_what_approve_returns_decides(make: Make, answer: bool, is_async: bool) -> None:
    async def later(_request: ApprovalRequest) -> bool:
        return answer

    async with make("results = {}", approve=later if is_async else lambda _: answer) as service:
        assert (await run(service)).succeeded == answer


@pytest.mark.parametrize("odd", [1, "yes", object()])
async def test_only_true_allows(make: Make, odd: Any) -> None:
    async with make("results = {}", approve=lambda _: odd) as service:
        assert (await run(service)).status is CodeStatus.REJECTED


async def test_what_was_edited_runs_and_is_what_the_result_tells(make: Make) -> None:
    async def edit(request: ApprovalRequest) -> None:
        await request.accept({"code": "import socket\nresults = {'edited': True}"})

    async with make("results = {'edited': False}", approve=edit) as service:
        result = await run(service)

    assert result.results == {"edited": True}
    assert (result.attempts[0].code, result.code) == ("results = {'edited': False}", result.attempts[0].approved_code)
    assert [finding.code for finding in result.findings] == ["AB203"]


async def test_what_the_table_blocks_does_not_run_because_somebody_edited_it_in(make: Make, places: Path) -> None:
    async def edit(request: ApprovalRequest) -> None:
        await request.accept({"code": f"import socket\nopen({str(places / 'ran')!r}, 'w')\nresults = {{}}"})

    analysis = AnalysisSettings(outcomes={"AB203": "block"})
    async with make("results = {}", approve=edit, analysis=analysis) as service:
        result = await run(service)

    assert (result.status, [each.code for each in result.findings if each.code == "AB203"]) == (
        *(CodeStatus.BLOCKED, ["AB203"]),
    )
    assert not (places / "ran").exists()


# -- attempts


async def test_each_attempt_asks_for_its_own_code_and_gets_the_last_two_errors(make: Make, database: str) -> None:
    codes = [f"raise ValueError('error {n}')" for n in range(3)]
    generator, asks = given(*codes, "results = {'n': 4}"), Asked()
    async with make(generator=generator, approve=asks) as service:
        result = await run(service, max_attempts=4)

    assert [str(error).split("\n")[0] for error in generator.last_error_chain] == [
        "ValueError: error 1",
        "ValueError: error 2",
    ]
    assert [request.tool_args["code"] for request in asks.requests] == [attempt.code for attempt in result.attempts]
    assert len({request.id for request in asks.requests}) == 4
    assert [each.outcome_state for each in await stored(database)] == [
        *[OutcomeState.FAILED] * 3,
        OutcomeState.SUCCEEDED,
    ]


async def test_an_attempt_that_is_refused_after_one_that_failed_ends_it(make: Make, places: Path) -> None:
    seen: list[str] = []

    async def first_only(request: ApprovalRequest) -> bool:
        seen.append(request.id)
        return len(seen) == 1

    async with make("1 / 0", f"open({str(places / 'ran')!r}, 'w')\nresults = {{}}", approve=first_only) as service:
        result = await run(service)

    assert [attempt.status.value for attempt in result.attempts] == ["failed", "rejected"]
    assert not (places / "ran").exists()


async def test_an_attempt_finds_nothing_of_one_before(make: Make, places: Path) -> None:
    leaves = (
        "import threading, time\nresults = {'stale': 1}\nsecret = 1\n"
        "get_ipython().input_transformers_cleanup.append(lambda lines: ['results = {\"swapped\": 1}'])\n1 / 0"
    )
    looks = "results = {'names': sorted(name for name in globals() if name in ('secret', 'results'))}"
    async with make(leaves, "x = 1", looks, policy=None, approve=Asked()) as service:
        result = await run(service)

    assert [str(attempt.error).split("\n")[0] for attempt in result.attempts[:2]] == [
        "ZeroDivisionError: division by zero",
        "NameError: the code left no dictionary `results`",
    ]
    assert result.results == {"names": []}


async def test_names_of_a_request_are_gone_in_the_next_one(make: Make) -> None:
    code = "results = {'known': 'kept' in globals()}\nkept = 1"
    async with make(
        code, policy=Policy((Rule(server="*", tool="*", effect=Effect.ALLOW),)), approve=Asked()
    ) as service:
        kernels = [await run(service), await run(service)]

    assert [result.results for result in kernels] == [{"known": False}] * 2


async def test_with_fresh_kernels_nothing_at_all_is_left(make: Make) -> None:
    code = "import os\nresults = {'pid': os.getpid()}"
    async with make(code, policy=ALLOW, fresh_kernel=True) as fresh, make(code, policy=ALLOW) as kept:
        pids = [[(await run(service)).results["pid"] for _ in range(2)] for service in (fresh, kept)]

    assert (len(set(pids[0])), len(set(pids[1]))) == (2, 1)


@pytest.mark.parametrize("catches", [True, False])
async def test_code_of_which_a_call_was_refused_is_not_tried_again_unless_it_went_on(make: Make, catches: bool) -> None:
    call = "tools.mini.add(a=1, b=2)\n"
    code = f"from jupyter_agentbox import tools\n{call}results = {{}}"
    if catches:
        caught = f"try:\n    {call}except Exception:\n    results = {{'went': 'on'}}"
        code = f"from jupyter_agentbox import tools\n{caught}"
    async with make(code, approve=Asked("add")) as service:
        result = await run(service)

    assert (result.status.value, len(result.attempts)) == ("succeeded" if catches else "rejected", 1)


async def test_code_that_says_that_it_was_refused_was_not(make: Make) -> None:
    code = "from jupyter_agentbox import ToolCallRejectedError\nraise ToolCallRejectedError('refused')"
    async with make(code, "results = {}", approve=Asked()) as service:
        result = await run(service)

    assert [attempt.status.value for attempt in result.attempts] == ["failed", "succeeded"]


async def test_code_that_runs_too_long_is_ended_and_another_attempt_works(
    make: Make, places: Path, let_time_pass: Callable[[float], None]
) -> None:
    begun = places / "begun"
    os.mkfifo(begun)
    code = f"open({str(begun)!r}, 'w').close()\nwhile True: pass"
    async with make(code, "results = {'ok': 1}", approve=Asked(), timeout=100) as service:
        async with asyncio.timeout(TIMEOUT):
            going = service.start(a_request())
            await asyncio.to_thread(begun.read_bytes)
        let_time_pass(100)
        result = await going.result()

    assert [attempt.status.value for attempt in result.attempts] == ["failed", "succeeded"]
    assert result.attempts[0].error is not None
    assert result.attempts[0].error.message.startswith("TimeoutError")


async def test_code_that_ends_its_kernel_fails_and_another_attempt_works(make: Make) -> None:
    async with make("import os\nos._exit(1)", "results = {'ok': 1}", approve=Asked()) as service:
        result = await run(service)

    assert [attempt.status.value for attempt in result.attempts] == ["failed", "succeeded"]


# -- waiting, and the end of it


async def test_waiting_is_a_state_and_the_request_can_be_decided_from_outside(make: Make) -> None:
    async with make("results = {'n': 1}") as service, asyncio.timeout(TIMEOUT):
        waits = service.start(a_request())
        assert await waits.waiting() == waits.pending
        assert (waits.status, [str(request)[:17] for request in waits.pending]) == (
            *(CodeStatus.WAITING, ["notebook.run_code"]),
        )
        await waits.pending[0].accept()
        result = await waits.result()

    assert (result.succeeded, waits.status, waits.pending) == (True, CodeStatus.SUCCEEDED, ())


@pytest.mark.parametrize("while_it", ["waits", "runs"])
async def test_a_cancelled_run_leaves_nothing_that_runs_or_waits(
    make: Make, places: Path, database: str, while_it: str
) -> None:
    begun = places / "begun"
    os.mkfifo(begun)
    code = f"open({str(begun)!r}, 'w').close()\nwhile True: pass"
    async with make(code, "results = {}", approve=Asked() if while_it == "runs" else lambda _: None) as service:
        async with asyncio.timeout(TIMEOUT):
            going = service.start(a_request())
            await (going.waiting() if while_it == "waits" else asyncio.to_thread(begun.read_bytes))
            await going.cancel()
            result = await going.result()

    [request] = await stored(database)
    assert (result.status, going.status, len(result.attempts)) == (CodeStatus.CANCELLED, CodeStatus.CANCELLED, 1)
    assert request.status is (Status.CANCELLED if while_it == "waits" else Status.APPROVED)
    assert request.outcome_state is (None if while_it == "waits" else OutcomeState.CANCELLED)


async def test_cancelling_who_runs_it_withdraws_the_request(make: Make, database: str) -> None:
    asked = asyncio.Event()

    def leave(_request: ApprovalRequest) -> None:
        asked.set()

    async with make("results = {}", approve=leave) as service, asyncio.timeout(TIMEOUT):
        task = asyncio.ensure_future(service.run(a_request()))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert [each.status for each in await stored(database)] == [Status.CANCELLED]


async def test_what_approve_raises_comes_out_and_nothing_runs(make: Make, places: Path, database: str) -> None:
    def fail(_request: ApprovalRequest) -> None:
        raise KeyError("mine")

    async with make(f"open({str(places / 'ran')!r}, 'w')\nresults = {{}}", approve=fail) as service:
        with pytest.raises(KeyError, match="mine"):
            await run(service)

    assert [each.status for each in await stored(database)] == [Status.CANCELLED]
    assert not (places / "ran").exists()


async def test_an_answer_that_comes_too_late_changes_nothing(make: Make, places: Path) -> None:
    async def late(request: ApprovalRequest) -> None:
        await request.response()
        await request.accept()

    code = f"open({str(places / 'ran')!r}, 'w')\nresults = {{}}"
    async with make(code, approve=late, approval_timeout=0.2) as service:
        result = await run(service)

    assert (result.status, (places / "ran").exists()) == (CodeStatus.EXPIRED, False)


# -- code that tries to run code


async def test_code_cannot_ask_to_run_code(make: Make, database: str) -> None:
    asks = Asked()
    code = (
        "from jupyter_agentbox.kernel import runtime\n"
        "try:\n    runtime.link().call('notebook', 'run_code', {'code': 'print(1)'})\n"
        "except Exception as error:\n    results = {'error': type(error).__name__}"
    )
    async with make(code, policy=Policy((Rule(server="*", tool="*", effect=Effect.ALLOW),)), approve=asks) as service:
        result = await run(service)

    assert result.results == {"error": "UnknownServerError"}
    assert len(await stored(database)) == 1


async def test_a_lasting_rule_for_tools_is_none_for_code(make: Make) -> None:
    asks = Asked()
    rules = Policy(
        (Rule(server="mini", tool="*", effect=Effect.ALLOW), Rule(server="notebook", tool="*", effect=Effect.ALLOW))
    )
    async with make(ADD, policy=rules, approve=asks) as service:
        assert (await run(service)).succeeded

    assert asks.names == ["notebook.run_code"]


async def test_a_sandbox_that_cannot_be_made_is_said_and_not_tried_again(make: Make, places: Path) -> None:
    generator = MockCodeGenerator("success")
    config = {"levels": ["bubblewrap"], "bubblewrap": str(places / "none")}
    service = make(generator=generator, policy=ALLOW, sandbox_config=config)
    result = await run(service)

    assert (result.status, generator.call_count) == (CodeStatus.FAILED, 1)
    assert result.error is not None
    assert result.error.stage is Stage.CONFIGURATION


async def test_requests_take_turns(make: Make) -> None:
    async with make("results = {}", approve=Asked()) as service, asyncio.timeout(TIMEOUT):
        results = await asyncio.gather(*(service.run(a_request()) for _ in range(3)))

    assert [result.succeeded for result in results] == [True] * 3


async def test_a_request_that_would_wait_for_itself_is_an_error(make: Make) -> None:
    async def again(request: ApprovalRequest) -> None:
        await service.run(a_request())
        await request.accept()

    async with make("results = {}", approve=again) as service:
        with pytest.raises(RuntimeError, match="wait for ever"):
            await run(service)
        assert not service._busy


async def test_without_a_context_each_request_has_a_kernel_of_its_own(make: Make) -> None:
    service = make("import os\nresults = {'pid': os.getpid()}", policy=ALLOW)
    pids = [(await run(service)).results["pid"] for _ in range(2)]

    assert pids[0] != pids[1]


def test_what_is_no_generator_is_refused_at_once(make: Make) -> None:
    with pytest.raises(TypeError, match="generate_code"):
        make(generator=object())
    with pytest.raises(TypeError, match="generate_code"):
        make(generator=MockCodeGenerator)


async def test_results_that_code_shows_are_not_those_that_it_left(make: Make) -> None:
    forged = "{'application/vnd.jupyter-agentbox.results+json': {'type': 'dict', 'results': {'forged': 1}}}"
    show = f"get_ipython().display_pub.publish(data={forged})"
    async with make(show, f"{show}\nresults = {{'own': 1}}", approve=Asked()) as service:
        result = await run(service)

    assert (len(result.attempts), result.results, result.outputs) == (2, {"own": 1}, ())


async def test_a_service_can_be_used_again_after_its_end(make: Make) -> None:
    service = make("results = {'n': 1}", policy=ALLOW)
    for _ in range(2):
        async with service:
            assert (await run(service)).results == {"n": 1}
