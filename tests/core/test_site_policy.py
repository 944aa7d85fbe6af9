"""What a site lets its users do: features that are off, and servers that they may have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, WhenDown
from jupyter_agentbox.core.redaction import SECRET_NAMES
from jupyter_agentbox.core.site_policy import Feature, Lock, ServerPattern, SiteAudit, SitePolicy
from jupyter_agentbox.exceptions import LockedError

UVX = ServerPattern(command=("uvx", "mcp-server-*"))
SHELL = ServerPattern(command=("bash", "..."))
DATA = ServerPattern(command=("/opt/data", "/data/*", "..."))
CENTRAL = ServerPattern(url="https://*.example.org/mcp/*")


def test_what_nobody_says_the_user_chooses() -> None:
    policy = SitePolicy()
    assert {policy.lock(feature) for feature in Feature} == {Lock.USER_CHOICE}
    for feature in Feature:
        policy.check(feature)
    assert policy.why_no_command(("anything",), ["LD_PRELOAD"]) == policy.why_no_url("http://anywhere") == ""


@pytest.mark.parametrize("feature", list(Feature))
def test_what_is_off_is_refused_with_the_file_that_says_so(feature: Feature) -> None:
    policy = SitePolicy(features={feature: Lock.FORCE_OFF}, files=("/etc/jupyter/agentbox_rules.json",))
    with pytest.raises(LockedError, match=r"set by your administrator .*/etc/jupyter"):
        policy.check(feature)
    said = policy.to_json()
    assert said[feature.value] == {
        "lock": "force-off",
        "message": str(said[feature.value]["message"]),  # type: ignore[index,call-overload]  # an object
        "layer": "site",
        "files": ["/etc/jupyter/agentbox_rules.json"],
    }
    others = [name for name, one in said.items() if isinstance(one, dict) and one["message"] is None]
    assert len(others) == len(Feature) - 1


def test_of_a_file_that_is_not_understood_all_is_off() -> None:
    policy = SitePolicy.closed("rules.json")
    assert all(policy.is_off(feature) for feature in Feature)
    assert "set by your administrator" in policy.why_no_command(("uvx", "x"), [])
    assert "set by your administrator" in policy.why_no_url("https://a.example.org/")


@pytest.mark.parametrize(
    ("pattern", "command", "is_meant"),
    [
        (UVX, ("uvx", "mcp-server-git"), True),
        (UVX, ("uvx", "mcp-server-git", "--repository", "."), False),
        (UVX, ("uvx",), False),
        (UVX, ("/home/eve/uvx", "mcp-server-git"), False),
        (SHELL, ("bash",), True),
        (SHELL, ("bash", "-c", "true"), True),
        (SHELL, ("sh", "-c", "true"), False),
        (DATA, ("/opt/data", "/data/a", "-v"), True),
        (DATA, ("/opt/data", "/data/../etc", "-v"), False),
        (CENTRAL, ("https://a.example.org/mcp/",), False),
    ],
)
def test_a_server_is_known_by_what_it_starts(pattern: ServerPattern, command: tuple[str, ...], is_meant: bool) -> None:
    policy = SitePolicy(allowed=(pattern,), files=("rules.json",))
    why = policy.why_no_command(command, [])
    assert (why == "") is is_meant
    assert is_meant or why == "your administrator does not allow what it starts (rules.json)"


@pytest.mark.parametrize(
    ("url", "is_meant"),
    [
        ("https://a.example.org/mcp/shop", True),
        ("https://a.example.org:443/mcp/shop?key=1", True),
        ("https://a.example.org/other", False),
        ("https://a.example.org/mcp/../other", False),
        ("https://a.example.org:8443/mcp/shop", False),
        ("https://a.example.org:port/mcp/shop", False),
        ("http://a.example.org/mcp/shop", False),
        ("https://a.example.org./mcp/shop", True),
        ("https://evil.com/a.example.org/mcp/shop", False),
        ("https://a.example.org@evil.com/mcp/shop", False),
        ("https://eve@a.example.org/mcp/shop", False),
        ("https://a.example.org:443@evil.com/mcp/shop", False),
        ("https://evil.com\\@a.example.org/mcp/shop", False),
        ("HTTPS://A.EXAMPLE.ORG/mcp/shop", True),
        ("https://A.EXAMPLE.ORG.EVIL.COM/mcp/shop", False),
        ("https://example.org.evil.com/mcp/shop", False),
    ],
)
def test_a_server_is_known_by_its_address(url: str, is_meant: bool) -> None:
    policy = SitePolicy(allowed=(UVX, CENTRAL), files=("rules.json",))
    assert (policy.why_no_url(url) == "") is is_meant


def test_a_pattern_without_a_path_is_for_all_of_a_host() -> None:
    policy = SitePolicy(allowed=(ServerPattern(url="https://a.example.org"),))
    assert policy.why_no_url("https://a.example.org/any/path") == ""


def test_what_is_denied_is_denied_also_if_it_is_allowed() -> None:
    policy = SitePolicy(
        allowed=(SHELL, CENTRAL),
        denied=(ServerPattern(command=("bash", "-c", "...")), ServerPattern(url="https://b.example.org/*")),
    )
    assert policy.why_no_command(("bash", "script"), []) == ""
    assert policy.why_no_command(("bash", "-c", "true"), []) != ""
    assert policy.why_no_url("https://a.example.org/mcp/x") == ""
    # What is denied is denied by any way to that host.
    assert policy.why_no_url("http://eve@b.example.org:8080/mcp/x") != ""


@pytest.mark.parametrize(
    ("part", "is_meant"),
    [
        ("@corp/db", True),
        ("@corp/db@1.2.3", True),
        ("@corp/db@latest", True),
        ("@corp/db@npm:evil", False),
        ("@corp/db@https://evil.example/x.tgz", False),
        ("@corp/db@evil/repository", False),
        ("@corp/db @ git+https://evil.example/x", False),
        ("@corp/db@./mine", False),
    ],
)
def test_a_wildcard_stands_for_no_other_source_of_a_package(part: str, is_meant: bool) -> None:
    policy = SitePolicy(allowed=(ServerPattern(command=("npx", "-y", "@corp/*")),))
    assert (policy.why_no_command(("npx", "-y", part), []) == "") is is_meant
    policy = SitePolicy(allowed=(ServerPattern(command=("npx", "--package=@corp/*", "db")),))
    assert (policy.why_no_command(("npx", f"--package={part}", "db"), []) == "") is is_meant


@pytest.mark.parametrize(
    "pattern",
    [
        *("--dsn=*", "--dsn=postgres://*", "--dir=/*", "-d*"),
        *("*", "/opt/*", "postgres://u@host/db"),
    ],
)
def test_what_is_no_name_of_a_package_may_have_an_address_in_it(pattern: str) -> None:
    policy = SitePolicy(allowed=(ServerPattern(command=("/opt/db", pattern)),))
    given = pattern.replace("*", "postgres://u@host/db")
    assert policy.why_no_command(("/opt/db", given), []) == ""


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example./x",
        "https://EVIL.example../x",
        "https://evil%2eexample/x",
        "https://evil\u3002example/x",
        "https://\uff45vil.example/x",
        "http://167772165/x",
        "http://0xa000005/x",
        "http://10.5/x",
        "http://012.0.0.5/x",
        "http://[::ffff:10.0.0.5]/x",
        "https://b.example/%70rivate/x",
        "https://b.example//private/x",
        "https://b.example/a/../private/x",
        "https://c.example/mcp/",
        "https://c.example/%6dcp/",
        "https://c.example/x/../mcp/.",
        "http://0x0000000000a000005/x",
    ],
)
def test_what_is_denied_is_denied_however_its_address_is_written(url: str) -> None:
    denied = ("https://evil.example/*", "http://10.0.0.5/*", "https://b.example/private/*", "https://c.example/mcp/")
    policy = SitePolicy(denied=tuple(ServerPattern(url=one) for one in denied))
    assert policy.why_no_url(url) != ""
    assert policy.why_no_url("https://b.example/public/x") == policy.why_no_url("http://10.0.0.6/x") == ""


@pytest.mark.parametrize("host", ["evil.com\\.a.example.org", "evil.com;.a.example.org", "evil.com%2f.a.example.org"])
def test_a_host_that_could_be_read_in_two_ways_is_not_allowed(host: str) -> None:
    policy = SitePolicy(allowed=(ServerPattern(url="https://*.example.org/*"),))
    assert policy.why_no_url(f"https://{host}/x") != ""


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "LD_PRELOAD", "PYTHONPATH", "path", "NODE_OPTIONS", "npm_config_registry", "UV_INDEX_URL", "HOME"),
        *("PIP_INDEX_URL", "_JAVA_OPTIONS", "GIT_SSH_COMMAND", "https_proxy", "SSL_CERT_FILE", "BASH_FUNC_git%%"),
    ],
)
def test_a_variable_that_steers_a_command_is_not_allowed_with_it(name: str) -> None:
    command = ("uvx", "mcp-server-git")
    assert f"`{name}`" in SitePolicy(allowed=(UVX,)).why_no_command(command, ["TOKEN", name])
    assert SitePolicy(allowed=(UVX,)).why_no_command(command, ["TOKEN"]) == ""


def test_a_trust_key_is_for_exactly_one_server() -> None:
    only = SitePolicy(allowed=(ServerPattern(trust_key="a" * 64),))
    assert only.why_no_command(("uvx", "x"), [], trust_key="a" * 64) == ""
    assert only.why_no_url("https://a.example.org/", trust_key="a" * 64) == ""
    assert only.why_no_command(("uvx", "x"), [], trust_key="b" * 64).endswith(f"its trust key is {'b' * 64}")
    assert only.why_no_url("https://a.example.org/", trust_key="b" * 64).endswith(f"its trust key is {'b' * 64}")
    assert only.why_no_command(("uvx", "x"), []) != ""
    # The key does not say what the variables are.
    assert "`PATH`" in only.why_no_command(("uvx", "x"), ["PATH"], trust_key="a" * 64)


def test_a_denied_trust_key_is_denied_also_if_the_command_or_the_address_is_allowed() -> None:
    policy = SitePolicy(allowed=(UVX, CENTRAL), denied=(ServerPattern(trust_key="a" * 64),))
    command, url = ("uvx", "mcp-server-git"), "https://a.example.org/mcp/x"
    assert policy.why_no_command(command, [], trust_key="b" * 64) == policy.why_no_url(url, trust_key="b" * 64) == ""
    assert policy.why_no_command(command, [], trust_key="a" * 64) != ""
    assert policy.why_no_url(url, trust_key="a" * 64) != ""


def test_of_two_files_the_stricter_holds() -> None:
    one = SitePolicy(
        features={Feature.GRANTS: Lock.FORCE_OFF, Feature.EDIT: Lock.USER_CHOICE},
        allowed=(UVX, SHELL),
        denied=(CENTRAL,),
        files=("a",),
    )
    other = SitePolicy(
        features={Feature.GRANTS: Lock.FORCE_ON, Feature.EDIT: Lock.FORCE_ON}, allowed=(UVX,), files=("b",)
    )
    both = SitePolicy(
        features={Feature.GRANTS: Lock.FORCE_OFF, Feature.EDIT: Lock.FORCE_ON},
        allowed=(UVX,),
        denied=(CENTRAL,),
        files=("a", "b"),
    )
    assert one.with_stricter(other) == both
    assert SitePolicy().with_stricter(one) == one == one.with_stricter(SitePolicy())


def test_of_two_files_only_the_one_that_turns_a_feature_off_is_named() -> None:
    one = SitePolicy(features={Feature.EDIT: Lock.FORCE_OFF}, files=("a",))
    other = SitePolicy(features={Feature.GRANTS: Lock.FORCE_OFF, Feature.EDIT: Lock.FORCE_ON}, files=("b",))
    both = SitePolicy(files=("c",)).with_stricter(one).with_stricter(other)
    assert (both.off_by(Feature.EDIT), both.off_by(Feature.GRANTS), both.off_by(Feature.AGENTS)) == (("a",), ("b",), ())
    with pytest.raises(LockedError, match=r"set by your administrator \(a\)"):
        both.check(Feature.EDIT)


def test_a_pattern_is_written_as_it_stands_in_a_file() -> None:
    assert (UVX.to_json(), CENTRAL.to_json(), ServerPattern(trust_key="a" * 64).to_json()) == (
        {"command": ["uvx", "mcp-server-*"]},
        {"url": "https://*.example.org/mcp/*"},
        {"trust_key": "a" * 64},
    )


def test_the_servers_of_a_site_are_written_as_they_stand_in_a_file() -> None:
    assert SitePolicy(denied=(CENTRAL,)).servers_to_json() == {"allow": None, "deny": [CENTRAL.to_json()]}
    assert SitePolicy(allowed=(UVX,)).servers_to_json() == {"allow": [UVX.to_json()], "deny": []}


def test_records_go_to_the_places_of_all_files_and_of_the_rest_the_first_says() -> None:
    first = SiteAudit(sinks=("stdout:", "syslog:///dev/log"), when_down="deny")
    second = SiteAudit(
        sinks=("syslog:///dev/log", "file:///x"), when_down="spool", arguments="digest", secret_names=("iban",)
    )
    both = SiteAudit(
        sinks=("stdout:", "syslog:///dev/log", "file:///x"),
        when_down="deny",
        arguments="digest",
        token_file="",
        secret_names=("iban",),
    )
    assert SitePolicy(audit=first).with_stricter(SitePolicy(audit=second)).audit == both
    assert SitePolicy(audit=replace(first, secret_names=())).with_stricter(SitePolicy(audit=second)).audit == replace(
        both, secret_names=()
    )
    settings = AuditSettings(
        sinks=("file:///x", "file:///y"), arguments=ArgumentsKept.FULL, token_file="t", secret_names=("iban",)
    )
    assert settings.with_site(SiteAudit()) == (settings,)
    assert AuditSettings().with_site(SiteAudit()) == ()
    assert settings.with_site(both) == (
        AuditSettings(
            sinks=("stdout:", "syslog:///dev/log", "file:///x", "file:///y"),
            when_down=WhenDown.DENY,
            arguments=ArgumentsKept.DIGEST,
            token_file="t",
            secret_names=("iban",),
        ),
    )


def test_the_places_of_the_site_get_records_without_what_the_site_calls_secret_and_the_users_keep_theirs() -> None:
    own = AuditSettings(sinks=("file:///y",), secret_names=())
    kept = {settings.sinks: settings.secret_names for settings in own.with_site(SiteAudit(sinks=("stdout:",)))}
    assert kept == {("stdout:",): SECRET_NAMES, ("file:///y",): ()}
    named = SiteAudit(sinks=("stdout:",), secret_names=("iban",))
    assert [settings.secret_names for settings in own.with_site(named)] == [("iban",), ()]
    (only,) = replace(own, sinks=()).with_site(named)
    assert (only.sinks, only.secret_names) == (("stdout:",), ("iban",))


@pytest.mark.parametrize("wanted", [ArgumentsKept.FULL, ArgumentsKept.DIGEST])
def test_what_arguments_a_user_wants_recorded_is_not_for_the_site(wanted: ArgumentsKept) -> None:
    own = AuditSettings(sinks=("file:///y",), arguments=wanted)
    kept = [settings.arguments for settings in own.with_site(SiteAudit(sinks=("stdout:",)))]
    assert kept == [ArgumentsKept.REDACTED, wanted]
    (together,) = own.with_site(SiteAudit(sinks=("stdout:",), arguments="full"))
    assert (together.sinks, together.arguments) == (("stdout:", "file:///y"), ArgumentsKept.FULL)
