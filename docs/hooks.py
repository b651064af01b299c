"""Hooks of mkdocs: pages from outside docs/, titles as texts of links, figures and tables."""

import html
import re
from pathlib import Path

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[1]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
GENERATED = {"cli.md", "config.md"}  # written by `make pages`, not by hand
SLUG = slugify(case="lower")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave absent pages out of the menu, and link to the repository that CITATION.cff names."""
    config.nav = _present(config.nav)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if address := citation.get("repository-code"):
        config.repo_url, config.repo_name = address, "Source"
        config.edit_uri = "edit/main/docs/"
    return config


def _present(menu: list) -> list:
    """Return the menu without the pages that docs/ lacks."""
    entries = []
    for entry in menu:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            entries.append({title: _present(value)})
        elif value in PAGES.values() or (ROOT / "docs" / value).exists():
            entries.append(entry)
    return entries


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add CONTRIBUTING.md and CHANGELOG.md, with links relative to docs/."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for mark in ("](", "["):  # targets and texts of links
            text = text.replace(f"{mark}docs/", mark)
        file = File.generated(config, page, content=text)
        file.edit_uri = f"../{name}"
        files.append(file)
    for name in GENERATED:
        files.get_file_from_path(name).edit_uri = None
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point links to these pages at the site, and write a title for the text `use.md`."""
    for name, page in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({page}", markdown)
    link = r"\[[\w./]+\.md\](\(([\w.]+\.md)(?:#([\w-]+))?\))"
    return re.sub(link, lambda match: f"[{_title(match[2], match[3])}]{match[1]}", markdown)


def _title(page: str, anchor: str | None) -> str:
    """Return the heading at an anchor of a page, or its first one without what follows a colon."""
    sources = {made: ROOT / name for name, made in PAGES.items()}
    text = sources.get(page, ROOT / "docs" / page).read_text(encoding="utf-8")
    headings = re.findall("^#+ (.*)$", text, re.MULTILINE)
    anchors = {SLUG(heading.replace("`", ""), "-"): heading for heading in reversed(headings)}
    return anchors.get(anchor, headings[0].partition(":")[0])


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put drawn figures into the page, whose colours they take, and tables into boxes."""
    content = re.sub(r'<img alt="([^"]*)" src="([\w-]+\.svg)" />', _drawn, content)
    kind = "table stacked" if page.file.src_uri in GENERATED else "table"
    content = content.replace("<table>", f'<div class="{kind}"><table>')
    return content.replace("</table>", "</table></div>")


def on_post_page(output: str, **_: object) -> str:
    """Name the search for screen readers, which the theme does not."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def on_post_template(output_content: str, template_name: str, **_: object) -> str:
    """Leave out the page for lost addresses: it works only at the root of a server."""
    return "" if template_name == "404.html" else output_content


def _drawn(image: re.Match[str]) -> str:
    """Return the figure itself if it is drawn for both colour schemes, else the image."""
    figure = (ROOT / "docs" / image[2]).read_text(encoding="utf-8")
    if 'class="drawn"' not in figure:
        return image[0]
    label = html.escape(html.unescape(image[1]))
    return re.sub("<svg ", f'<svg aria-label="{label}" ', figure[figure.index("<svg") :], count=1)
