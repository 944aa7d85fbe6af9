"""The environment variables of a sandboxed kernel: rebuilt from an allow-list, never inherited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

#: What may pass. Everything else of the server's environment stays outside, tokens of a Hub first of all.
ALLOWED = (
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "USER", "LOGNAME", "SHELL"),
    *("CLICOLOR", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "PAGER", "GIT_PAGER", "MPLBACKEND"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
    *("PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE"),
    *("PYTHONDEVMODE", "PYTHONFAULTHANDLER", "PYTHONWARNINGS", "PYDEVD_DISABLE_FILE_VALIDATION", "JPY_SESSION_NAME"),
)

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


def kernel_environment(
    server: Mapping[str, str],
    *,
    named: Mapping[str, str],
    extra: Iterable[str],
    home: Path,
    temporary: Path,
    prefixes: Iterable[Path],
    proxy: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return a kernel's environment.

    Parameters
    ----------
    server : mapping
        The server's environment.
    named : mapping
        The kernelspec's ``env``: whoever wrote it named each variable, so all pass.
    extra : iterable of str
        More names or patterns that may pass.
    home : Path
        The home directory inside.
    temporary : Path
        The directory of temporary files inside.
    prefixes : iterable of Path
        The interpreter's; their programs come first on the path.
    proxy : mapping, optional
        What leads programs to the sandbox's proxy; no other could be reached.
    """
    patterns = (*ALLOWED, *extra)
    kept = {name: value for name, value in server.items() if any(fnmatchcase(name, one) for one in patterns)}
    programs = [str(prefix / "bin") for prefix in prefixes]
    private = {"IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib", "JUPYTER_CONFIG_DIR": "jupyter/config"}
    private |= {"JUPYTER_DATA_DIR": "jupyter/data", "JUPYTER_RUNTIME_DIR": "jupyter/runtime"}
    return {
        "PATH": ":".join(dict.fromkeys([*programs, *_SYSTEM_PATH])),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        **{name: str(temporary / place) for name, place in private.items()},
        **kept,
        **named,
        **(proxy or {}),
        "JPY_PARENT_PID": "1",  # the kernel's parent is process 1 of its own world; ipykernel then does not watch it
    }
