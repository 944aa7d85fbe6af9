from __future__ import annotations

from jupyter_agentbox.core.sandbox_settings import SandboxSettings
from jupyter_agentbox.sandbox.provisioner import SandboxProvisioner


def test_settings_and_traits_have_the_same_names_and_defaults() -> None:
    traits = {name: trait.default() for name, trait in SandboxProvisioner.class_traits(config=True).items()}
    del traits["sandbox_config"]

    assert traits == SandboxSettings().as_json()
