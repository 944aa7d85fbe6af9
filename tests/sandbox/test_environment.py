from __future__ import annotations

from pathlib import Path

from jupyter_agentbox.sandbox.environment import kernel_environment


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
