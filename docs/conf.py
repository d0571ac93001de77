"""How Sphinx builds these pages: ``tox -e docs``."""

project = "nova-scheduler, standalone"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "alabaster"
myst_heading_anchors = 3
