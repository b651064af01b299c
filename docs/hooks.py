"""Pages of the site that lie outside of docs/, like its start, README.md."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
DIAGRAM = re.compile(r"```mermaid\n.*?```\n\n", re.DOTALL)  # drawn by a script from the network


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, page in PAGES.items():
        text = DIAGRAM.sub("", (ROOT / name).read_text(encoding="utf-8"))
        for mark in ("](", "["):  # as links within docs/ are, and the texts that name their pages
            text = text.replace(f"{mark}docs/", mark)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with its links to those pages as they are within the site."""
    for name, page in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({page}", markdown)
    return markdown
