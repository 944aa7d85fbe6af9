"""Sphinx configuration."""

from jupyter_agentbox import __version__

project = "jupyter_agentbox"
author = "jupyter_agentbox contributors"
copyright = f"2026, {author}"
release = version = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "explanation/attack-table.md"]

html_theme = "pydata_sphinx_theme"
html_title = "jupyter_agentbox"
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
