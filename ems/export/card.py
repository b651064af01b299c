"""The card of an exported model: README.md with the front matter of the Hugging Face hub.

It says what the run has kept: languages, corpora with their counts and licences, evaluation
sentences removed, scores with intervals beside those that the papers print, the cost of training,
how to load the folder, and its limits.
"""

import math
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ems.base.errors import EmsError
from ems.base.files import read_json
from ems.base.shapes import AMOUNT, record
from ems.bench.scores import ScoreFile, read_score_file
from ems.config.experiment import MULTIWAY
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark, has, module
from ems.corpora.catalogue import licence_of, versions_of
from ems.export.code import FILES
from ems.export.folder import Exported
from ems.export.segmenters import Loss
from ems.tables.corpora import EVALUATION, PART, TRAIN, read_report
from ems.tables.engine import Declaration, write_systems

COSTS = record({"seconds": AMOUNT, "cpu_seconds": AMOUNT, "max_rss_mb": AMOUNT})
NORMAL = 1.96  # standard deviations of a 95 % interval
UNKNOWN = "the user's own"
CODE = f"""\
sentence-transformers has no module for n-grams. With `trust_remote_code=True` it runs \
{", ".join(f"`{Path(name).name}`" for name in FILES)} of this folder. They look up the letters of \
each piece, hash neighbouring ones, and average rows of two tables. They read `tokenizer.json` and \
`model.safetensors`, write nothing unless the model is saved, and need torch, tokenizers and \
sentence-transformers 6 or later. onnxruntime and ems do not run them.
"""


@dataclass(frozen=True)
class Kept:
    """The files that a run kept of a system; each may be missing."""

    report: Path | None = None
    scores: list[Path] = field(default_factory=list)
    costs: Path | None = None

    @classmethod
    def beside(cls, model: Path) -> "Kept":
        """Return the files of the run whose folder `models` holds the model folder."""
        run, name = model.resolve().parent.parent, model.resolve().name
        report, costs = run / "reports/decontamination.json", run / f"costs/train/{name}.json"
        return cls(
            report if report.is_file() else None,
            sorted((run / "scores" / name).glob("*.json")),
            costs if costs.is_file() else None,
        )


def card(exported: Exported, figures: dict[str, Any], kept: Kept, loss: Loss | None) -> str:
    """Return README.md. Raises `Damaged` for a malformed file of the run."""
    parts = [
        _front_matter(exported),
        _opening(exported),
        _loading(exported),
        _limits(exported, loss),
        _checked(figures),
        _scores(kept.scores),
        _training(exported, kept),
    ]
    return "\n".join(part for part in parts if part)


def _languages(exported: Exported) -> list[str]:
    codes = exported.description.get("languages") or list(exported.description["segmenters"])
    return [code for code in codes if code != UNSEEN]


def _name(exported: Exported) -> str:
    parts = (exported.description.get("experiment", ""), exported.description.get("name", ""))
    return "-".join(part for part in parts if part) or exported.model.resolve().name


def _front_matter(exported: Exported) -> str:
    matter = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "language": _languages(exported),
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "ems"],
    }
    text = yaml.safe_dump(matter, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n"


def _opening(exported: Exported) -> str:
    settings, languages = exported.ours.encoder.settings, _languages(exported)
    pieces = exported.ours.vocabulary.get_piece_size()
    body = f"Transformer layers: {settings.layers}, of width {settings.width}"
    if exported.static or exported.ngrams:
        megabytes = 4e-6 * (pieces + exported.ngrams) * exported.dimensions
        ngrams = f" and {exported.ngrams:,} of hashed n-grams of romanised letters"
        body = (
            f"a table of one vector per piece{ngrams if exported.ngrams else ''}, without a matrix "
            f"product: {megabytes:,.1f} MB"
        )
    return (
        f"# {_name(exported)}\n\n"
        f"A sentence encoder for {len(languages)} languages, trained by EMS from parallel text. "
        "Sentences that mean the same are near to each other, in whatever language.\n\n"
        f"- {body}, {pieces:,} pieces, at most {settings.max_tokens} tokens\n"
        f"- {exported.dimensions} numbers per sentence, of length 1: compare by cosine\n"
        f"- languages: {', '.join(languages)}\n"
        f"- identity of the training: `{exported.description.get('identity', 'unknown')}`\n"
    )


def _loading(exported: Exported) -> str:
    trusted = ", trust_remote_code=True" if exported.ngrams else ""
    blocks = {
        "sentence-transformers": (
            "from sentence_transformers import SentenceTransformer\n\n"
            f'model = SentenceTransformer("path/of/this/folder"{trusted})\n'
            'vectors = model.encode(["Hello", "Hallo"])\n'
            "print(model.similarity(vectors, vectors))"
        ),
        "ems": (
            "from ems import Encoder\n\n"
            'encoder = Encoder("path/of/this/folder")\n'
            'vectors = encoder.encode(["Hello", "Hallo"], normalise=True)'
        ),
    }
    if exported.options.onnx or exported.options.int8:
        place = "0_StaticEmbedding/tokenizer.json" if exported.static else "tokenizer.json"
        blocks["onnxruntime"] = (
            "import numpy as np, onnxruntime, tokenizers\n\n"
            f'ids = tokenizers.Tokenizer.from_file("{place}").encode("Hello").ids\n'
            'session = onnxruntime.InferenceSession("onnx/model.onnx")\n'
            'mask = np.ones((1, len(ids)), "int64")\n'
            'given = {"input_ids": np.array([ids]), "attention_mask": mask}\n'
            '(vector,) = session.run(["sentence_embedding"], given)'
        )
    parts = [f"With {name}:\n\n```python\n{code}\n```\n" for name, code in blocks.items()]
    return "\n".join(["## Use\n", *parts, *([CODE] if exported.ngrams else [])])


def _limits(exported: Exported, loss: Loss | None) -> str:
    settings = exported.ours.encoder.settings
    limits = [
        "A text without any token (empty, or only spaces) is all zeros here; ems gives the vector "
        "of one unknown piece.",
        "Half-width kana with a sound mark, and full-width letters or circled digits with a "
        "combining mark, may get other token ids than in ems.",
        f"What follows token {settings.max_tokens} of a text is not seen.",
    ]
    if settings.activation == "silu" and settings.layers:
        limits.append(
            "text-embeddings-inference on CUDA does not compute SiLU in its fused layers, so its "
            "vectors would be wrong; its CPU and ONNX backends are right. Train with "
            "`model.activation: gelu` for it."
        )
    if settings.pooling == "mean-max":
        limits.append(
            "Servers that know a single kind of pooling cannot serve mean and maximum together; "
            "the ONNX graph has both inside."
        )
    if settings.positions == "none" or not settings.attends:
        limits.append("The order of words is not seen.")
    text = "".join(f"- {limit}\n" for limit in limits)
    return f"## Limits\n\n{text}{_lost(loss) if loss else ''}"


def _lost(loss: Loss) -> str:
    """Return what the model loses without the segmenters that it was trained with."""
    rows = [
        f"| {code.replace(UNSEEN, 'unseen')} | {with_:.1f} | {without:.1f} "
        f"| {without - with_:+.1f} |\n"
        for code, (with_, without) in loss.values.items()
    ]
    return (
        "\nThis model was trained on words of segmenters that are not in this folder. "
        f"P@1 on {benchmark(loss.benchmark).title}, the mean of both directions, measured at "
        "export:\n\n"
        "| language | with its segmenter | this folder | loss |\n| --- | ---: | ---: | ---: |\n"
        + "".join(rows)
    )


def _checked(figures: dict[str, Any]) -> str:
    """Return the figures of the check of this folder."""
    rows = [
        f"| {name} | {of['least_cosine']:.7f} | {of['mean_cosine']:.7f} | "
        f"{of['largest_difference']:.1e} |\n"
        for name, of in figures.items()
        if isinstance(of, dict)
    ]
    return (
        "## Checked at export\n\n"
        f"In a process of its own, on {figures['lines']:,} lines: the token ids of "
        f"{figures['ids_differ']:,} lines differ from those of ems. Cosine with the vectors of "
        "ems, and the largest difference of a number:\n\n"
        "| weights | least cosine | mean cosine | largest difference |\n"
        "| --- | ---: | ---: | ---: |\n" + "".join(rows)
    )


# --- scores


def _scores(paths: Iterable[Path]) -> str:
    """Return the means with their intervals, and the tables of the benchmarks."""
    rows, tables = [], []
    for path in paths:
        scores = read_score_file(path)
        title = benchmark(scores.benchmark).title
        for group, value in scores.means():
            spread = half_interval(scores) if not group else None
            shown = f" ± {spread:.1f}" if spread is not None else ""
            label = f"{title}, {group}" if group else title
            rows.append(f"| {label} | {scores.metric} | {value:.1f}{shown} | {scores.version} |\n")
        tables += _tables(path, scores.benchmark)
    if not rows:
        return ""
    return (
        "## Scores\n\n"
        "Means over languages; ± is half of a 95 % interval over the sentences.\n\n"
        "| benchmark | measure | score | data |\n| --- | --- | ---: | --- |\n"
        + "".join(rows)
        + "".join(f"\n{table}" for table in tables)
    )


def half_interval(scores: ScoreFile) -> float | None:
    """Return half of the 95 % interval of the mean over labels, in percent (the normal
    approximation); None where a row has no hits of its sentences.
    """
    gains = []
    for ways in scores.labelled().values():
        if not all(row.hits for row in ways.values()):
            return None
        bits = [row.bits() for row in ways.values()]
        if len({len(each) for each in bits}) > 1:
            return None
        gains.append(np.mean(bits, axis=0))
    if not gains:
        return None
    if scores.parallel and len({len(each) for each in gains}) == 1:
        gains = [np.mean(gains, axis=0)]  # the same sentences in all languages
    variance = sum(each.var() / len(each) for each in gains) / len(gains) ** 2
    return 100 * NORMAL * math.sqrt(variance)


def _tables(path: Path, name: str) -> list[str]:
    """Return the Markdown of a benchmark's tables, with all rows that papers print for them."""
    made = []
    declared = module(name, "table").TABLES if has(name, "table") else {}
    for table in declared.values():
        if not isinstance(table, Declaration):
            continue
        printed = list(table.printed.models()) if table.printed else []
        with tempfile.TemporaryDirectory(prefix="ems-card-") as folder:
            out = Path(folder) / "table.tex"
            try:
                write_systems(table, [path], out, printed)
            except EmsError:  # a table of scores that this system does not have
                continue
            text = out.with_suffix(".md").read_text(encoding="utf-8")
        made.append(f"### {benchmark(name).title}\n\n{text}")
    return made


# --- training


def _training(exported: Exported, kept: Kept) -> str:
    parts = ["## Training\n"]
    if kept.report:
        parts.append(_corpora(exported, kept.report))
    if kept.costs:
        costs = read_json(kept.costs, COSTS)
        parts.append(
            f"Cost of the training: {costs['seconds'] / 60:,.1f} minutes, "
            f"{costs['cpu_seconds'] / 60:,.1f} minutes of CPU, {costs['max_rss_mb']:,.0f} MB.\n"
        )
    return "\n".join(parts) if len(parts) > 1 else ""


def _corpora(exported: Exported, path: Path) -> str:
    """Return the corpora with their counts and licences, and what decontamination removed."""
    report, known = read_report(path), set(_languages(exported))
    rows, removed = [], 0
    for corpus, role, entries in report.by_corpus():
        own = [entry for entry in entries if set(entry.sides) <= known]
        if role != TRAIN or not own:
            continue
        read, left = sum(entry.read for entry in own), sum(entry.kept for entry in own)
        removed += sum(entry.removed.get(EVALUATION, 0) for entry in own)
        rows.append(f"| {corpus} | {read:,} | {left:,} | {_licence(corpus)} |\n")
    if not rows:
        return ""
    against = ", ".join(report.against) or "none"
    return (
        "| corpus | sentence pairs | trained on | licence |\n| --- | ---: | ---: | --- |\n"
        + "".join(rows)
        + f"\n{removed:,} pairs were removed because they hold a sentence of an evaluation set "
        f"({against}).\n"
    )


def _licence(corpus: str) -> str:
    """Return the licence of a corpus by the catalogue."""
    name = corpus.partition(" ")[0].partition(PART)[0]
    if name == MULTIWAY:
        return "those of the others, whose sentences these are"
    return licence_of(name) if versions_of(name) else UNKNOWN
