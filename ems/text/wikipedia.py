"""Extract documents from a dump of Wikipedia: one per article, one sentence a line (CCL 2019, 4.1).

mwxml reads the pages and mwparserfromhell their wikitext. Only paragraphs are kept and split into
sentences. The paper does not say how it extracted its text.
"""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Set
from functools import lru_cache, partial
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from ems.base.errors import Damaged, EmsError, mistake
from ems.base.files import atomic_path, read_json, state_of, write_json
from ems.base.provenance import source_hash
from ems.base.records import Count
from ems.base.texts import batched
from ems.corpora.monolingual import open_pages, streams
from ems.text.normalise import tidy_lines
from ems.text.pieces import Advance, Piece, done_pieces
from ems.text.segmenters.base import package, run_filter
from ems.text.segmenters.moses import PERL

NEEDS = (PERL, *map(package, ("mosestokenizer", "mwxml", "mwparserfromhell")))
STREAMS = 100  # per piece: 10,000 pages
PAGES = 500  # split into sentences by one run of Perl
REASONS = ("no_article", "redirect", "unreadable", "no_text")
NOT_PROSE = {
    *("ref", "references", "table", "gallery", "math", "chem", "score", "timeline", "imagemap"),
    *("syntaxhighlight", "source", "pre", "poem", "templatedata", "categorytree", "graph", "hiero"),
}
NO_TEXT = frozenset({"file", "image", "category"})  # namespaces whose links are not text
ITEM = "\0"  # marks a line of a list, which is left out
_MAGIC = re.compile(r"__[A-Z]+__|'{2,}")
_VARIANTS = re.compile(r"-\{(?:[^{}|]*\|)?(?:[\w-]+:)?([^{};]*)[^{}]*\}-")  # Chinese, Serbian
_END = re.compile(r"[。！？]+[”’」』）》】〉\"')\]]*")
_MARKUP = re.compile("<.+>")  # a line that the splitter would treat as a tag
BREAK = "<P>"  # written by the splitter after each paragraph


def check_needs() -> None:
    """Raise `EmsError` for a missing package or program, with how to install it."""
    for need in NEEDS:
        if not need.present():
            raise EmsError(f"the corpus Wikipedia {need.install} (`pip install -e .[wikipedia]`)")


def write_wikipedia(
    dump: Path, language: str, out: Path, state: Path | None, workers: int, size: int = STREAMS
) -> dict[str, int]:
    """Write the articles of a dump as gzipped documents, and the counts as JSON next to them:
    `pages` is `documents` plus the pages left out for one of REASONS. `workers` processes share
    pieces of `size` streams, which stay in `state` (default: next to `out`) until all are finished.
    """
    places, sha256 = streams(dump)
    first, last = (1 if len(places) > 2 else 0, len(places) - 1)  # without the header
    pieces = [
        Piece(dump, number, places[start], places[end], start, end - start)
        for number, (start, end) in enumerate(pairwise([*range(first, last, size), last]))
    ]
    work = partial(_write_piece, language, places[first] if first else 0)
    key = {"source": sha256, "size": size, "language": language}
    key["code"] = source_hash("ems.text.wikipedia")
    what, state = f"articles of {language}", state or state_of(out)
    with done_pieces(what, work, pieces, state, key, workers, "streams") as results:
        total: Counter[str] = Counter()
        with atomic_path(out) as temporary, open(temporary, "wb") as writer:
            for result in results:
                writer.write((result / "text.gz").read_bytes())
                total.update(read_json(result / "counts.json", dict[str, Count]))
            if not total["documents"]:
                raise EmsError(f"{dump}: no article with text in its {total['pages']:,} pages")
        write_json(out.with_suffix(".json"), dict(total))
    return dict(total)


def _write_piece(language: str, head: int, piece: Piece, out: Path, advance: Advance) -> None:
    counts = Counter(dict.fromkeys(("pages", "documents", "sentences", *REASONS), 0))
    split = splitter(language)
    out.mkdir()
    with (
        open(out / "text.gz", "wb") as packed,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as writer,
    ):
        articles = _articles(head, piece, counts)
        for batch in batched(articles, lambda paragraphs: sum(map(len, paragraphs)), PAGES):
            sentences = iter(split([paragraph for article in batch for paragraph in article]))
            for article in batch:
                document = [sentence for _ in article for sentence in next(sentences)]
                counts["documents" if document else "no_text"] += 1
                counts["sentences"] += len(document)
                if document:
                    writer.write("".join(f"{line}\n" for line in [*document, ""]).encode())
    write_json(out / "counts.json", dict(counts))
    advance(piece.lines)


def _articles(head: int, piece: Piece, counts: Counter[str]) -> Iterator[list[str]]:
    """Yield the paragraphs of each article of a piece; count pages, and pages left out."""
    import mwxml
    from mwparserfromhell.parser import ParserError
    from mwxml.errors import MalformedXML

    try:
        with open_pages(piece.source, head, piece.start, piece.end) as stream:
            dump = mwxml.Dump.from_file(stream)
            names = {space.name for space in dump.site_info.namespaces or () if space.name}
            spaces = {name.casefold() for name in names} | NO_TEXT
            for page in dump.pages:
                counts["pages"] += 1
                if page.namespace != 0 or page.redirect is not None:
                    counts["redirect" if page.namespace == 0 else "no_article"] += 1
                    continue
                text = next((revision.text for revision in page), None) or ""
                try:
                    yield paragraphs(text, spaces)
                except ParserError:
                    counts["unreadable"] += 1
    except (MalformedXML, SyntaxError, AssertionError, ValueError, KeyError, TypeError) as error:
        # SyntaxError includes XML's ParseError; the others come from odd values in its elements
        raise Damaged(piece.source, f"not the XML of a dump ({error})") from None


def paragraphs(wikitext: str, spaces: Set[str] = NO_TEXT) -> list[str]:
    """Return the paragraphs of prose of a page, without links to namespaces (in lower case)."""
    import mwparserfromhell

    code = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    text = _VARIANTS.sub(r"\1", _MAGIC.sub("", _prose(code, spaces)))
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and ITEM not in line]


def _prose(code: Any, spaces: Set[str]) -> str:
    return "" if code is None else "".join(_node(node, spaces) for node in code.nodes)


def _node(node: Any, spaces: Set[str]) -> str:
    from mwparserfromhell import nodes

    match node:
        case nodes.Text():
            return node.value.replace(ITEM, "")
        case nodes.HTMLEntity():
            return node.normalize()
        case nodes.Heading():
            return "\n"
        case nodes.Wikilink():
            space, colon, _ = str(node.title).partition(":")
            if colon and space.strip().casefold() in spaces:
                return ""
            return _prose(node.title if node.text is None else node.text, spaces)
        case nodes.ExternalLink():
            return _prose(node.title, spaces)
        case nodes.Tag():
            name = str(node.tag).strip().lower()
            if node.wiki_markup and name in ("li", "dd", "dt"):
                return ITEM
            if name in NOT_PROSE:
                return ""
            end = "\n" if name in ("br", "hr", "p", "div") else ""
            return end + _prose(node.contents, spaces) + end
    return ""


@lru_cache(maxsize=1)
def splitter(language: str) -> Callable[[list[str]], list[list[str]]]:
    """Return a function that splits paragraphs with the Moses splitter in Perl (mosestokenizer),
    which uses English abbreviations for languages without their own. Sentences that end in the
    full-width marks 。！？ are split here, since no space follows them.
    """
    script = files("mosestokenizer").joinpath("split-sentences.perl")
    command = ["perl", str(script), "-q", "-l", language]

    def split(paragraphs: list[str]) -> list[list[str]]:
        cuts = [_END.sub(lambda end: end[0] + "\n", text) for text in tidy_lines(paragraphs)]
        parts = [[part for part in map(str.strip, cut.split("\n")) if part] for cut in cuts]
        plain = [part for each in parts for part in each if not _MARKUP.fullmatch(part)]
        by_script = iter(_grouped(command, plain))
        return [
            [s for part in each for s in ([part] if _MARKUP.fullmatch(part) else next(by_script))]
            for each in parts
        ]

    return split


def _grouped(command: list[str], parts: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    lines = [line for part in parts for line in (part, "")]
    for line in run_filter(command, lines, "moses sentences") if lines else []:
        if line == BREAK:
            groups.append([])
        elif line:
            groups[-1].append(line)
    if len(groups) != len(parts) + 1:
        raise mistake("paragraphs lost", expected=len(parts), found=len(groups) - 1)
    return groups[:-1]
