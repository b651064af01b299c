"""Which languages of a model have a segmenter that no tokenizer.json can say, and what that costs.

The cost is measured: P@1 of the model, and of the same model without those segmenters, on the first
benchmark of its experiment that searches a translation among the others.
"""

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ems.base.errors import EmsError
from ems.base.files import VOCABULARY, write_json
from ems.bench.evaluate import Given, evaluate_by_hand
from ems.bench.scores import ENGLISH, read_score_file
from ems.config.experiment import Experiment
from ems.config.languages import UNSEEN
from ems.config.plugins import benchmark
from ems.export.tokenizer import EXPORTED
from ems.text.subwords import by_characters, load_vocabulary

CHARACTERS = "single characters"  # a language whose pieces these are (vocabulary.characters)


@dataclass(frozen=True)
class Loss:
    """What a model loses without its segmenters: benchmark, and language -> P@1 with, without."""

    benchmark: str
    values: dict[str, tuple[float, float]]


def chosen(tools: dict[str, str]) -> str:
    """Return the segmenter that the export has: the one of most languages, or else `unicode`."""
    counts = Counter(tools[code] for code in tools if code != UNSEEN and tools[code] in EXPORTED)
    return counts.most_common(1)[0][0] if counts else "unicode"


def lost(model: Path, tools: dict[str, str], segmenter: str) -> dict[str, list[str]]:
    """Return tool -> the languages that the export would cut into other pieces."""
    vocabulary = load_vocabulary(model / VOCABULARY)
    languages: dict[str, list[str]] = {}
    for language, tool in sorted(tools.items()):
        tool = CHARACTERS if by_characters(vocabulary, language) else tool
        if tool != segmenter and language != UNSEEN:
            languages.setdefault(tool, []).append(language)
    return languages


def refusal(model: Path, losses: dict[str, list[str]]) -> EmsError:
    """Return the error that names the tools and their languages."""
    named = "; ".join(f"{tool}: {', '.join(languages)}" for tool, languages in losses.items())
    return EmsError(
        f"{model}: no tokenizer.json can do what these segmenters do: {named}. Train with "
        "`segmenters: {default: unicode}` (or none), or say --without-segmenters: its folder has "
        "the loss of P@1 on its card"
    )


def measured(
    model: Path, description: dict[str, Any], segmenter: str, experiment: Experiment, data: Path
) -> Loss:
    """Return P@1 of a model with its segmenters and with `segmenter` alone.

    Raises `EmsError` if the experiment has no such benchmark, or its data are not there.
    """
    name = _benchmark(experiment)
    with tempfile.TemporaryDirectory(prefix="ems-export-") as folder:
        bare = _without(model, description, segmenter, Path(folder) / "model")
        values = [_values(experiment, each, name, data, Path(folder)) for each in (model, bare)]
    return Loss(name, {code: (values[0][code], values[1][code]) for code in values[0]})


def _benchmark(experiment: Experiment) -> str:
    for name in experiment.benchmarks:
        record = benchmark(name)
        if record.family == "retrieval" and not record.drawn:
            return name
    raise EmsError(
        f"--without-segmenters: experiment {experiment.name} has no benchmark of translations to "
        "measure the loss on; name another --experiment"
    )


def _without(model: Path, description: dict[str, Any], segmenter: str, folder: Path) -> Path:
    """Write a model folder with links to the model's files, and with one segmenter."""
    folder.mkdir()
    for name in description["sha256"]:
        (folder / name).symlink_to((model / name).resolve())
    tools = dict.fromkeys(description["segmenters"], segmenter)
    write_json(folder / "model.json", {**description, "segmenters": tools})
    return folder


def _values(
    experiment: Experiment, model: Path, name: str, data: Path, out: Path
) -> dict[str, float]:
    """Return P@1 of each language of the model, the mean of both directions."""
    evaluate_by_hand(experiment, Given([name], data, str(model), name="exported"), out)
    scores = read_score_file(out / f"{name}.json", name, "P@1")
    return {
        scores.languages[label]: sum(row.value for row in ways.values()) / len(ways)
        for label, ways in scores.labelled().items()
        if scores.languages.get(label, ENGLISH) != ENGLISH
    }
