"""Hooks of mkdocs: pages from outside docs/, and the titles of pages as texts of links."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add CONTRIBUTING.md and CHANGELOG.md, with links relative to docs/."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for mark in ("](", "["):  # targets and texts of links
            text = text.replace(f"{mark}docs/", mark)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point links to these pages at the site, and write the title for the text `use.md`."""
    for name, page in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({page}", markdown)
    return re.sub(r"\[(\w+\.md)\]\(", lambda match: f"[{_title(match[1])}](", markdown)


def _title(page: str) -> str:
    """Read the heading of a page, without what follows a colon."""
    path = ROOT / "docs" / page
    path = path if path.exists() else ROOT / page
    heading = path.read_text(encoding="utf-8").partition("\n")[0]
    return heading.removeprefix("# ").partition(":")[0]
