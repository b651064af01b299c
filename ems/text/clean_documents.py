"""Clean the documents of one language; count every sentence and document removed, by reason.

The filters are the same as for pairs. Where a sentence is removed, its neighbours become adjacent.
Documents left with fewer than two sentences, which lack context (CCL 2019, 3.1), are removed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from ems.base.progress import Progress
from ems.corpora.monolingual import RawDocument, read_documents
from ems.corpora.moses import decode_lines
from ems.corpora.split import part_of_text
from ems.text.clean import Cleaned, CleanJob, job_filters, sampled
from ems.text.duplicates import REASON, Seen
from ems.text.filters import OFF, CleanReport, filtered, in_batches
from ems.text.tsv import MIN_SENTENCES

NO_CONTEXT = "no_context"
DocumentRow = tuple[str | None, tuple[int, int]]  # text, (document number, line)
Document = list[DocumentRow]


def clean_documents(job: CleanJob, scratch: Path) -> Cleaned:
    """Stream the documents of one language through every filter; `scratch` is not used."""
    counts = [_count(job, file.path) for file in job.files]
    report = CleanReport(read=sum(count["sentences"] for count in counts))
    documents = CleanReport(read=sum(count["documents"] for count in counts))
    seen = Seen(documents.read) if job.settings.duplicates not in OFF else None
    filters = job_filters(job)
    report.expect(["cap", *chain.from_iterable(each.reasons for each in filters), NO_CONTEXT])
    report.expect([REASON] if seen else [])
    documents.expect(["cap", "empty", NO_CONTEXT])
    sentences = _sentences(job, counts, report, documents)
    rows = chain.from_iterable(filtered(in_batches(sentences), filters, report))
    what = f"decontaminate {job.source.title}"
    progress = Progress(what, documents.read, "documents", small=job.source.small)
    groups = progress.over(list(group) for _, group in groupby(rows, key=lambda row: row[1][0]))
    blocks = _blocks(groups, seen, report, documents)
    return Cleaned(blocks, [count["lines"] for count in counts], report, documents)


def _blocks(
    groups: Iterable[Document], seen: Seen | None, report: CleanReport, documents: CleanReport
) -> Iterator[str]:
    for document in groups:
        if reason := _reason(document, seen):
            documents.removed[reason] += 1
            report.removed[reason] += len(document)
        else:
            documents.kept += 1
            report.kept += len(document)
            yield "".join([f"{text}\t{line}\n" for text, (_, line) in document]) + "\n"
    documents.removed["empty"] = documents.read - documents.kept - documents.removed.total()


def _reason(document: Document, seen: Seen | None) -> str:
    if len(document) < MIN_SENTENCES:
        return NO_CONTEXT
    if seen is not None and not seen.add(["\n".join(text for text, _ in document)])[0]:
        return REASON
    return ""


def _belongs(job: CleanJob, document: RawDocument) -> bool:
    """Return whether a document belongs to the corpus's part of a split. Its bytes decide: parts
    are the same in every experiment, and equal documents share a part.
    """
    if job.split is None:
        return True
    text = b"\n".join(line.strip() for line in document.lines)
    return part_of_text(text, job.split.parts) == job.corpus.part


def _count(job: CleanJob, path: Path) -> Counter[str]:
    """Count the part's documents, non-empty documents (`texts`), sentences; the file's lines."""
    count: Counter[str] = Counter()
    for document in read_documents(path):
        count["lines"] = document.first + len(document.lines)  # with the blank line after it
        if _belongs(job, document):
            count["documents"] += 1
            count["texts"] += bool(document.lines)
            count["sentences"] += len(document.lines)
    return count


def _sentences(
    job: CleanJob, counts: Sequence[Counter[str]], report: CleanReport, documents: CleanReport
) -> Iterator[DocumentRow]:
    """Stream the part's sentences under the cap, None if not UTF-8; count what the cap removes."""
    number = before = 0
    for file, count in zip(job.files, counts, strict=True):
        chosen = (each for each in read_documents(file.path) if each.lines and _belongs(job, each))
        total, cap = count["texts"], job.corpus.cap(job.source.pair)
        if capped := cap is not None and cap < total:
            documents.removed["cap"] += total - cap
            report.removed["cap"] += count["sentences"]  # the drawn ones are subtracted below
            chosen = sampled(chosen, total, cap, f"{job.seed}/{file.name}")
        for document in chosen:
            report.removed["cap"] -= len(document.lines) if capped else 0
            first, bad = document.first, job.settings.undecodable
            texts = decode_lines(document.lines, bad, file.path, first)
            for line, text in enumerate(texts, start=before + first):
                yield text, (number, line)
            number += 1
        before += count["lines"]
