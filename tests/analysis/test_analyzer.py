"""Hostile code, and what the analysis says of it: in the real worker, with the real ruff."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_agentbox import AnalysisSettings, DomainCalls, MockCodeGenerator
from jupyter_agentbox.agents.requests import CodeRequest
from jupyter_agentbox.analysis.analyzer import CodeAnalyzer
from jupyter_agentbox.analysis.findings import Analysis

TIMEOUT = 60


@pytest.fixture(scope="module")
def analyzer() -> Iterator[CodeAnalyzer]:
    analyzer = CodeAnalyzer()
    yield analyzer
    analyzer.close()


async def look_at(analyzer: CodeAnalyzer, code: str) -> Analysis:
    async with asyncio.timeout(TIMEOUT):
        return await analyzer.analyze(code)


async def codes(analyzer: CodeAnalyzer, code: str) -> set[str]:
    return {finding.code for finding in (await look_at(analyzer, code)).findings} - {"AB401"}


@pytest.mark.parametrize(
    "code",
    [
        "results = {'a': 1}",
        "import json\nimport math\nresults = {'a': math.pi}",
        "values = [1, 2]\nfor v in values:\n    print(v)\nresults = {}",
        "with open('data.csv') as file:\n    results = {'n': len(file.read())}",
        "# -*- coding: rot13 -*-\nresults = {'a': 1}",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1])\nresults = {}",
        "from IPython.display import Markdown, display\ndisplay(Markdown('# Done'))\nresults = {}",
        "import random\nassert True\nresults = {'a': random.random()}",
        "code = []\ncode.append(1)\nsh = 2\nresults = {'code': code, 'sh': sh}",
        "tools.append(1)\nresults = {}",
        "def send(tools):\n    tools.mail.send()\nresults = {}",
        "results = {'x': await_me} if (await_me := 1) else {}",
    ],
)
async def test_ordinary_code_is_allowed(analyzer: CodeAnalyzer, code: str) -> None:
    assert (await look_at(analyzer, code)).outcome.value == "allow"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("__import__('os')", "AB101"),
        ("import importlib\nimportlib.import_module('so'[::-1])", "AB101"),
        ("from importlib import import_module as load\nload('os')", "AB101"),
        ("import sys\nsys.modules['os']", "AB101"),
        ("eval('1')", "AB102"),
        ("run = exec\nrun('1')", "AB102"),
        ("import builtins\nbuiltins.eval('1')", "AB102"),
        ("__builtins__['ev' + 'al']('1')", "AB102"),
        ("get_ipython().run_cell('1')", "AB102"),
        ("getattr(1, 're' + 'al')", "AB103"),
        ("globals()['x']", "AB103"),
        ("vars()['x']", "AB103"),
        ("from os import *\nsystem('ls')", "AB103"),
        ("().__class__.__base__.__subclasses__()", "AB104"),
        ("print.__self__.eval('1')", "AB104"),
        ("'{0.__class__.__init__}'.format(1)", "AB104"),
        ("import ctypes", "AB104"),
        ("get_ipython().input_transformers_cleanup.append(print)", "AB104"),
        ("import os\nos.remove('a')", "AB201"),
        ("from pathlib import Path\nPath('a').unlink()", "AB201"),
        ("import shutil as s\ns.rmtree('a')", "AB201"),
        ("open('a', 'w').write('x')", "AB202"),
        ("open('a', mode=chosen)", "AB202"),
        ("from pathlib import Path\nPath('a').open('a+')", "AB202"),
        ("import socket", "AB203"),
        ("import urllib.request as u\nu.urlopen('http://a')", "AB203"),
        ("import os\nos.environ['KEY']", "AB204"),
        ("from os import getenv as g\ng('KEY')", "AB204"),
        ("import os\nos.system('ls')", "AB205"),
        ("import os\no = os\no.system('ls')", "AB205"),
        ("import os\ngetattr(os, 'system')('ls')", "AB205"),
        ("from subprocess import run\nrun(['ls'])", "AB205"),
        ("!ls", "AB206"),
        ("files = !ls", "AB206"),
        ("%%bash\nls", "AB206"),
        ("%sx ls", "AB206"),
        ("rm -rf", "AB206"),
        ("ls", "AB206"),
        ("%%time\nimport socket", "AB207"),
        ("%time __import__('socket')", "AB207"),
        ("%matplotlib {__import__('os').getpid()}", "AB207"),
        ("%config X.y = __import__('os')", "AB207"),
        ("%%capture\nx = 1", "AB207"),
        ("ip = get_ipython()\nip.system('ls')", "AB104"),
        ("g = get_ipython\ng().system('ls')", "AB104"),
        ("from IPython import get_ipython as g\ng().system('ls')", "AB104"),
        ("import IPython.display\nIPython.get_ipython()", "AB104"),
        ("__loader__.load_module('os')", "AB104"),
        ("from jupyter_agentbox.kernel import runtime", "AB104"),
        ("from jupyter_agentbox import Agent as A\nA('openai:x').thread_start().run('Go')", "AB104"),
        ("import pandas as pd\npd.read_csv('https://example.com/a')", "AB203"),
        ("df.to_csv('a')", "AB202"),
        ("%run other.py", "AB207"),
        ("%load_ext other", "AB207"),
        ("%%writefile a\nx", "AB207"),
        ("import threading", "AB209"),
        ("from jupyter_agentbox import tools\ntools.shop.list_orders()", "AB301"),
        ("from jupyter_agentbox import tools\ntools.shop.delete_order(id=1)", "AB302"),
        ("tools.shop.list_orders()", "AB301"),  # imported in an earlier cell
        ("shop = tools.shop\nshop.delete_order(id=1)", "AB302"),
        ("from jupyter_agentbox.tools import shop\nshop.set_price.raw(sku='a')", "AB302"),
        ("write_channel('A', 1)", "AB302"),
        ("from osprey.runtime import write_channel as w\nw('A', 1)", "AB302"),
        ("import epics\nepics.caput('A', 1)", "AB302"),
        ("machine.read_channel('A')", "AB303"),
        ("import pickle\npickle.loads(b'')", "S301"),
        ("import subprocess\nsubprocess.run('ls', shell=True)", "S602"),
        ("x = 1 # \u202e", "AB105"),
        ("x = '\u200b'", "AB105"),
        ("x = 1 # a\x1b[8m", "AB105"),
        ("x = 1 # a\rx = 2", "AB105"),
        ("# harmless\rimport socket", "AB203"),
        ("'''\n>>> ''';exec('1')", "AB102"),
        ("if True:\n  import os; os.system('ls')", "AB205"),
    ],
)
async def test_what_hides_or_reaches_out_is_found_and_asks(analyzer: CodeAnalyzer, code: str, expected: str) -> None:
    analysis = await look_at(analyzer, f"{code}\n")

    assert expected in {finding.code for finding in analysis.findings}
    assert analysis.outcome.value == ("allow" if expected in {"AB301", "AB303"} else "ask")


SWITCHES = [
    "subprocess.run('ls', shell=True)  # noqa",
    "subprocess.run('ls', shell=True)  # noqa: S602, AB205",
    "subprocess.run('ls', shell=True)  # nosec",
    "subprocess.run('ls', shell=True)  # type: ignore",
    "subprocess.run('ls', shell=True)  # ruff: noqa: S602",
    "# ruff: ignore[S602]\nsubprocess.run('ls', shell=True)",
    "# ruff: disable[S602]\nsubprocess.run('ls', shell=True)",
    "# fmt: off\nsubprocess.run('ls', shell=True)",
    "# /// script\n# [tool.ruff]\n# lint.select = []\n# ///\nsubprocess.run('ls', shell=True)",
]


@pytest.mark.parametrize("head", ["", "# ruff: noqa\n", "# flake8: noqa\n", "# -*- coding: ascii -*-\n", "\ufeff"])
@pytest.mark.parametrize("line", SWITCHES)
async def test_nothing_in_the_code_switches_it_off(analyzer: CodeAnalyzer, head: str, line: str) -> None:
    code = f"{head}import subprocess\n{line}\n"

    if head == "\ufeff":  # Python takes it for a character of the code
        assert await codes(analyzer, code) == {"AB001"}
    else:
        assert {"AB205", "S602"} <= await codes(analyzer, code)


async def test_no_file_or_variable_beside_it_switches_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ruff.toml").write_text("lint.select = []\nlint.per-file-ignores = {'*' = ['S']}\n")
    (tmp_path / "pyproject.toml").write_text("[tool.ruff.lint]\nselect = []\n")
    (tmp_path / "ruff").write_text("#!/bin/sh\necho '[]'\n")
    (tmp_path / "ruff").chmod(stat.S_IRWXU)
    (tmp_path / "ruff.py").write_text("raise SystemExit")
    (tmp_path / "IPython.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("RUFF_OUTPUT_FORMAT", "concise")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend("")
    monkeypatch.syspath_prepend(str(tmp_path))
    analyzer = CodeAnalyzer()
    try:
        assert {"S602"} <= await codes(analyzer, "import subprocess\nsubprocess.run('ls', shell=True)")
    finally:
        analyzer.close()


@pytest.mark.parametrize(
    "code",
    [
        "def (",
        "x = ",
        "\0",
        "x = '\udc80'",
        "(" * 5_000,
        "print 'a'",
        "\ufeffresults = {}",
    ],
)
async def test_what_is_no_python_is_a_syntax_error_at_its_place(analyzer: CodeAnalyzer, code: str) -> None:
    analysis = await look_at(analyzer, code)

    [finding] = analysis.findings
    assert finding == analysis.syntax_error
    assert (finding.severity.value, finding.message.startswith("SyntaxError: ")) == ("error", True)
    assert (finding.line, finding.column >= 1) == (1, True)


@pytest.mark.parametrize(
    "code",
    [
        "a" * 1_000_000,
        "x = 1\n" * 200_000,
        "-" * 90_000 + "1",
        "x = " + "+".join(["1"] * 40_000),
        "x = " + ".".join(["a"] * 40_000),
        "x = " + "not " * 20_000 + "1",
        "%time x\n" * 600,
        "x?\n" * 600,
    ],
    ids=["1 MB", "many lines", "minus", "plus", "attributes", "not", "magics", "help"],
)
async def test_what_cannot_be_looked_at_asks_and_ends_in_time(analyzer: CodeAnalyzer, code: str) -> None:
    analysis = await look_at(analyzer, code)

    assert [finding.code for finding in analysis.findings] == ["AB901"]
    assert analysis.outcome.value == "ask"


async def test_the_next_code_is_looked_at_after_one_that_took_too_long() -> None:
    analyzer = CodeAnalyzer(AnalysisSettings(seconds=0.001, most_characters=1_000_000))
    try:
        assert await codes(analyzer, "x = 1\n" * 50_000) == {"AB901"}
        analyzer.settings = AnalysisSettings()
        assert await codes(analyzer, "import socket\n") == {"AB203"}
    finally:
        analyzer.close()


async def test_without_ruff_it_says_what_to_install_and_asks(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", Path("/bin/false")):
        analyzer = CodeAnalyzer(ruff=str(path))
        try:
            assert (await look_at(analyzer, "results = {}")).outcome.value == "ask"
        finally:
            analyzer.close()


async def test_missing_ruff_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_agentbox.analysis.analyzer.find_ruff", lambda: None)
    analyzer = CodeAnalyzer()
    try:
        analysis = await look_at(analyzer, "results = {}")
    finally:
        analyzer.close()

    [finding] = analysis.findings
    assert (finding.code, analysis.outcome.value) == ("AB902", "ask")
    assert "jupyter-agentbox[agent]" in finding.message


async def test_findings_stand_at_the_lines_of_the_code(analyzer: CodeAnalyzer) -> None:
    code = (
        "!ls \\\n  -la\nx = 1  # ruff: noqa\n\nd = 'ø'; __import__('os')\n"
        "import subprocess; subprocess.run('a', shell=True)\n"
    )
    found = [(each.code, each.line, each.column) for each in (await look_at(analyzer, code)).findings]

    assert ("AB206", 1, 1) in found
    assert ("AB101", 5, 10) in found
    assert ("S602", 6, 20) in found


async def test_domains_are_named_by_the_settings() -> None:
    machine = DomainCalls(name="beam line", reads=("look",), writes=("hall.move",))
    analyzer = CodeAnalyzer(AnalysisSettings(domains=(machine,), outcomes={"AB302": "block"}))
    try:
        analysis = await look_at(analyzer, "import hall\nhall.look()\nhall.move(1)\nmove(2)\nwrite_channel('A', 1)\n")
    finally:
        analyzer.close()

    found = [str(finding) for finding in analysis.findings if finding.code != "AB401"]
    assert found == ["2:1 AB303 `look` reads from the beam line", "3:1 AB302 `move` writes to the beam line"]
    assert analysis.outcome.value == "block"


@pytest.mark.parametrize("is_expected", [True, False])
async def test_code_without_results_is_worth_a_note_where_results_are_expected(is_expected: bool) -> None:
    analyzer = CodeAnalyzer(AnalysisSettings(expects_results=is_expected))
    try:
        analysis = await look_at(analyzer, "a = 1")
    finally:
        analyzer.close()

    assert [finding.code for finding in analysis.findings] == (["AB401"] if is_expected else [])


@pytest.mark.parametrize(
    ("behavior", "outcome"),
    [
        *(("success", "allow"), ("syntax_error", "ask"), ("runtime_error", "allow"), ("missing_results", "allow")),
        *(("channel_read", "allow"), ("channel_write", "ask"), ("security_risk", "ask"), ("error_aware", "allow")),
    ],
)
async def test_each_behavior_of_the_mock_generator_has_its_outcome(
    analyzer: CodeAnalyzer, behavior: str, outcome: str
) -> None:
    request = CodeRequest(user_query="", task_objective="")
    code = await MockCodeGenerator(behavior).generate_code(request, [])

    assert (await look_at(analyzer, code)).outcome.value == outcome
