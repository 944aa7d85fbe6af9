"""Metadata of distributions that are not installed, for tests of entry points."""

from __future__ import annotations

from pathlib import Path


def install(place: Path, name: str, points: str) -> None:
    """Put a distribution with these entry points into a directory of `sys.path`."""
    metadata = place / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)
