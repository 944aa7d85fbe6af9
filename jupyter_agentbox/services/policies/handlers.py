"""REST: the rules, permission to write them, and their evaluation of a call."""

from __future__ import annotations

import asyncio
from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.calls import JsonObject, Origin, ToolCall, check_arguments
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.located_json import Lines, LocatedJsonError, parse
from jupyter_agentbox.core.policy import Layer, Rule
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.rule_text import MAX_BYTES, read_text, write_text
from jupyter_agentbox.exceptions import AgentBoxError, InvalidRulesError, PolicyConflictError
from jupyter_agentbox.services.approvals.handlers import AUTH_RESOURCE as APPROVALS
from jupyter_agentbox.services.handlers import AgentBoxHandler
from jupyter_agentbox.services.reviewers import reviewer_of

from .dry_run import dry_run
from .manager import PolicyManager

AUTH_RESOURCE: Final = "jupyter_agentbox:policy"


class PolicyAPIHandler(AgentBoxHandler):
    """Base of the handlers of rules."""

    auth_resource = AUTH_RESOURCE

    @property
    def policies(self) -> PolicyManager:
        """The policy in force."""
        return self.services.policies

    async def strict_object(self) -> JsonObject:
        """Parse and return the request's body, keeping every digit.

        Raises
        ------
        InvalidRulesError
            If it is not an object, not JSON that is valid in a rules file, or longer than one may be.
        """
        if len(self.request.body) > MAX_BYTES:
            raise InvalidRulesError(f"the body has more than {MAX_BYTES:,} bytes")
        try:
            text = self.request.body.decode()
            # In a thread: the parser, which knows lines and columns, is slow.
            value = (await asyncio.to_thread(parse, text)).value
        except UnicodeDecodeError:
            raise InvalidRulesError("the body must be UTF-8 text") from None
        except LocatedJsonError as error:
            line, column = Lines(text).place(error.at)
            raise InvalidRulesError(f"the body is not JSON: line {line}, column {column}: {error}") from None
        if not isinstance(value, dict):
            raise InvalidRulesError("the body must be a JSON object")
        return value

    def error_details(self, error: AgentBoxError) -> JsonObject:
        """Add the problems in the rules, or the conflicting revision."""
        details = super().error_details(error)
        if isinstance(error, InvalidRulesError):
            return {**details, "problems": [*error.problems]}
        return {**details, "revision": error.revision} if isinstance(error, PolicyConflictError) else details


class PolicyHandler(PolicyAPIHandler):
    """The rules."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List all rules, with the user's in editable form, and the problems in files."""
        self.finish_json(self._to_json(self.policies.book))

    @web.authenticated
    @authorized
    async def put(self) -> None:
        """Replace the user's rules. A rule decides, so whoever may decide may write one, and nobody else.

        The new rules also decide pending requests.
        """
        body = await self.strict_object()
        rules, revision, schema = (body.get(name) for name in ("rules", "revision", "$schema"))
        unknown = sorted(body.keys() - {"rules", "revision", "$schema"})
        if unknown:
            raise InvalidRulesError(f"unknown field `{unknown[0]:.80}`; a policy has rules, revision and $schema")
        if not isinstance(rules, list):
            raise InvalidRulesError("`rules` must be a list of rules")
        if not isinstance(revision, str | None) or not isinstance(schema, str | None):
            raise InvalidRulesError("`revision` and `$schema` must be strings")
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        reviewer.check(self.services.decisions.decide_with)
        async with self.services.changes.by(reviewer):
            before = self.policies.book
            book = self.policies.write(rules, revision=revision, schema=schema)
        self.log.info("jupyter_agentbox: %s wrote the user's rules", reviewer.name)
        if await self.may_write(APPROVALS):
            await self.services.decisions.settle_by_rules(book.written_since(before), reviewer=reviewer)
        may_read = await self.may_read(AUTH_RESOURCE)
        self.finish_json(self._to_json(book) if may_read else {})

    def _to_json(self, book: RuleBook) -> JsonObject:
        user = book.user
        return {
            "rules": [] if user is None else [*user.entries],
            "$schema": None if user is None else user.schema,
            "file": None if user is None else user.path,
            "revision": "" if user is None else user.revision,
            "writable": self.policies.is_writable,
            "effective": [
                {**rule.to_json(), "layer": rule.layer.value, "file": rule.file or None, "line": rule.line or None}
                for rule in self.policies.file_and_program_rules()
            ],
            "problems": [problem.to_json() for problem in book.problems],
            "features": book.site.to_json(),
            "hub_policy": None if book.hub_policy is None else book.hub_policy.to_json(),
        }


class EvaluateHandler(PolicyAPIHandler):
    """Evaluation of a hypothetical call by the rules."""

    @web.authenticated
    @authorized(action="read", resource=AUTH_RESOURCE)  # type: ignore[untyped-decorator]  # Jupyter gives it no types
    async def post(self) -> None:
        """Evaluate a call. Changes nothing; requires only the right to read."""
        self.finish_json(self.policies.evaluate(_call_from_json(await self.strict_object())).to_json())


class DryRunHandler(PolicyAPIHandler):
    """Dry run of a rule against the history."""

    @web.authenticated
    @authorized(action="read", resource=AUTH_RESOURCE)  # type: ignore[untyped-decorator]  # Jupyter gives it no types
    async def post(self) -> None:
        """Evaluate the most recent calls with one more rule. Changes nothing; requires the right to read both."""
        rule = await asyncio.to_thread(_rule_from_json, await self.strict_object())
        if not await self.may_read(APPROVALS):
            raise web.HTTPError(403)
        found = await dry_run(rule, self.policies.in_force, self.services.approvals.list)
        self.finish_json(found.to_json())


def _rule_from_json(body: JsonObject) -> Rule:
    if body.keys() != {"rule"}:
        raise InvalidRulesError("the body must have a `rule`, and nothing else")
    found = read_text(write_text([body["rule"]]), path="rule", layer=Layer.USER)
    if found.problems:
        raise InvalidRulesError(
            f"this is not a rule: {found.problems[0].message}",
            problems=[problem.to_json() for problem in found.problems],
        )
    return found.rules[0]


def _call_from_json(body: JsonObject) -> ToolCall:
    unknown = sorted(body.keys() - {"server", "tool", "arguments", "notebook", "isolation"})
    if unknown:
        raise InvalidRulesError(f"unknown field `{unknown[0]:.80}` of a call")
    server, tool, arguments = body.get("server"), body.get("tool"), body.get("arguments", {})
    notebook, isolation = body.get("notebook"), body.get("isolation", Isolation.NONE.value)
    if not isinstance(server, str) or not isinstance(tool, str) or not isinstance(notebook, str | None):
        raise InvalidRulesError("`server`, `tool` and `notebook` must be strings")
    if not isinstance(arguments, dict):
        raise InvalidRulesError("`arguments` must be a JSON object")
    if isolation not in [level.value for level in Isolation]:
        raise InvalidRulesError(f"`isolation` must be one of {', '.join(level.value for level in Isolation)}")
    check_arguments(arguments)
    origin = Origin(notebook_path=notebook, isolation=Isolation(isolation))
    return ToolCall(server=server, tool=tool, arguments=arguments, origin=origin)


default_handlers = [
    (r"/jupyter-agentbox/policy/?", PolicyHandler),
    (r"/jupyter-agentbox/policy/evaluate/?", EvaluateHandler),
    (r"/jupyter-agentbox/policy/dry-run/?", DryRunHandler),
]
