"""The kernel application that `CodeExecutor` and `KernelGateway` start: an ipykernel that has no front end."""
