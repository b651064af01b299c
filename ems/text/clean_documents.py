"""Raw documents of one language -> clean ones, with every loss counted.

One streaming pass as for pairs, with the same filters, where they make sense for one side, and the
same keys. A sentence that goes leaves its neighbours side by side. A document with fewer than two
sentences has no context to learn from (CCL 2019, 3.1), so it goes as well.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ems.base.progress import Progress
from ems.config.experiment import Corpus, Experiment
from ems.corpora.monolingual import RawDocument, decoded, read_documents
from ems.corpora.split import part_of_text
from ems.text.capped import capped
from ems.text.evalkeys import read_all_keys
from ems.text.filters import Filters, Report, clean_pairs
from ems.text.seen import Seen

LEAST = 2  # sentences of a document that is kept
REASONS = ("cap", "empty", "no_context")  # why documents go; `duplicates` where that is on
Belongs = Callable[[RawDocument], bool]


@dataclass
class Counts:
    """What a file holds of the documents that belong to the corpus's part, and all its lines."""

    documents: int = 0
    empty: int = 0
    sentences: int = 0
    lines: int = 0


@dataclass(frozen=True)
class Cleaned:
    """What happened to the sentences and to the documents of a corpus, and the lines of its files.

    `documents` has read, removed and kept, as the report has them for sentences.
    """

    report: Report
    documents: dict[str, int | Counter[str]]
    lines: list[int]


Sentence = tuple[str, tuple[int, int]]  # text, (number of its document, line)


def clean_documents(
    experiment: Experiment,
    corpus: Corpus,
    language: str,
    files: list[Path],
    keys: list[Path],
    out: Path,
) -> Cleaned:
    """Write the clean documents of one language to `out`: `text<TAB>line` for each sentence, and an
    empty line after each document.

    Raises `EmsError` for a bad file, as `read_documents` and `decoded` do.
    """
    filters = Filters.model_construct(**dict(experiment.cleaning(corpus)))
    belongs = _belongs(experiment, corpus)
    counts = [_count(path, belongs) for path in files]
    read = sum(count.documents for count in counts)
    report = Report(
        sum(count.sentences for count in counts),
        Counter(dict.fromkeys(filters.reasons_of_documents(), 0)),
        {},
    )
    gone = Counter(dict.fromkeys(REASONS, 0))
    sentences = _sentences(experiment, corpus, language, files, counts, report, gone)
    rows = clean_pairs(
        sentences,
        (language,),
        read_all_keys(keys, experiment.held_against(language)),
        experiment.decontaminate.key,
        report,
        filters.model_copy(update={"duplicates": "keep"}),
    )
    seen = Seen(read) if filters.on("duplicates") else None
    progress = Progress(f"decontaminate {corpus.label} {language}", read, "documents")
    kept = 0
    with open(out, "w", encoding="utf-8", newline="\n") as writer:
        for document in _kept(rows, seen, report, gone, progress):
            kept += 1
            writer.writelines(f"{text}\t{line}\n" for text, (_, line) in document)
            writer.write("\n")
    progress.close()
    gone["empty"] = read - kept - gone.total()
    documents = {"read": read, "removed": gone, "kept": kept}
    return Cleaned(report, documents, [count.lines for count in counts])


def _kept(
    rows: Iterator[Sentence],
    seen: Seen | None,
    report: Report,
    gone: Counter[str],
    progress: Progress,
) -> Iterator[list[Sentence]]:
    """Yield the documents that stay; count the others and their sentences by reason."""
    for _, group in groupby(rows, key=lambda row: row[1][0]):
        document = list(group)
        if reason := _reason(document, seen):
            gone[reason] += 1
            report.removed[reason] += len(document)
            report.kept -= len(document)
        else:
            yield document
        progress.add()


def _reason(document: list[Sentence], seen: Seen | None) -> str:
    """Return why a document goes, "" for one that stays."""
    if len(document) < LEAST:
        return "no_context"
    if seen is not None and not seen.add(["\n".join(text for text, _ in document)])[0]:
        return "duplicates"
    return ""


def _belongs(experiment: Experiment, corpus: Corpus) -> Belongs:
    """Return a function that is True for a document of the corpus's part of a split.

    Its own bytes decide, so the parts are the same in every experiment, and two documents with the
    same text are in one part.
    """
    if not corpus.part:
        return lambda document: True
    parts = experiment.splits[corpus.name].parts

    def belongs(document: RawDocument) -> bool:
        text = b"\n".join(line.strip() for line in document.lines)
        return part_of_text(text, parts) == corpus.part

    return belongs


def _count(path: Path, belongs: Belongs) -> Counts:
    counts = Counts()
    for document in read_documents(path):
        counts.lines = document.first + len(document.lines)  # the blank one after it
        if belongs(document):
            counts.documents += 1
            counts.empty += not document.lines
            counts.sentences += len(document.lines)
    return counts


def _sentences(
    experiment: Experiment,
    corpus: Corpus,
    language: str,
    files: list[Path],
    counts: list[Counts],
    report: Report,
    gone: Counter[str],
) -> Iterator[tuple[str | None, tuple[int, int]]]:
    """Stream the sentences of the documents that belong to the part, under the cap; count the cap.

    None stands for a sentence that is not UTF-8, where such a one need not be.
    """
    number = before = 0
    for path, name, count in zip(files, corpus.files(language), counts, strict=True):
        documents = _documents(path, experiment, corpus)
        total, cap = count.documents - count.empty, corpus.cap(language)
        if cap is not None and cap < total:
            gone["cap"] += total - cap
            report.removed["cap"] += count.sentences
            seed = f"{experiment.seed}/{corpus.label}/{corpus.version}/{name}"
            documents = _drawn(capped(documents, total, cap, seed), report)
        for document in documents:
            texts = decoded(document, path, experiment.clean.undecodable)
            for at, text in enumerate(texts):
                yield text, (number, before + document.first + at)
            number += 1
        before += count.lines


def _drawn(documents: Iterator[RawDocument], report: Report) -> Iterator[RawDocument]:
    """Take the sentences of drawn documents out of those that the cap removes."""
    for document in documents:
        report.removed["cap"] -= len(document.lines)
        yield document


def _documents(path: Path, experiment: Experiment, corpus: Corpus) -> Iterator[RawDocument]:
    """Stream the documents of a part that have a line."""
    belongs = _belongs(experiment, corpus)
    return (document for document in read_documents(path) if document.lines and belongs(document))
