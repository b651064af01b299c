"""How much an experiment fetches and keeps on disk, by the sizes of its zips and its settings."""

from dataclasses import dataclass
from pathlib import Path

from ems.config.plugins import sets_of
from ems.config.site import Site
from ems.corpora.catalogue import PairSize
from ems.corpora.locations import is_remote
from ems.workflow.forecast.work import SENTENCES, Workload

# measured on small62 and swahili (docs/log.md): bytes of text per byte of its zip, and of two
# token ids per byte of text; a line of the vocabulary's sample
UNZIPPED, TOKENISED, LINE = 2.85, 0.65, 80
FLOAT, ADAM = 4, 3  # bytes of a weight; a checkpoint has the weights and two moments of each
NGRAM_WIDTH = 8192  # of a vector of n-grams, the default


@dataclass(frozen=True)
class Space:
    """Bytes of one kind of files: estimated, and what is there (None: nothing is)."""

    what: str
    estimate: float
    measured: int | None


def space(workload: Workload, site: Site) -> tuple[list[Space], float]:
    """Return the space of each kind of files, and the bytes that come over the network."""
    experiment, results = workload.experiment, Path("results", workload.experiment.name)
    zips = {name: _zip_bytes(workload, size) for name, size in workload.sizes.items()}
    fetched = sum(
        zips[name]
        for name, size in workload.sizes.items()
        if is_remote(size.corpus.source) and not size.shared
    )
    text = 0.0
    for name, (read, used) in workload.counts.items():
        whole = _zip_bytes(workload, workload.sizes[name], shared=True)
        text += UNZIPPED * whole * used / max(read, 1)
    trained = [n for n in experiment.tabled if experiment.systems[n].trained]
    weights = [_weights(workload, name) for name in trained]
    lines = sum(
        min(own.settings.sample_lines, 2 * workload.pairs(experiment.pairs_of("train", name)))
        for name, own in experiment.vocabularies.items()
    )
    kinds = [
        ("downloads", sum(zips.values()), _downloaded(workload)),
        ("text", 2 * text, _present(results / "text")),
        ("vocabulary", LINE * lines, _present(results / "vocab")),
        ("shards", TOKENISED * text, _present(results / "shards")),
        ("models", sum(weights), _present(results / "models")),
        ("embeddings", _embeddings(workload, site), _present(results / "embeddings")),
        # of one training at a time
        (
            "checkpoints",
            ADAM * max(weights, default=0),
            _present(results / "state"),
        ),
    ]
    return [Space(*kind) for kind in kinds], fetched


def _zip_bytes(workload: Workload, size: PairSize, shared: bool = False) -> float:
    """Return the bytes of a pair's zips; 0 of one that counts for another part of its corpus."""
    if size.shared and not shared:
        return 0
    if size.kilobytes and not size.shared:
        return 1000 * size.kilobytes
    paths = [workload.zip_of(size.corpus, file) for file in size.corpus.files(size.pair)]
    return sum(path.stat().st_size for path in paths if path)


def _downloaded(workload: Workload) -> int | None:
    found = set()
    for size in workload.sizes.values():
        for file in size.corpus.files(size.pair):
            path = workload.zip_of(size.corpus, file)
            if path and path.is_relative_to(workload.data / "opus"):
                found.add(path)
    return sum(path.stat().st_size for path in found) or None


def _weights(workload: Workload, name: str) -> float:
    return FLOAT * 1e6 * workload.learning(workload.experiment.systems[name]).parameters


def _embeddings(workload: Workload, site: Site) -> float:
    """Return what benchmarks keep of all systems that they encode, up to the site's limit."""
    experiment, total = workload.experiment, 0.0
    sets = {name for each in experiment.benchmarks for name in sets_of(each)}
    sentences = sum(SENTENCES * len(experiment.evalsets[name].languages) for name in sets)
    for name in experiment.tabled:
        system = experiment.systems[name]
        width = system.model.pooled_width if system.trained or system.of else 0
        total += FLOAT * sentences * (width + (NGRAM_WIDTH if system.of else 0))
    return min(total, 1e6 * site.embeddings_mb)


def _present(folder: Path) -> int | None:
    """Return the bytes of the files in a folder; None if there are none."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) or None
