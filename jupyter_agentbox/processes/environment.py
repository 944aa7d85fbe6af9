"""The environment of subprocesses: what every process needs, and what was configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Inherited variables. This is an allowlist, because nobody knows the names of all secrets.
PASSED: Final = frozenset(
    {
        # user and machine
        "HOME", "LOGNAME", "USER", "SHELL", "PATH", "PWD", "TERM", "TZ", "TMPDIR", "TMP", "TEMP",
        # language
        "LANG", "LANGUAGE",
        # desktop directories, and what programs need to open a window or a browser
        "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME", "DISPLAY", "WAYLAND_DISPLAY",
        # network proxies and certificates
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO", "PIP_CERT", "UV_NATIVE_TLS",
        # caches of package runners
        "NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "ASDF_DIR", "CARGO_HOME", "GOPATH", "JAVA_HOME", "DOTNET_ROOT",
        # Windows
        "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR",
        # macOS
        "__CF_USER_TEXT_ENCODING",
    }
)  # fmt: skip
#: Prefixes of other inherited variables.
PASSED_PREFIXES: Final = ("LC_",)


def process_environment(inherited: Mapping[str, str], configured: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for an MCP server's process.

    Parameters
    ----------
    inherited : mapping
        The environment of the Jupyter server, with its tokens and the user's cloud keys.
    configured : mapping
        Variables from the MCP server's configuration (``env``, ``envFile``), which take precedence.
    """
    passed = {
        name: value
        for name, value in inherited.items()
        # proxies may be in lower case; a value with this prefix is an exported shell function
        if (name.upper() in PASSED or name.startswith(PASSED_PREFIXES)) and not value.startswith("()")
    }
    return {**passed, **configured}
