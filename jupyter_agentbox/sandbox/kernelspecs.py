"""For administrators: kernelspecs of sandboxed kernels, and no others."""

from __future__ import annotations

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from traitlets import default

from jupyter_agentbox.core.sandbox import PROVISIONER


class SandboxedKernelSpecManager(KernelSpecManager):
    """Knows the kernelspecs whose kernels are started in a sandbox, and starts no others.

    Jupyter's own `allowed_kernelspecs` hides other kernelspecs from the list, but a request that names one starts it.
    Here a name that is not allowed does not exist. A kernel of Python itself is not supplied.
    """

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
        NoSuchKernel
            If there is none of that name, it is not allowed, or its kernels would have no sandbox.
        """
        spec = super().get_kernel_spec(kernel_name)
        allowed = {name.lower() for name in self.allowed_kernelspecs}
        provisioner = spec.metadata.get("kernel_provisioner", {})
        if (allowed and kernel_name.lower() not in allowed) or provisioner.get("provisioner_name") != PROVISIONER:
            raise NoSuchKernel(kernel_name)
        return spec

    def _is_sandboxed(self, name: str) -> bool:
        try:
            self.get_kernel_spec(name)
        except (NoSuchKernel, OSError, ValueError):
            return False
        return True
