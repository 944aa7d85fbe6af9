"""For administrators: a manager that offers the kernelspecs of sandboxed kernels and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from tornado.web import HTTPError
from traitlets import List, Unicode, default

from jupyter_agentbox.core.sandbox_settings import PROVISIONER
from jupyter_agentbox.sandbox.server.site import is_site


class NotAKernelError(NoSuchKernel, HTTPError):
    """No kernelspec has this name, or it is refused; over HTTP, status 404."""

    def __init__(self, name: str) -> None:
        NoSuchKernel.__init__(self, name)
        HTTPError.__init__(self, 404, "there is no kernel named `%s`", name)


class SandboxedKernelSpecManager(KernelSpecManager):
    """Offers the site's kernelspecs whose kernels are started in a sandbox, and starts no others.

    Jupyter's own `allowed_kernelspecs` hides other kernelspecs from the list, but a request that names one starts it.
    Here a name that is not allowed does not exist. A kernel of Python itself is not supplied.
    """

    kernelspec_dirs = List(
        Unicode(),
        help=(
            "The directories that kernelspecs are taken from. Default: those of Jupyter's directories"
            " that the server's user cannot change, neither directly nor through a parent directory "
            "or link."
        ),
    ).tag(config=True)

    @default("kernel_dirs")
    def _site_dirs(self) -> list[str]:
        if self.kernelspec_dirs:
            return [str(Path(name).expanduser().absolute()) for name in self.kernelspec_dirs]
        known: list[str] = self._kernel_dirs_default()
        kept = [one for one in known if is_site(Path(one).absolute())]
        for one in known:
            if one not in kept and Path(one).is_dir():
                self.log.warning(
                    "ignored the kernelspecs in `%s`, because the server's user can change them; to "
                    "use them, name the directory in SandboxedKernelSpecManager.kernelspec_dirs",
                    one,
                )
        return kept

    @default("ensure_native_kernel")
    def _ensure_native_kernel(self) -> bool:
        return False

    def find_kernel_specs(self) -> dict[str, str]:
        """Return the names of the kernelspecs with their directories."""
        found = super().find_kernel_specs()
        return {name: directory for name, directory in found.items() if self._is_sandboxed(name)}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return a kernelspec.

        Raises
        ------
        NotAKernelError
            If there is none of that name, it is not allowed, or its kernels would have no sandbox.
        """
        try:
            spec = super().get_kernel_spec(kernel_name)
        except NoSuchKernel:
            raise NotAKernelError(kernel_name) from None
        allowed = {name.lower() for name in self.allowed_kernelspecs}
        provisioner: Any = spec.metadata.get("kernel_provisioner", {})
        is_other = not isinstance(provisioner, dict) or provisioner.get("provisioner_name") != PROVISIONER
        if is_other or (allowed and kernel_name.lower() not in allowed):
            raise NotAKernelError(kernel_name)
        return spec

    def _is_sandboxed(self, name: str) -> bool:
        try:
            self.get_kernel_spec(name)
        except (NoSuchKernel, OSError, ValueError):
            return False
        return True
