"""The experiment `tiny` with other settings, and a corpus that is cleaned by it."""

import unicodedata
from dataclasses import replace

from made.experiments import shipped

from ems.text.clean import CleanSource, clean_corpus

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
