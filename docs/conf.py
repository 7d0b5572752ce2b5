"""Sphinx: Markdown in, a site that works from a folder without a network out."""
project = "Gradus"
copyright = "the Gradus contributors, Apache-2.0"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Gradus"
html_copy_source = False
html_static_path = ["static"]
html_extra_path = ["strides.html"]
html_css_files = ["gradus.css"]
html_show_sphinx = False
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
# Signatures and schema lines are no Python or C that Pygments could read.
suppress_warnings = ["misc.highlighting_failure"]
