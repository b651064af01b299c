"""`ems fit`: the model folder of a system of n-grams (`kind: char-ngram` or `fused`). Weights of
n-grams are counted in the vocabulary's sample, before segmentation, and a grid search on validation
pairs, by P@1, weighs n-grams against embeddings.
"""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from ems.base.errors import Damaged, EmsError
from ems.base.files import NGRAMS, atomic_path, sha256_file, write_json
from ems.base.progress import Progress
from ems.base.records import Json
from ems.base.schema import plain
from ems.config.experiment import Experiment
from ems.config.model import NgramSettings
from ems.config.stages import stage_settings
from ems.config.systems import SystemSettings
from ems.model.char_ngrams import PLACES, NgramEncoder, count_idf, weights_of
from ems.model.devices import save_tensors
from ems.model.folder import DESCRIPTION
from ems.model.lines import Tokeniser, unit_rows
from ems.model.static import load_encoder
from ems.text.subwords import draw_sample
from ems.text.tsv import codes_of, read_tsv

PAIRS = 1000  # read of each file, as many as in validation
WEIGHTS_TRIED = (0.0, *(round(2 ** (k / 2), 3) for k in range(-4, 9)))  # up to 16
POWERS_TRIED = tuple(k / 4 for k in range(9))  # up to 2
Weighting = tuple[float, float]  # weight and power


def fit(
    experiment: Experiment,
    name: str,
    out: Path,
    text: Sequence[Path] = (),
    pairs: Sequence[Path] = (),
    model: Path | None = None,
) -> Json:
    """Write the model folder of system `name` and return its description. `text`: clean text of
    training; `pairs`: clean text of validation; `model`: folder of the trained encoder of a fused
    system. Raises `EmsError` for a system that needs no fitting, and for a missing or empty input.
    """
    system = experiment.systems[name]
    if not system.fitted:
        raise EmsError(f"systems.{name}: nothing to fit for kind {system.kind} with these settings")
    needed = [
        ("--text", system.ngrams.idf, text),
        ("--pairs", system.base_system and system.ngrams.searched, pairs),
        ("--model", system.base_system, model),
    ]
    if missing := [flag for flag, needs, value in needed if needs and not value]:
        raise EmsError(f"systems.{name}: expected {' and '.join(missing)}, found nothing")
    weights, lines = np.ones(PLACES, np.float32), 0
    if system.ngrams.idf:
        own = experiment.of_vocabulary(system.vocabulary)
        _, sample = draw_sample(own, text, f"fit {name}: count n-grams")
        weights, lines = count_idf((line for _, line in sample), system.ngrams)
    with atomic_path(out / NGRAMS) as temporary:
        save_tensors({"weights": torch.from_numpy(weights)}, temporary)
    about = {
        "kind": system.kind,
        "experiment": experiment.name,
        "name": name,
        "fit": stage_settings(experiment, "fit", system=name),
        "languages": list(system.languages),
        "ngrams": plain(system.ngrams),
        "lines": lines,
        "sha256": {NGRAMS: sha256_file(out / NGRAMS)},
    }
    if system.base_system:
        about |= _weighed(name, system, NgramEncoder(system.ngrams, weights), pairs, model)
        folder = os.path.relpath(model, out)
        about["of"] = {"model": folder, "sha256": sha256_file(model / DESCRIPTION)}
    write_json(out / DESCRIPTION, about)
    return about


def _weighed(
    name: str, system: SystemSettings, ngrams: NgramEncoder, files: Sequence[Path], model: Path
) -> dict[str, Json]:
    """Return `weight` and `power` of a fused system, and `grid`, the P@1 of each point tried."""
    settings = system.ngrams
    if not settings.searched:
        return {"weight": settings.weight, "power": settings.power, "grid": []}
    torch.set_num_threads(system.train.threads)
    trained = load_encoder(model, system.train.device)
    points = grid(settings)
    scores: dict[Path, list[np.ndarray]] = {}
    progress = Progress(f"fit {name}: validation", len(files), "files of pairs")
    for path in files:
        scores.setdefault(path.parent, []).append(_p1(path, points, trained, ngrams))
        progress.add()
    means = np.mean([np.mean(corpus, axis=0) for corpus in scores.values()], axis=0)
    best = int(means.argmax())
    tried = [
        {"weight": weight, "power": power, "p1": round(float(p1), 3)}
        for (weight, power), p1 in zip(points, means, strict=True)
    ]
    progress.close(f"the best of {len(points)} points: {tried[best]}")
    weight, power = points[best]
    return {"weight": weight, "power": power, "grid": tried}


def grid(settings: NgramSettings) -> list[Weighting]:
    """Return the points to try within the settings; weight 0 needs only one power."""
    weights = WEIGHTS_TRIED if settings.weight is None else (settings.weight,)
    powers = POWERS_TRIED if settings.power is None else (settings.power,)
    return [(weight, power) for weight in weights for power in (powers if weight else powers[:1])]


def _p1(path: Path, points: list[Weighting], base: Tokeniser, ngrams: NgramEncoder) -> np.ndarray:
    """Return P@1 (%) of each point on a file's first pairs, mean of both directions, [points]."""
    pairs = list(islice(read_tsv(path), PAIRS))
    if not pairs:
        raise Damaged(path, "expected pairs of sentences, found none")
    first, second, _ = map(list, zip(*pairs, strict=True))
    embeddings, vectors, counts = [], [], []  # of each side: [N, d], [N, buckets], [N]
    for lines, language in zip((first, second), codes_of(path), strict=True):
        own_vectors, own_counts = ngrams.vectors(lines)
        embeddings.append(unit_rows(base.encode(lines, language, what="")))
        vectors.append(unit_rows(own_vectors.toarray()))
        counts.append(own_counts)
    cosines, ngram_cosines = (one @ other.T for one, other in (embeddings, vectors))  # (N, N) each
    own, scores = np.arange(len(cosines)), []
    for point in points:
        one, other = (weights_of(count, *point) for count in counts)
        products = cosines + np.outer(one, other) * ngram_cosines
        there = (products / np.sqrt(1 + other**2)).argmax(axis=1)
        back = (products / np.sqrt(1 + one**2)[:, None]).argmax(axis=0)
        scores.append(50 * (np.mean(there == own) + np.mean(back == own)))
    return np.array(scores)
