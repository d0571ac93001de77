"""How Sphinx builds these pages: ``tox -e docs``."""

project = "nova-scheduler, standalone"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1240px", "sidebar_width": "240px", "fixed_sidebar": False}
myst_heading_anchors = 3
