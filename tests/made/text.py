"""The experiment `tiny` with other settings, a corpus to clean, and rows for the filters."""

import unicodedata
from dataclasses import replace
from itertools import chain
from pathlib import Path

from made.experiments import shipped

from ems.config.text import CleanSettings
from ems.text.clean import CleanSource, clean_corpus
from ems.text.duplicates import without_duplicates
from ems.text.filters import OFF, CleanReport, in_batches, row_filters
from ems.text.filters import filtered as all_filtered

GROUPS = ("clean", "decontaminate", "vocabulary")


def tiny(corpus=None, **changes):
    """The experiment, of one corpus if that is given; of GROUPS only the given keys change."""
    if corpus:
        changes |= {"corpora": (corpus,), "validation": ()}
    for key in GROUPS:
        if key in changes:
            settings = getattr(shipped("tiny"), key)
            given = {name: value for name, value in settings if value is not None}
            changes[key] = type(settings)(**given | changes[key])
    return replace(shipped("tiny"), **changes)


def of_languages(*codes, **changes):
    """The experiment with some of its languages."""
    return tiny(languages={code: shipped("tiny").languages[code] for code in codes}, **changes)


def cleaned(experiment, archives, keys, pair="de-en", name="out.tsv"):
    """(the columns of each line that stays, the report) of the corpus of an experiment."""
    corpus, out = experiment.corpora[0], keys.with_name(name)
    source = CleanSource(corpus.label, corpus.version, pair, tuple(archives))
    entry = clean_corpus(experiment, source, keys, out)
    return [line.split("\t") for line in out.read_bytes().decode().split("\n")[:-1]], entry


def law(text):
    """The folded key, character by character: NFKC, lower case, letters, digits and marks."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LNM")


def reasons(settings, sides=("de", "en")):
    """The filters of some settings, and the reasons that they count under, in their order."""
    filters = row_filters(settings, sides, {}, "folded")
    return list(chain.from_iterable(each.reasons for each in filters))


def passed(rows, report, sides=("de", "en"), known=None, key="folded", settings=None):
    """Yield the rows that stay. `report` counts the others."""
    settings = settings or CleanSettings()
    filters = row_filters(settings, sides, known or {}, key)
    report.expect(chain.from_iterable(each.reasons for each in filters))
    batches = all_filtered(in_batches(rows), filters, report)
    if settings.duplicates not in OFF:
        batches = without_duplicates(batches, report, Path("never used"))
    for batch in batches:
        report.kept += len(batch)
        yield from batch


def filtered(pairs, sides=("de", "en"), known=None, **settings):
    """((first, second) that stay, report) of pairs that may hold None."""
    report = CleanReport(read=len(pairs))
    numbered = [(first, second, at) for at, (first, second) in enumerate(pairs, start=1)]
    rows = passed(numbered, report, sides, known, settings=CleanSettings(**settings))
    kept = [row[:2] for row in rows]
    assert report.read == report.kept + report.removed.total()
    assert report.kept == len(kept)
    return kept, report
