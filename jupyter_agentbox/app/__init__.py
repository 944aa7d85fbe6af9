"""The Jupyter server extension: its settings, and the parts that it builds, starts and ends."""
