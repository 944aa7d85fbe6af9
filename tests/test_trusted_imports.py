from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from jupyter_agentbox.trusted_imports import TrustedImports, in_kernel

PLANTED = "planted_module"
#: What is installed wherever the tests run, and not loaded by them.
INSTALLED = "this"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A work directory with modules that somebody left there, and a process that imports from it as a kernel does."""
    directory = tmp_path / "work"
    (directory / "below").mkdir(parents=True)
    for place in (directory, directory / "below"):
        (place / f"{PLANTED}.py").write_text("")
    monkeypatch.chdir(directory)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield directory
    for name in (PLANTED, INSTALLED):
        sys.modules.pop(name, None)


def refused() -> bool:
    importlib.invalidate_caches()
    with TrustedImports():
        try:
            importlib.import_module(PLANTED)
        except ModuleNotFoundError:
            return True
    return False


def test_module_of_the_work_directory_is_not_found_and_is_found_again_afterwards() -> None:
    before = list(sys.path)

    assert refused()
    assert sys.path == before
    assert importlib.import_module(PLANTED)


@pytest.mark.parametrize("entry", [".", "{work}", "{work}/below", "below", "{work}/../work", "{link}"])
def test_no_spelling_of_the_path_lets_it_in(entry: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = work.parent / "link"
    link.symlink_to(work)
    monkeypatch.setattr(sys, "path", [entry.format(work=work, link=link), *sys.path[1:]])
    assert importlib.util.find_spec(PLANTED)  # it would be found

    assert refused()


def test_python_path_that_is_relative_to_the_start_is_not_taken(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "..")
    (work.parent / "beside").mkdir()
    (work.parent / "beside" / f"{PLANTED}.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(work.parent / "beside"), *sys.path[1:]])

    assert refused()


def test_what_is_elsewhere_on_the_path_is_found(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = work.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{PLANTED}.py").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path, str(elsewhere)])

    with TrustedImports():
        found = importlib.import_module(PLANTED)

    assert found.__file__ == str(elsewhere / f"{PLANTED}.py")


def test_environment_below_the_work_directory_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")

    with TrustedImports():
        assert importlib.import_module(INSTALLED)


def test_editable_installation_is_found_from_its_own_checkout(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = work / "env" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "_editable.pth").write_text(f"import os\n# a comment\n{work}\n")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(packages)])
    monkeypatch.setattr(sys, "path", [*sys.path, str(work)])

    with TrustedImports():
        assert importlib.import_module(PLANTED).__file__ == str(work / f"{PLANTED}.py")


def test_finder_of_another_package_that_looks_at_the_path_lets_nothing_in(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        @staticmethod
        def find_spec(name: str, _path: object, _target: ModuleType | None = None) -> object:
            return importlib.machinery.PathFinder.find_spec(name, sys.path)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])

    assert refused()


def test_other_threads_import_as_ever_meanwhile() -> None:
    found: list[ModuleType] = []
    with TrustedImports():
        thread = threading.Thread(target=lambda: found.append(importlib.import_module(PLANTED)))
        thread.start()
        thread.join()

    assert [module.__name__ for module in found] == [PLANTED]


def test_directory_that_was_removed_is_no_reason_to_fail(work: Path) -> None:
    gone = work.parent / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()

    with TrustedImports():
        assert importlib.import_module(INSTALLED)


def test_package_that_is_loaded_from_elsewhere_is_refused(work: Path) -> None:
    loaded = importlib.import_module(PLANTED)

    with TrustedImports() as trusted, pytest.raises(ImportError, match=PLANTED):
        trusted.check_origin(loaded.__name__)


@pytest.mark.parametrize("name", ["jupyter_agentbox", INSTALLED])
def test_package_that_is_where_it_belongs_is_accepted(name: str) -> None:
    with TrustedImports() as trusted:
        trusted.check_origin(name)


def test_code_for_a_kernel_leaves_no_name_and_takes_no_planted_package(work: Path) -> None:
    (work / "jupyter_agentbox.py").write_text("raise SystemExit('it ran')")
    names = {"get_ipython": list}

    exec(in_kernel(f"get_ipython().append(1)\nimport {INSTALLED}"), names)

    assert names.keys() == {"get_ipython", "__builtins__"}
    assert INSTALLED in sys.modules
