"""Pages of the site that lie outside of docs/: README.md is its start, CHANGELOG.md its changes."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "start.md", "CHANGELOG.md": "changes.md"}
DIAGRAM = re.compile(r"```mermaid\n.*?```\n\n", re.DOTALL)  # drawn by a script from the network


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, with links as they are from within docs/."""
    for name, page in PAGES.items():
        text = DIAGRAM.sub("", (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with its links to such a page as they are within the site."""
    for name, page in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    return markdown
