"""The headless kernel application that `CodeExecutor` and `KernelGateway` start."""
