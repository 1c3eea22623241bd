"""Sphinx configuration of the site: ``make docs`` builds it, runs the examples, and treats warnings as errors."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from c2tc_pipeline import __version__  # noqa: E402
from c2tc_pipeline_tests.storage.s3_server import BUCKET, running_server  # noqa: E402

project = "c2tc_pipeline"
author = copyright = "the authors of c2tc_pipeline"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "c2tc_pipeline"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7cb8e0", "color-brand-content": "#7cb8e0"},
}

# Links such as [versions](sources.md#versions) lead to headings.
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]

# Docstrings name the types; signatures stay short.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_ivar = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": "__init__",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "matplotlib_animations": False,
    "log_level": {"backreference_missing": "debug"},
}

# The example on S3 gets a server of its own, and is left out where the program of that server is missing.
_servers = ExitStack()
try:
    _server = _servers.enter_context(running_server(Path(_servers.enter_context(tempfile.TemporaryDirectory()))))
except pytest.skip.Exception:
    sphinx_gallery_conf["ignore_pattern"] = "s3"
else:
    os.environ |= {**_server.environment, "AWS_ENDPOINT_URL": _server.endpoint_url, "EXAMPLE_BUCKET": BUCKET}


def setup(app: object) -> None:
    """End the S3 server with the build."""
    app.connect("build-finished", lambda *_: _servers.close())  # type: ignore[attr-defined]
