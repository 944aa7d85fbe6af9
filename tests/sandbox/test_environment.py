from __future__ import annotations

from pathlib import Path

from jupyter_agentbox.sandbox.server.environment import kernel_environment, without_secrets


def test_only_what_is_allowed_or_named_passes() -> None:
    server = {"LANG": "C", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "x", "JUPYTERHUB_API_TOKEN": "x", "DATA": "sea"}

    found = kernel_environment(
        server,
        named={"FROM_SPEC": "1"},
        extra=["DAT*"],
        home=Path("/home/ada"),
        temporary=Path("/tmp"),
        prefixes=[Path("/opt/python")],
    )

    kept = ("LANG", "LC_ALL", "DATA", "FROM_SPEC", "HOME")
    assert {name: found.get(name) for name in kept} == {
        "LANG": "C", "LC_ALL": "C", "DATA": "sea", "FROM_SPEC": "1", "HOME": "/home/ada"
    }  # fmt: skip
    assert not found.keys() & {"AWS_SECRET_ACCESS_KEY", "JUPYTERHUB_API_TOKEN"}
    assert found["PATH"].startswith("/opt/python/bin:")


def test_a_kernelspec_cannot_make_the_kernel_watch_a_process_that_it_does_not_see() -> None:
    found = kernel_environment(
        {}, named={"JPY_PARENT_PID": "77"}, extra=[], home=Path("/h"), temporary=Path("/t"), prefixes=[]
    )

    assert found["JPY_PARENT_PID"] == "1"


def test_what_looks_like_a_secret_passes_by_its_exact_name_only_if_who_may_says_so() -> None:
    server = dict.fromkeys(("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN", "HF_TOKEN", "DB_PASSWORD", "DATA"), "x")

    def passing(*extra: str, trusted: tuple[str, ...] = ()) -> set[str]:
        places = {"home": Path("/h"), "temporary": Path("/t"), "prefixes": [Path("/p")]}
        found = kernel_environment(server, named={}, extra=extra, trusted=trusted, **places)  # type: ignore[arg-type]  # by name
        return found.keys() & server.keys()

    assert passing("*") == {"DATA"}
    assert passing("HF_TOKEN", "J*") == set()
    assert passing("*", trusted=("*",)) == {"DATA"}
    assert passing("HF_TOKEN", "*", trusted=("HF_TOKEN",)) == {"HF_TOKEN", "DATA"}


def test_a_kernelspecs_own_variable_does_not_carry_a_secret_of_the_server() -> None:
    env = {"PATH": "/x:${PATH}", "A": "${JUPYTERHUB_API_TOKEN}", "B": "x$HF_TOKEN", "C": "plain"}

    assert without_secrets(env) == {"PATH": "/x:${PATH}", "C": "plain"}
