"""Buttons that lead to the repository, from the one line of _config.yml that says where it is.

While that line is empty there is nothing to lead to, so there are no buttons; the theme by itself would stop with an
error. Only notebooks get the Colab button: Colab cannot open anything else. The address of the published pages follows
from it too, unless `html_baseurl` says otherwise.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config


def pages_address(repository: str) -> str:
    """Where GitHub Pages shows a repository of this address, "" for one that is elsewhere."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository)
    if not found:
        return ""
    owner, name = found[1].lower(), found[2]
    return f"https://{owner}.github.io/" + ("" if name.lower() == f"{owner}.github.io" else f"{name}/")


def set_buttons(app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    config.html_baseurl = config.html_baseurl or pages_address(options.get("repository_url") or "")
    published = bool(options.get("repository_url"))
    options["use_repository_button"] = options["use_issues_button"] = published
    if not published:
        for option in ("repository_url", "launch_buttons"):
            options.pop(option, None)


def trim_downloads(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Offer a page that is no notebook for printing only, not as a source file."""
    if context.get("page_source_suffix") == ".ipynb":
        return
    for group in context.get("header_buttons", []):
        if group.get("label") == "download-buttons":
            group["buttons"] = [button for button in group["buttons"] if button["label"] == "download-pdf-button"]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", set_buttons)
    app.connect("html-page-context", trim_downloads, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
