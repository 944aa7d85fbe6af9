"""The environment of a process that we start: what any process needs, and what was configured for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Variables that are passed on. A list of what may pass, not of what may not: nobody knows the names of all secrets.
PASSED: Final = frozenset(
    {
        # who and where
        "HOME", "LOGNAME", "USER", "SHELL", "PATH", "PWD", "TERM", "TZ", "TMPDIR", "TMP", "TEMP",
        # language
        "LANG", "LANGUAGE",
        # the desktop's directories, and what programs that open a window or a browser need
        "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME", "DISPLAY", "WAYLAND_DISPLAY",
        # the way to the network
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO", "PIP_CERT", "UV_NATIVE_TLS",
        # where package runners keep what they run
        "NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "ASDF_DIR", "CARGO_HOME", "GOPATH", "JAVA_HOME", "DOTNET_ROOT",
        # Windows
        "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR",
        # macOS
        "__CF_USER_TEXT_ENCODING",
    }
)  # fmt: skip
#: Variables whose names start like this are passed on too.
PASSED_PREFIXES: Final = ("LC_",)


def process_environment(inherited: Mapping[str, str], configured: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a server's process.

    Parameters
    ----------
    inherited : mapping
        The environment of the Jupyter server, with its tokens and the user's cloud keys.
    configured : mapping
        What the server's configuration names (``env``, ``envFile``); it wins, whatever the names.
    """
    passed = {
        name: value
        for name, value in inherited.items()
        # proxies are spelled in lower case too; a value that starts like this is an exported shell function
        if (name.upper() in PASSED or name.startswith(PASSED_PREFIXES)) and not value.startswith("()")
    }
    return {**passed, **configured}
