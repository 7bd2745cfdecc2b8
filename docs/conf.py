"""The documentation site: `make docs` builds it into build/docs. It needs no network, neither to be built nor to be read."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import bridle  # noqa: E402

project = "bridle"
author = "The bridle developers"
copyright = "The bridle developers"
release = version = bridle.__version__
html_title = f"bridle {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "bridle_site",
]
exclude_patterns = [
    "_ext",
    "_static",
    "_pictures",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.md5",
    "gallery/**/*.json",
    "**/README.*",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
nitpicky = False

# Pages.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache", "ref.python"]  # the gallery's order is a function; some names are in two adapters

# Docstrings: `bridle_site.docstrings` makes plain text with `names` in backticks into reStructuredText; napoleon reads the sections.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes as a list: as directives they would be described twice
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
add_module_names = False
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Scalar", "Setting", "Limits", "Labels")}
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100

# Examples.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "within_subsection_order": "bridle_site.gallery_order.GalleryOrder",
    "plot_gallery": "True",
    "abort_on_example_error": False,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Looks: the accent, the icon and the greys are those of the report page and of the live page.
html_theme = "pydata_sphinx_theme"
html_logo = html_favicon = "../src/bridle/service/templates/icon.svg"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_js_files = ["from-disk.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "bridle", "alt_text": "bridle, first page"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "show_nav_level": 1,
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "frontier": [], "paper": [], "policies": [], "exponents": []},  # wide tables
    "footer_start": ["site-links"],
    "footer_end": ["copyright"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "search": []}
