"""The settings of agents, and the values that are made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traitlets import Enum, Float, HasTraits, Int, List, Unicode

from jupyter_agentbox.storage.database import JournalMode
from jupyter_agentbox.storage.thread_retention import ThreadLimits

if TYPE_CHECKING:
    from jupyter_agentbox.agent_composition import AgentSettings


class AgentTraits(HasTraits):
    """The settings of agents, which an administrator or a user sets as ``c.AgentBoxApp.agent_…``."""

    agent_model = Unicode(
        help=(
            "The language model of agents: `openai:NAME`, `openai-chat:NAME` or `anthropic:NAME`. Default: none; each"
            " thread must name one."
        )
    ).tag(config=True)

    agent_base_url = Unicode(
        help=(
            "The address of another server that speaks the interface of the model's provider, such as Ollama, vLLM or a"
            " gateway. Default: the provider's. The model's key is sent there."
        )
    ).tag(config=True)

    agent_review_model = Unicode(
        help=(
            "The language model that reviews calls in threads whose approval mode is `auto_review`. Default: the"
            " thread's own."
        )
    ).tag(config=True)

    agent_model_may_allow = List(
        Unicode(),
        help=(
            "What a reviewing model may allow in the place of a person, in threads whose approval mode is"
            ' `auto_review`: ["notebook.run_code", "shop.list_*"]. Default: nothing.'
        ),
    ).tag(config=True)

    agent_context = Enum(
        ["none", "cells", "outputs"],
        default_value="none",
        help="What agents may read of the notebook that asks them: nothing, its cells, or also their outputs.",
    ).tag(config=True)

    agent_steps = Int(
        50, min=1, allow_none=True, help="How often a model may be asked in one turn of an agent. None: no limit."
    ).tag(config=True)

    agent_tokens = Int(
        2_000_000, min=1, allow_none=True, help="How many tokens one turn may use, in and out. None: no limit."
    ).tag(config=True)

    agent_seconds = Float(
        1800.0,
        min=0.0,
        allow_none=True,
        help="How long one turn may work, in seconds. Waiting for a decision does not count. None: no limit.",
    ).tag(config=True)

    agent_hourly_requests = Int(
        600,
        min=1,
        allow_none=True,
        help="How often models may be asked in an hour, by all agents of this server. None: no limit.",
    ).tag(config=True)

    agent_hourly_tokens = Int(
        20_000_000,
        min=1,
        allow_none=True,
        help="How many tokens all agents of this server may use in an hour, in and out. None: no limit.",
    ).tag(config=True)

    agent_history_days = Float(
        None,
        min=0.0,
        allow_none=True,
        help="After how many days without a change an agent's thread is removed from the database. Default: never.",
    ).tag(config=True)

    agent_history_threads = Int(
        5_000,
        min=0,
        allow_none=True,
        help=(
            "How many threads of agents the database keeps: those that changed last, with those that were archived."
            " None: no limit."
        ),
    ).tag(config=True)

    def agent_settings(self, *, database_url: str, journal_mode: JournalMode, tenant: str | None) -> AgentSettings:
        """Return what agents are built from: these settings, and the database that the whole server uses."""
        from jupyter_agentbox import agent_composition  # noqa: PLC0415
        from jupyter_agentbox.agents.threads.limits import TurnLimits  # noqa: PLC0415

        limits = TurnLimits(
            steps=self.agent_steps,
            tokens=self.agent_tokens,
            seconds=self.agent_seconds,
            requests_per_hour=self.agent_hourly_requests,
            tokens_per_hour=self.agent_hourly_tokens,
        )
        return agent_composition.AgentSettings(
            database_url=database_url,
            journal_mode=journal_mode,
            tenant=tenant,
            model=self.agent_model,
            base_url=self.agent_base_url or None,
            review_model=self.agent_review_model,
            limits=limits,
            kept=ThreadLimits(days=self.agent_history_days, count=self.agent_history_threads),
        )
