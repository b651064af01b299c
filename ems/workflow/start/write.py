"""The file of an experiment of chosen corpora, with a comment on each value that one may change."""

import json
from pathlib import Path
from string import Template

from ems.config.languages.opus import opus_date
from ems.config.plugins import benchmark
from ems.corpora.catalogue import licence_of
from ems.workflow.start.choice import Pair, Pick
from ems.workflow.start.names import Named
from ems.workflow.start.recipe import held_out, size_for, steps_for, validation_of, vocabulary_size
from ems.workflow.start.search import PIVOT

BENCHMARKS = ("tatoeba", "flores200", "sib200")  # open, and of many languages
MINED = "mined"
DENSE = ("Han", "Japanese", "Hangul", "Hans", "Hant")  # scripts with a syllable or a word a letter


def experiment_text(name: str, languages: list[Named], picks: list[Pick], command: str) -> str:
    """Return the file of the experiment `name` of some languages and the corpora picked."""
    taken = [pick for pick in picks if pick.most]
    pairs = sum(pick.most for pick in taken)
    size, sets = size_for(pairs), _sets(languages)
    steps = steps_for(size, pairs)
    validating = validation_of(taken)
    by_corpus = _by_corpus(taken)
    held = {corpus: held_out(by_corpus[corpus]) for corpus in validating}
    names = " ".join(language.code for language in languages)
    return _template().substitute(
        **{"name": name, "command": command, "date": opus_date(), "pairs": f"{pairs:,}"},
        description=json.dumps(f"An encoder for {names}, from {pairs:,} sentence pairs of OPUS."),
        languages="\n".join(map(_language, languages)),
        splits="\n".join(
            f"  {c}: {{first: {{validation: {n}}}, rest: train}}" for c, n in held.items()
        ),
        licences=_licences(by_corpus),
        corpora="\n".join(_entry(own, corpus in held) for corpus, own in by_corpus.items()),
        validation="\n".join(_validation(by_corpus[c], validating[c]) for c in held),
        evalsets="\n".join(f"  {each}: {{version: v1}}" for each in sets),
        sets=", ".join(sets),
        ratio=_ratio(languages, taken),
        language=_language_filter(taken),
        vocabulary=vocabulary_size(len(languages), pairs),
        **{"table": size.table, "ngrams": size.ngrams, "steps": steps, "batch": size.batch},
        **{"seen": f"{steps * size.batch:,}", "epochs": f"{steps * size.batch / pairs:.1f}"},
        **{"warmup": steps // 30, "validate": steps // 12, "checkpoint": steps // 24},
    )


def _ratio(languages: list[Named], taken: list[Pick]) -> int:
    """Return how much longer one side may be: less for mined text, more for Chinese."""
    dense = any(language.language.script in DENSE for language in languages)
    return 5 if not dense and any(pick.offer.noise == MINED for pick in taken) else 9


def _language_filter(taken: list[Pick]) -> str:
    """Return the filter by language for the mined corpora, or nothing."""
    mined = dict.fromkeys(pick.offer.corpus for pick in taken if pick.offer.noise == MINED)
    named = f"  language: {{corpora: [{', '.join(mined)}]}}"
    return f"{named} # removes mined lines that are in another language\n" if mined else ""


def _template() -> Template:
    return Template(Path(__file__).with_name("experiment.txt").read_text(encoding="utf-8"))


def _language(language: Named) -> str:
    known, code = language.language, language.code
    if known.ems_pairs != "-" or code == PIVOT:
        return f"  - {code} # {language.name}"
    fields = {"code": code, "tatoeba_v1": known.tatoeba_v1, "flores200": known.flores200}
    fields["script"] = known.script
    return f"  - {_flow({key: text for key, text in fields.items() if text})} # {language.name}"


def _flow(value: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {text}" for key, text in value.items()) + "}"


def _sets(languages: list[Named]) -> list[str]:
    """Return the benchmarks that have some of the languages: two of them, or English and another
    where they are scored with English.
    """
    english = any(language.code == PIVOT for language in languages)
    sets = []
    for name in BENCHMARKS:
        record = benchmark(name)
        codes = [getattr(language.language, record.codes) for language in languages]
        if sum(map(bool, codes)) >= 2 and (english or record.between == ""):
            sets.append(name)
    return sets


def _by_corpus(taken: list[Pick]) -> dict[str, list[Pick]]:
    corpora: dict[str, list[Pick]] = {}
    for pick in taken:
        corpora.setdefault(pick.offer.corpus, []).append(pick)
    return corpora


def _licences(by_corpus: dict[str, list[Pick]]) -> str:
    known = [f"{name} {licence_of(name)}" for name in by_corpus if "see" not in licence_of(name)]
    others = len(by_corpus) - len(known)
    pages = [f"the other {others} on their pages, https://opus.nlpl.eu/NAME.php"] if others else []
    return "; ".join([*known, *pages])


def _codes(pairs: list[Pair]) -> list[str]:
    """Return the languages of pairs beside English."""
    return list(dict.fromkeys(code for pair in pairs for code in pair if code != PIVOT))


def _entry(picks: list[Pick], divided: bool) -> str:
    """Return the entry of a corpus for the pairs that it was picked for."""
    offer = picks[0].offer
    part = ", part: train" if divided else ""
    caps = {_name(pick.pair): _cap(pick) for pick in picks if pick.capped}
    capped = f", max_pairs: {_flow(caps)}" if caps else ""
    used = sum(pick.most for pick in picks)
    megabytes = sum(pick.offer.kilobytes for pick in picks) / 1000
    about = f"# {offer.noise}: {used:,} pairs, {megabytes:,.1f} MB"
    named = _named([pick.pair for pick in picks])
    return f"  - {{name: {offer.corpus}, version: {offer.version}{part}, {named}{capped}}} {about}"


def _named(pairs: list[Pair]) -> str:
    """Return the key that names pairs: their languages, or the pairs where none is English."""
    if all(PIVOT in pair for pair in pairs):
        return f"languages: [{', '.join(_codes(pairs))}]"
    return f"pairs: [{', '.join('-'.join(sorted(pair)) for pair in pairs)}]"


def _name(pair: Pair) -> str:
    """Return the name of a pair in `max_pairs`: the language beside English."""
    return next(code for code in pair if code != PIVOT) if PIVOT in pair else "-".join(sorted(pair))


def _cap(pick: Pick) -> str:
    """Return the cap of each of a pair's files."""
    return str(pick.most // len(pick.offer.files))


def _validation(picks: list[Pick], pairs: list[Pair]) -> str:
    offer = picks[0].offer
    return (
        f"  - {{name: {offer.corpus}, version: {offer.version}, part: validation, {_named(pairs)}}}"
    )
