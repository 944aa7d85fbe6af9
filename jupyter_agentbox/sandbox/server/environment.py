"""The environment variables of a sandboxed kernel: rebuilt from an allow-list, never inherited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from jupyter_agentbox.core.notebook_runners import NO_SERVER

#: What may pass. Everything else of the server's environment stays outside, tokens of a Hub first of all.
ALLOWED = (
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "USER", "LOGNAME", "SHELL"),
    *("CLICOLOR", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "PAGER", "GIT_PAGER", "MPLBACKEND"),
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"),
    *("PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE"),
    *("PYTHONDEVMODE", "PYTHONFAULTHANDLER", "PYTHONWARNINGS", "PYDEVD_DISABLE_FILE_VALIDATION", "JPY_SESSION_NAME"),
    NO_SERVER,
)

#: Names of variables that open doors. They pass by their exact name only, and only if the site or the owner says so: so
#: this has more names than what logs hide, those of whole services first of all.
_SECRET = re.compile(
    r"^(JUPYTERHUB_|JPY_|JUPYTER_TOKEN|AWS_|AZURE_|GOOGLE_APPLICATION|VAULT_|SSH_|GPG_|KRB5)|TOKEN|SECRET|PASSW|PASSPHRASE"
    r"|CREDENTIAL|COOKIE|API_?KEY|PRIVATE|ACCESS_?KEY|AUTH|_KEY$|_PWD$|_DSN$|DATABASE_URL|CONNECTION_STRING",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")

_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is kept from kernels unless someone who may do so names it exactly.

    Parameters
    ----------
    name : str
        The name of the variable.
    """
    return _SECRET.search(name) is not None


def without_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Return a kernelspec's variables without those that insert a secret, such as ``${JUPYTERHUB_API_TOKEN}``.

    Parameters
    ----------
    env : mapping
        As the kernelspec gives them.
    """
    return {name: text for name, text in env.items() if not any(map(looks_secret, _REFERENCE.findall(text)))}


def kernel_environment(
    server: Mapping[str, str],
    *,
    named: Mapping[str, str],
    extra: Iterable[str],
    home: Path,
    temporary: Path,
    prefixes: Iterable[Path],
    proxy: Mapping[str, str] | None = None,
    trusted: Iterable[str] = (),
) -> dict[str, str]:
    """Return a kernel's environment.

    Parameters
    ----------
    server : mapping
        The server's environment.
    named : mapping
        The kernelspec's ``env``. Its author named each variable, so all of them pass.
    extra : iterable of str
        More names or patterns that may pass.
    home : Path
        The home directory inside.
    temporary : Path
        The directory of temporary files inside.
    prefixes : iterable of Path
        The interpreter's prefixes; their programs come first on the path.
    proxy : mapping, optional
        The variables that lead programs to the sandbox's proxy; no other proxy could be reached.
    trusted : iterable of str
        The names in `extra` whose variables pass even if they look like secrets.
    """
    patterns = (*ALLOWED, *extra)
    named_exactly = set(trusted)
    server = {
        name: value
        for name, value in server.items()
        if name in ALLOWED or name in named_exactly or not looks_secret(name)
    }
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
