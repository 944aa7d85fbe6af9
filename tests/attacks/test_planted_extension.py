from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave a module in the work directory that the next kernel imports before its sockets are closed")


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    code = (
        "import pathlib, socket\n"
        "one = socket.socket(socket.AF_UNIX)\n"
        f"one.connect({facts['pathname']!r})\n"
        f"pathlib.Path({facts['heard']!r}).write_bytes(one.recv(100))\n"
    )
    for name in ("storemagic", "ipython_config", "ipython_kernel_config", "sitecustomize", "usercustomize"):
        pathlib.Path(facts["work"], f"{name}.py").write_text(code)
    return "planted"


def look(facts: dict[str, Any]) -> Any:
    import pathlib

    return pathlib.Path(facts["heard"]).read_text()


def test_a_new_kernel_imports_nothing_of_the_work_directory_too_early(stage: Stage) -> None:
    work = f"project/planted-{stage.level.value}"
    place = stage.world.root / "home" / work
    place.mkdir()
    assert stage.run(attack, work=str(place), heard=str(place / "heard")) == "planted", stage.said

    with stage.alone(work) as later:
        stage.judge(ATTACK, later.run(look, heard=str(place / "heard")) == "hello")
