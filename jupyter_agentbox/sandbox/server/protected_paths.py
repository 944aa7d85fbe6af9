"""The paths of a machine that a kernel must not see, and those that it must not write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jupyter_agentbox.exceptions import SandboxRefusedError

#: Below the home directory: what opens other doors. Hidden.
SECRETS = (
    *(
        ".ssh",
        ".gnupg",
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".oci",
        ".terraform.d",
        ".vault-token",
        ".password-store",
    ),
    *(".netrc", ".authinfo", ".authinfo.gpg", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".git-credentials", ".s3cfg"),
    *(".databrickscfg", ".dbt", ".snowflake", ".kaggle", ".huggingface", ".boto", ".rclone.conf", ".msmtprc"),
    *(
        ".jupyter",
        ".local/share/jupyter",
        ".ipython/profile_default/security",
        ".ipython/profile_default/history.sqlite",
    ),
    *(".config", ".cache", ".mozilla", ".thunderbird", ".claude", ".claude.json", ".codex", ".gemini", ".cursor"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".lesshst"),
    *(".Xauthority", ".ICEauthority", ".dbus", ".pki", ".local/share/keyrings", ".cargo/credentials.toml", ".m2"),
)

#: Below the home directory: what runs or steers code later. Read-only. Of these, directories that are missing are made.
RUN_LATER = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".xprofile", ".xsessionrc", ".xinitrc"),
    *(".gitconfig", ".vimrc", ".vim", ".emacs", ".emacs.d", ".nanorc", ".tmux.conf", ".screenrc", ".gdbinit", ".pdbrc"),
    *(".condarc", ".pythonrc", ".pythonrc.py", ".Rprofile", ".Renviron", ".octaverc", ".julia", ".pam_environment"),
    *(".ipython", ".local", ".pyenv", ".nvm", ".rbenv", ".cargo", ".rustup", ".oh-my-zsh", ".vscode", ".vscode-server"),
    *("bin", ".bin", "R", "perl5", ".rvm", ".sdkman", ".conda", ".npm-global", ".nix-profile"),
)

#: Made if missing, so that nothing can be put there from inside: an empty one means nothing to anyone.
ALWAYS_THERE = (".ssh", ".ipython", ".local", ".jupyter", ".config")

#: In any directory that a kernel can write, and at the top of the repositories below: what a program outside obeys that
#: is not started to run the project (an editor, a shell, git, an agent, Jupyter). Read-only; they may be patterns.
OBEYED = (
    *(".gitmodules", ".husky", ".githooks", ".pre-commit-config.yaml", ".lefthook", "lefthook.yml"),
    *(".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json", "*.code-workspace"),
    *(".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el"),
    *(".env", ".env.*", ".envrc", ".mise.toml", "mise.toml", ".tool-versions"),
    *(".mcp.json", "mcp.json", ".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".continue", ".aider.conf.yml"),
    *("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".clinerules"),
    ".github/copilot-instructions.md",
    *("jupyter_config.py", "jupyter_config.json", "jupyter_server_config.py", "jupyter_server_config.json"),
    *("jupyter_lab_config.py", "jupyter_lab_config.json", "jupyter_notebook_config.py", "jupyter_notebook_config.json"),
    *("jupyter_server_config.d", "jupyterhub_config.py", "ipython_config.py", "sitecustomize.py", "usercustomize.py"),
)

_MOST_LINKS = 40
_NEVER_WORK = ("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys")
_NEVER_BELOW = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """What a kernel on this machine must not see or change.

    Parameters
    ----------
    home : Path
        The user's home directory.
    hidden : tuple of Path
        Paths that must not be seen: Jupyter's own, and those that settings name.
    read_only : tuple of Path
        Paths that must not be written: the interpreters of the server and the kernel.
    configuration : tuple of Path
        Files and directories that decide what a sandbox is, what is allowed or what starts. They are hidden or
        read-only wherever they lie; a kernel that could create or replace one is not started.
    covered : tuple of Path
        Those of them that contain secrets and may well lie in a work directory; there they are hidden.
    """

    home: Path
    hidden: tuple[Path, ...]
    read_only: tuple[Path, ...]
    configuration: tuple[Path, ...] = ()
    covered: tuple[Path, ...] = ()

    @property
    def secrets(self) -> tuple[Path, ...]:
        """All paths that must not be seen."""
        return (*self.hidden, *(self.home / name for name in SECRETS))


def check_work_directory(path: Path, protected: Protected) -> Path:
    """Return a work directory with all symbolic links resolved, if a kernel may have it.

    Parameters
    ----------
    path : Path
        The directory that was asked for.
    protected : Protected
        What is to be kept from the kernel.

    Raises
    ------
    SandboxRefusedError
        If it is missing, or would show or expose what is protected.
    """
    work = path.resolve()
    home = protected.home.resolve()
    if not work.is_dir():
        raise SandboxRefusedError(f"the work directory `{path}` is not a directory")
    if work in {Path(one).resolve() for one in _NEVER_WORK} or any(
        _is_at_or_below(work, Path(p)) for p in _NEVER_BELOW
    ):
        raise SandboxRefusedError(f"`{work}` belongs to the system and cannot be a sandboxed kernel's work directory")
    read_only = [one.resolve() for one in protected.read_only]
    for one in read_only:
        if _is_at_or_below(work, one) and not _is_at_or_below(home, one):
            raise SandboxRefusedError(f"the work directory `{work}` is inside `{one}`, which Python runs from")
    for one in protected.secrets:
        place = one.resolve()
        if any(inner in place.parents and inner != work for inner in read_only if work in inner.parents):
            continue  # in a Python environment that is below the work directory: read-only, and hidden there
        if _is_at_or_below(work, place):
            raise SandboxRefusedError(
                f"the work directory `{work}` is inside `{one}`, which must stay hidden from kernels"
            )
        if work != home and _is_at_or_below(place, work):
            raise SandboxRefusedError(
                f"the work directory `{work}` would show `{one}` to the kernel; choose a directory below it"
            )
    return work


def literal(path: Path) -> Path | None:
    """Return a path if it exists and no part of it is a symbolic link, else ``None``.

    A sandboxed kernel may have put it into its work directory, and a link there must not decide what is mounted.
    """
    return path if os.path.lexists(path) and Path(os.path.realpath(path)) == path else None


def inside(paths: Iterable[Path], directory: Path) -> list[Path]:
    """Return those of `paths` that are below `directory`, links resolved."""
    return [found for found in (path.resolve() for path in paths) if found != directory and directory in found.parents]


def way_to(path: Path) -> tuple[Path, list[Path]]:
    """Return a path with its links resolved, and the paths of those links.

    Whoever can replace one of the links decides what the path names.

    Parameters
    ----------
    path : Path
        Absolute; what it names may be missing.
    """
    links: list[Path] = []
    left = list(reversed(path.parts[1:]))
    real = Path(path.anchor)
    while left:
        part = left.pop()
        real = real.parent if part == ".." else real / part
        if real.is_symlink() and len(links) < _MOST_LINKS:
            links.append(real)
            target = real.readlink()
            real = Path(target.anchor) if target.is_absolute() else real.parent
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return real, links


def is_below(path: Path, places: Iterable[Path]) -> bool:
    """Whether someone who can write in one of `places` decides what a path names.

    Parameters
    ----------
    path : Path
        An absolute path.
    places : iterable of Path
        Without links.
    """
    real, links = way_to(path)
    return any(place in (one, *one.parents) for place in places for one in (real, *links))


def _is_at_or_below(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents
