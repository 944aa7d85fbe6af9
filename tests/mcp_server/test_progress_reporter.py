from __future__ import annotations

import asyncio

from jupyter_agentbox.mcp_server.progress_reporter import MOST_REPORTS, ProgressReporter


class Client:
    def __init__(self) -> None:
        self.heard: list[str | None] = []
        self.numbers: list[float] = []

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        await asyncio.sleep(0)  # another task has its turn while a message is written
        assert total is None
        self.heard.append(message)
        self.numbers.append(progress)


async def test_what_was_said_right_before_the_end_is_still_sent() -> None:
    client = Client()
    reporter = ProgressReporter(client)
    beating = asyncio.create_task(reporter.run())
    await asyncio.sleep(0)  # it waits for news

    reporter.activity.run()
    reporter.report("step 1")
    reporter.report("step 2")
    reporter.finish()
    await beating

    assert client.heard == ["step 1", "step 2"]
    assert client.numbers == sorted(set(client.numbers))


async def test_of_a_request_that_ends_before_reporting_began_the_reports_are_sent() -> None:
    client = Client()
    reporter = ProgressReporter(client)

    reporter.report("all there was")
    reporter.finish()
    await reporter.run()

    assert client.heard == ["all there was"]


async def test_of_a_flood_the_latest_are_sent() -> None:
    client = Client()
    reporter = ProgressReporter(client)

    for step in range(MOST_REPORTS + 1):
        reporter.report(f"step {step}")
    reporter.finish()
    await reporter.run()

    assert client.heard == [f"step {step}" for step in range(1, MOST_REPORTS + 1)]
