"""Files of rules on disk: changes, and whatever may lie there."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Policy
from jupyter_agentbox.core.rule_text import MAX_BYTES
from jupyter_agentbox.exceptions import InvalidRulesError, PolicyConflictError, StorageError
from jupyter_agentbox.storage.rule_files import RuleFiles, SitePlace

CALL = ToolCall(server="shop", tool="list", arguments={})
ALLOW = {"effect": "allow", "server": "shop", "tool": "list"}
ASK = {**ALLOW, "effect": "ask"}
DENY = {**ALLOW, "effect": "deny"}


def text(*rules: Any) -> str:
    return json.dumps({"rules": rules})


def effect(files: RuleFiles) -> Effect:
    return Policy(files.load().rules).evaluate(CALL).effect


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return tmp_path / "user" / "agentbox_rules.json"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site" / "agentbox_rules.json"
    path.parent.mkdir()
    return path


@pytest.fixture
def files(user: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> RuleFiles:
    monkeypatch.setattr("jupyter_agentbox.storage.rule_files.why_unprotected", lambda _path: "")  # see test_protection
    user.parent.mkdir()
    return RuleFiles(user=user, sites=[SitePlace(path=site)])


def test_without_files_there_are_no_rules_and_no_problems(files: RuleFiles, user: Path) -> None:
    book = files.load()
    assert (book.rules, book.problems) == ((), ())
    assert book.user is not None
    assert (book.user.path, book.user.entries, book.user.revision) == (str(user), (), "")
    assert files.load() is book


def test_a_change_counts_at_the_next_call(files: RuleFiles, user: Path) -> None:
    effects = []
    for rules in ([ALLOW], [DENY], [ASK], [], [ALLOW]):
        user.write_text(text(*rules))
        effects.append(effect(files))
    user.unlink()
    assert [*effects, effect(files)] == [
        *(Effect.ALLOW, Effect.DENY, Effect.ASK, Effect.ASK, Effect.ALLOW),
        Effect.ASK,
    ]


async def test_files_are_looked_at_once_in_a_turn_of_the_loop(files: RuleFiles, user: Path) -> None:
    user.write_text(text(ALLOW))
    effects = [effect(files)]
    user.write_text(text(DENY))
    effects.append(effect(files))
    await asyncio.sleep(0)
    effects.append(effect(files))
    files.write([ASK])
    assert [*effects, effect(files)] == [Effect.ALLOW, Effect.ALLOW, Effect.DENY, Effect.ASK]


def test_a_change_of_the_same_size_at_the_same_time_is_seen(files: RuleFiles, user: Path) -> None:
    user.write_text(text({**ALLOW, "tool": "list"}))
    before = user.stat()
    assert effect(files) is Effect.ALLOW
    user.write_text(text({**ALLOW, "tool": "lost"}))
    os.utime(user, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert effect(files) is Effect.ASK


def test_a_file_that_is_replaced_counts(files: RuleFiles, user: Path) -> None:
    user.write_text(text(ALLOW))
    assert effect(files) is Effect.ALLOW
    draft = user.with_suffix(".new")
    draft.write_text(text(DENY))
    draft.replace(user)
    assert effect(files) is Effect.DENY


def test_what_did_not_change_is_not_read_again(files: RuleFiles, user: Path) -> None:
    user.write_text(text(ALLOW))
    os.utime(user, ns=(0, 0))
    book = files.load()
    assert all(files.load() is book for _ in range(3))


def test_the_sites_rules_come_first_and_are_never_loosened(files: RuleFiles, user: Path, site: Path) -> None:
    site.write_text(text(ASK))
    user.write_text(text(ALLOW))
    assert effect(files) is Effect.ASK
    assert [(rule.layer.value, rule.file, rule.line) for rule in files.load().rules] == [
        ("site", str(site), 1),
        ("user", str(user), 1),
    ]


def test_half_a_file_is_no_file(files: RuleFiles, user: Path) -> None:
    whole = text(ALLOW, DENY)
    for end in range(len(whole)):
        user.write_text(whole[:end])
        assert effect(files) is Effect.ASK
        assert len(files.load().problems) == 1
    user.write_text(whole)
    assert (effect(files), files.load().problems) == (Effect.DENY, ())


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "none.json")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


HOSTILE: dict[str, Any] = {
    "empty": b"",
    "half": b'{"rules": [',
    "list": b"[]",
    "deep": b"[" * 500_000,
    "large": b'{"rules": []}' + b" " * MAX_BYTES,
    "duplicate": b'{"rules": [], "rules": []}',
    "nan": b'{"rules": [{"effect": "allow", "server": "*", "tool": "*", "timeout": NaN}]}',
    "huge": b'{"rules": [{"effect": "allow", "server": "*", "tool": "*", "timeout": 1' + b"0" * 5000 + b"}]}",
    "latin": '{"rules": [{"effect": "allow", "server": "é", "tool": "*"}]}'.encode("latin-1"),
    "utf-16": text(ALLOW).encode("utf-16"),
    "nul": b"\0" * 100,
    "unknown": text({**ALLOW, "efect": 1}).encode(),
    **{each.__name__: each for each in (fifo, directory, link_to_nothing, link_to_itself, link_to_a_device)},
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(("whose", "expected"), [("user", Effect.ASK), ("site", Effect.DENY)])
def test_a_broken_file_makes_everything_ask_or_of_the_site_denies_it(
    files: RuleFiles, user: Path, site: Path, whose: str, expected: Effect, content: Any
) -> None:
    broken, other = (user, site) if whose == "user" else (site, user)
    other.write_text(text(ALLOW))
    if callable(content):
        content(broken)
    else:
        broken.write_bytes(content)

    assert effect(files) is expected
    (problem,) = files.load().problems
    assert (problem.path, bool(problem.message)) == (str(broken), True)
    rule = Policy(files.load().rules).evaluate(CALL).rule
    assert rule is not None
    assert (rule.file, rule.layer.value) == (str(broken), whose)


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbf" + text(ALLOW).encode(), json.dumps({"rules": [ALLOW]}, indent=1).replace("\n", "\r\n").encode()],
)
def test_a_byte_order_mark_and_other_line_ends_are_taken(files: RuleFiles, user: Path, content: bytes) -> None:
    user.write_bytes(content)
    assert (effect(files), files.load().problems) == (Effect.ALLOW, ())


@pytest.mark.parametrize(("mode", "expected"), [(0o644, Effect.ALLOW), (0o664, Effect.ALLOW), (0o646, Effect.ASK)])
def test_a_users_file_that_everybody_can_write_does_not_count(
    files: RuleFiles, user: Path, mode: int, expected: Effect
) -> None:
    user.write_text(text(ALLOW))
    user.chmod(0o600)
    assert effect(files) is Effect.ALLOW
    user.chmod(mode)
    assert effect(files) is expected
    assert bool(files.load().problems) is (expected is Effect.ASK)


def test_a_file_of_the_site_that_is_not_protected_denies_everything(user: Path, tmp_path: Path) -> None:
    place = tmp_path / "agentbox_rules.json"
    place.write_text(text(ALLOW))
    place.chmod(0o666)
    files = RuleFiles(user=user, sites=[SitePlace(path=place)])
    assert effect(files) is Effect.DENY


def test_a_file_of_an_environment_that_users_can_change_is_none_of_the_sites(
    user: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write_text(text(ALLOW))
    unprotected = {site.parent, site}
    monkeypatch.setattr(
        "jupyter_agentbox.storage.rule_files.why_unprotected", lambda path: "open" if path in unprotected else ""
    )
    book = RuleFiles(user=user, sites=[SitePlace(path=site, is_environments=True)]).load()
    assert book.rules == ()
    assert [problem.message for problem in book.problems] == ["open: its rules do not count"]

    unprotected.remove(site.parent)
    assert effect(RuleFiles(user=user, sites=[SitePlace(path=site, is_environments=True)])) is Effect.DENY


def test_who_may_put_a_file_there_counts_from_when_there_is_one(
    user: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unprotected: set[Path] = set()
    monkeypatch.setattr(
        "jupyter_agentbox.storage.rule_files.why_unprotected", lambda path: "open" if path in unprotected else ""
    )
    files = RuleFiles(user=user, sites=[SitePlace(path=site, is_environments=True)])
    assert files.load().rules == ()

    site.parent.chmod(0o777)  # while there is no file
    unprotected.add(site.parent)
    site.write_text(text(ALLOW))
    assert [problem.message for problem in files.load().problems] == ["open: its rules do not count"]

    site.parent.chmod(0o755)  # while there is one
    unprotected.remove(site.parent)
    assert effect(files) is Effect.ALLOW


def test_a_link_counts_as_what_it_leads_to_whenever_that_comes_changes_or_goes(
    files: RuleFiles, user: Path, tmp_path: Path
) -> None:
    target = tmp_path / "elsewhere.json"
    user.symlink_to(target)
    assert (len(files.load().problems), effect(files)) == (1, Effect.ASK)
    target.write_text(text(ALLOW))
    assert effect(files) is Effect.ALLOW
    target.write_text(text(DENY))
    assert effect(files) is Effect.DENY
    user.unlink()
    assert (files.load().rules, files.load().problems) == ((), ())


def test_what_is_written_is_read_and_only_the_user_can_read_it(files: RuleFiles, user: Path) -> None:
    files.write([ALLOW])
    assert (effect(files), stat.S_IMODE(user.stat().st_mode)) == (Effect.ALLOW, 0o600)
    assert [path.name for path in user.parent.iterdir()] == [user.name]
    book = files.load()
    assert book.user is not None
    assert book.user.entries == (ALLOW,)


def test_a_directory_that_is_missing_is_made(user: Path) -> None:
    files = RuleFiles(user=user)
    assert files.is_writable
    files.write([DENY])
    assert (effect(files), stat.S_IMODE(user.parent.stat().st_mode)) == (Effect.DENY, 0o700)


def test_a_revision_that_is_no_longer_there_is_not_replaced(files: RuleFiles, user: Path) -> None:
    files.write([ALLOW], revision="")
    first = files.load().user
    assert first is not None
    files.write([ASK], revision=first.revision)
    second = files.load().user
    assert second is not None

    for stale in ("", first.revision):
        with pytest.raises(PolicyConflictError) as caught:
            files.write([DENY], revision=stale)
        assert caught.value.revision == second.revision
    user.write_text(text(DENY))  # by an editor
    with pytest.raises(PolicyConflictError):
        files.write([ALLOW], revision=second.revision)
    assert effect(files) is Effect.DENY


def test_a_schema_stays(files: RuleFiles, user: Path) -> None:
    user.write_text(json.dumps({"$schema": "x.json", "rules": []}))
    files.write([ALLOW])
    assert json.loads(user.read_text()) == {"$schema": "x.json", "rules": [ALLOW]}


@pytest.mark.parametrize(
    "entry", [{"effect": "allow"}, 3, {**ALLOW, "reason": "x" * MAX_BYTES}, {**ALLOW, "server": "\ud800"}, float("nan")]
)
def test_what_is_no_rule_is_not_written(files: RuleFiles, user: Path, entry: Any) -> None:
    files.write([ALLOW])
    before = user.read_bytes()
    with pytest.raises(InvalidRulesError):
        files.write([entry])
    assert user.read_bytes() == before


def test_a_link_stays_a_link(files: RuleFiles, user: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    user.symlink_to(tmp_path / "dotfiles" / "rules.json")
    files.write([ALLOW])
    assert user.is_symlink()
    assert effect(files) is Effect.ALLOW


@pytest.mark.parametrize("broken", [fifo, link_to_a_device, link_to_itself])
def test_what_is_no_file_is_replaced_and_nothing_that_a_link_leads_to(
    files: RuleFiles, user: Path, broken: Any
) -> None:
    broken(user)
    files.write([ALLOW])
    assert effect(files) is Effect.ALLOW
    assert Path("/dev/zero").is_char_device()


def test_where_nothing_can_be_written_an_error_says_so(files: RuleFiles, user: Path) -> None:
    user.mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        files.write([ALLOW])
    with pytest.raises(StorageError, match="no file"):
        RuleFiles(user=None).write([ALLOW])
    assert not RuleFiles(user=None).is_writable
