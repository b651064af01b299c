"""The model card of an export, README.md: values for card.md.jinja from the files of the run."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import fmean

from ems.base.files import read_json
from ems.base.records import Json
from ems.base.templates import rendered
from ems.bench.scores import ScoreFile, read_score_file
from ems.bench.significance import half_interval
from ems.config.experiment import MULTIWAY
from ems.config.languages import UNSEEN, language_names
from ems.config.plugins import benchmark
from ems.corpora.catalogue import licence_named, licence_of, versions_of
from ems.export.folder import NGRAM_CODE, Exported
from ems.export.tokenizer import Loss
from ems.export.verify import Figures
from ems.tables.corpora import EVALUATION, PART, TRAIN, read_report
from ems.tables.logs import JobCost
from ems.tables.printed import tatoeba_codes

BY_LANGUAGE = ("tatoeba", "flores200", "ntrex", "wmt24pp")  # columns of the table of languages
JOINED = "as the other corpora, whose sentences it joins"


def card(exported: Exported, loss: Loss | None, figures: Figures) -> str:
    """Render README.md from the files of the run that exist. Raises `Damaged` for bad ones."""
    from huggingface_hub import ModelCardData

    model = exported.model.resolve()
    run, about = model.parent.parent, exported.description
    costs = run / f"costs/train/{model.name}.json"
    languages = [code for code in about.languages or about.segmenters if code != UNSEEN]
    pieces = exported.ours.vocabulary.get_piece_size()
    paths = sorted((run / "scores" / model.name).glob("*.json"))
    scores = {each.benchmark: each for each in map(read_score_file, paths)}
    training = _corpora(run / "reports/decontamination.json", set(languages))
    corpora = training["corpora"]
    library = [] if exported.quantised else ["sentence-transformers"]
    front_matter = ModelCardData(
        language=languages,
        license=licence_from({row["licence"] for row in corpora}),
        library_name=next(iter(library), None),
        pipeline_tag="sentence-similarity",
        tags=[*library, "sentence-similarity", "feature-extraction", "ems"],
        datasets=list(dict.fromkeys(re.split("[ +]", row["name"])[0] for row in corpora)) or None,
    )
    size = (pieces + exported.ngrams) * exported.dimensions * (1 if exported.quantised else 4)
    return rendered(
        Path(__file__).with_name("card.md.jinja"),
        front_matter=front_matter.to_yaml(),
        name="-".join(filter(None, (about.experiment, about.name))) or model.name,
        languages=languages,
        exported=exported,
        pieces=pieces,
        megabytes=1e-6 * size,
        code=[Path(name).name for name in NGRAM_CODE],
        loss=loss,
        unseen=UNSEEN,
        figures=figures,
        scores=scores,
        benchmark=benchmark,
        half_interval=half_interval,
        ems_languages=tatoeba_codes(),
        **_by_language(scores),
        **training,
        costs=read_json(costs, JobCost) if costs.is_file() else None,
    )


def _by_language(scores: Mapping[str, ScoreFile]) -> Json:
    """Return `columns`, title -> language -> P@1 with English in percent, the mean of both
    directions; `order`, language -> its name, from the one most below the means of its columns.
    """
    columns: dict[str, dict[str, float]] = {}
    for name in filter(scores.get, BY_LANGUAGE):
        file, values = scores[name], defaultdict(list)
        for row in file.rows:
            sides = {row.source, row.target} - file.english
            if len(sides) == 1 and not row.measure:
                values[file.languages[sides.pop()]].append(row.value)
        values.pop(UNSEEN, None)
        columns[benchmark(name).title] = {code: fmean(each) for code, each in values.items()}
    gaps = defaultdict(list)
    for column in columns.values():
        for code, value in column.items():
            gaps[code].append(value - fmean(column.values()))
    order = sorted(gaps, key=lambda code: fmean(gaps[code]))
    return {"columns": columns, "order": {c: f"{language_names().get(c, c)} ({c})" for c in order}}


def _corpora(path: Path, languages: set[str]) -> Json:
    """Return the values of the card about training text: `corpora`, names, counts and licences;
    `removed`, pairs with evaluation sentences; `against`, names of the evaluation sets.
    """
    rows, removed = [], 0
    report = read_report(path) if path.is_file() else None
    for corpus, role, entries in report.by_corpus() if report else ():
        own = [entry for entry in entries if set(entry.sides) <= languages]
        if role != TRAIN or not own:
            continue
        name = corpus.partition(" ")[0].partition(PART)[0]
        if name == MULTIWAY:
            licence = JOINED
        else:
            licence = licence_of(name) if versions_of(name) else "the user's own"
        counts = {key: sum(getattr(entry, key) for entry in own) for key in ("read", "kept")}
        removed += sum(entry.removed.get(EVALUATION, 0) for entry in own)
        rows.append({"name": corpus, "licence": licence, **counts})
    against = ", ".join(report.against) or "none" if report else ""
    return {"corpora": rows, "removed": removed, "against": against}


def licence_from(named: Collection[str]) -> str | None:
    """Return the hub's name of a licence that fits all corpora (share-alike wins); None if there is
    no corpus, or one whose licence is unknown or forbids commercial use.
    """
    known = [licence_named(name) for name in {*named} - {JOINED}]
    if not known or any(licence.commercial != "yes" for licence in known):
        return None
    shared = any(licence.share_alike == "yes" for licence in known)
    return "cc-by-sa-4.0" if shared else "cc-by-4.0"
