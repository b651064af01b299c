"""Work and bytes of each job of an experiment, estimated before anything is fetched.

A job is named by the path of its costs, as in `ems.workflow.plan.has_job`. Its work is a number of
units of rates.tsv: sentence pairs, lines of a segmenter, 10^12 operations of a training. Counts of
sentence pairs come from OPUS's table, or from the first megabyte of a zip on this machine.
"""

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ems.config.experiment import EMBEDDED, MULTIWAY, Corpus, Experiment
from ems.config.plugins import benchmark, sets_of
from ems.config.systems import WITH_NGRAMS, SystemSettings
from ems.corpora.catalogue import PairSize, pair_sizes
from ems.corpora.locations import is_remote, local_path, opus_location

TOKENS = 20  # per sentence: 20.3 in small62 with 32,000 pieces, 20.2 in the demo
SET_SENTENCES = 1000  # per language of a set: Tatoeba has at most 1,000, FLORES-200 1,012
EMBEDDED_SHARE = 0.2  # the demo's sets have a few hundred sentences
FORWARD = 3  # a step of training costs three forward passes
ZIP_SAMPLE = 1 << 20  # bytes
# measured on small62 and swahili (docs/log.md): bytes of text per byte of its zip, and of two
# token ids per byte of text; a line of the vocabulary's sample
UNZIPPED, TOKENISED, LINE = 2.85, 0.65, 80
WEIGHT_BYTES, ADAM = 4, 3  # bytes of a weight; a checkpoint has the weights and two moments of each
NGRAM_WIDTH = 8192  # of a vector of n-grams, the default
Units = dict[str, float]


@dataclass(frozen=True)
class Learning:
    """The work of a training step: `teraflops` of matrix products, `gathered` vectors of 1,000
    numbers from tables of pieces and n-grams, and trained `parameters` in millions.
    """

    teraflops: float
    gathered: float
    parameters: float
    half: bool


@dataclass
class Workload:
    """The work of every job of an experiment; `data` is the folder of downloads."""

    experiment: Experiment
    data: Path
    unknown: set[str] = field(default_factory=set)  # corpora of unknown size
    steps: dict[str, Learning] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> dict[str, PairSize]:
        """The language pairs of all corpora by their names in paths."""
        sizes = pair_sizes(self.experiment)
        return {f"{size.corpus.label}-{size.corpus.version}-{size.pair}": size for size in sizes}

    @cached_property
    def counts(self) -> dict[str, tuple[float, float]]:
        """Sentence pairs read and sentence pairs used (under the cap), by the same names."""
        return {name: self._counts(size) for name, size in self.sizes.items()}

    @cached_property
    def held(self) -> float:
        """Thousands of evaluation sentences, which each cleaning job loads."""
        sets = [self.experiment.evalsets[name] for name in self.experiment.decontaminate.against]
        return sum(len(item.languages) * SET_SENTENCES / 1000 for item in sets)

    def units_of(self, job: tuple[str, ...]) -> tuple[str, Units]:
        match job:
            case ("text", "evalkeys"):
                return "evalkeys", {"thousand sentences": self.held}
            case ("text", "heldkeys"):
                return "evalkeys", {"pairs": self._total(self.experiment.validation)}
            case ("data", "fetch", name):
                return "fetch", {"files": sum(map(name.startswith, self._releases))}
            case ("text", "prepare", name):
                return "prepare", self._prepared(name)
            case ("text", "multiway"):
                return "multiway", {"pairs": self._total(self.experiment.corpora)}
            case ("text", "sample", name):
                return "sample", {"pairs": self._pairs(self.experiment.pairs_of("train", name))}
            case ("text", "vocabulary", name):
                return "vocabulary", {"lines": self._sampled(name)}
            case ("text", "shards", _, name):
                if name != MULTIWAY:
                    pairs = self._part(name)
                    return "shards", {"pairs": self._pairs(pairs), "language pairs": len(pairs)}
                most = self.experiment.multiway.most or 0  # further pairs of a sentence
                return "shards", {"pairs": most * self._total(self.experiment.corpora)}
            case ("train", name):
                system = self.experiment.systems[name]
                steps, step = system.train.steps, self.learning(system)
                units = {"teraflops": steps * step.teraflops}
                units["gathered"] = steps * step.gathered / 1e6
                units["updated"] = steps * step.parameters / 1e6
                return "train", units
            case ("fit", name):
                if self.experiment.systems[name].base_system:
                    return "fit", {"fused pairs": self._total(self.experiment.validation)}
                return "fit", {"pairs": self._total(self.experiment.corpora)}
            case ("bench", system, name):
                return "bench", self._scored(self.experiment.systems[system], name)
            case ("data", stage, *_) | (stage, *_):
                return stage, {}
        return "", {}

    def _part(self, name: str) -> list[tuple[Corpus, str]]:
        corpus, pairs = self.experiment.part_named(name)
        return [(corpus, pair) for pair in pairs]

    def _prepared(self, name: str) -> Units:
        """Count the pairs that are read, and the lines that each segmenter gets."""
        pairs = self._part(name)
        read = sum(self.counts[f"{c.label}-{c.version}-{pair}"][0] for c, pair in pairs)
        units = {"pairs": read, "language pairs": len(pairs), "thousand sentences": self.held}
        lines: Counter[str] = Counter()
        for corpus, pair in pairs:
            for code in pair.split("-"):
                lines[self.experiment.segmenters[code]] += self._pairs([(corpus, pair)])
        units |= {f"lines by {segmenter}": count for segmenter, count in lines.items()}
        return units | {f"start of {segmenter}": 1 for segmenter in lines}

    @cached_property
    def _releases(self) -> list[str]:
        """The beginning of the name of the job that fetches a file, for each file once."""
        corpora = [corpus for _, corpus in self.experiment.all_corpora()]
        files = {(each.name, each.version, file) for each in corpora for file in each.all_files}
        return [f"{name}-{version}-" for name, version, _ in sorted(files)]

    def learning(self, system: SystemSettings) -> Learning:
        """Return the work of a training step, counted on PyTorch's meta device."""
        import numpy as np

        from ems.train.measures import step_flops
        from ems.train.memory import without_memory

        key = repr((system.model, system.objectives, system.train.batch_pairs, system.vocabulary))
        if key not in self.steps:
            pieces = self.experiment.vocabularies[system.vocabulary].settings.size
            built = without_memory(system, len(system.languages), pieces)
            tokens = np.full(2 * system.train.batch_pairs, TOKENS)
            looked_up = (bool(system.model.table) + 4 * bool(system.model.ngrams)) * tokens.sum()
            self.steps[key] = Learning(
                step_flops(built, tokens) / 1e12,
                looked_up * system.model.table / 1000,
                sum(value.numel() for value in built.parameters()) / 1e6,
                system.train.precision != "float32",
            )
        return self.steps[key]

    def _scored(self, system: SystemSettings, name: str) -> Units:
        """Count the protocol of a benchmark and the encoding of its sentences."""
        record = benchmark(name)
        sets = [self.experiment.evalsets[each] for each in sets_of(name)]
        share = EMBEDDED_SHARE if any(each.embedded for each in sets) else 1
        languages = sum(len(each.languages) for each in sets)
        count: float = 1
        if record.family in ("retrieval", "mining") or record.between == "en":
            count = languages
        elif record.parallel and record.between == "":
            count = languages**2
        ngrams = " of n-grams" if system.kind in WITH_NGRAMS else ""
        if record.probe:  # the rates are for its defaults
            steps, usual = (
                each.seeds * len(each.weight_decay) * each.epochs / each.batch
                for each in (self.experiment.probes[name], record.probe())
            )
            count *= steps / usual
        units: Units = {f"{name}{ngrams}": share * count}
        if system.trained:
            step = self.learning(system)
            sentences = share * SET_SENTENCES * languages * (2 if record.between == "en" else 1)
            forward = step.teraflops / FORWARD / (2 * system.train.batch_pairs)
            units["teraflops"] = sentences * forward
        return units

    def _sampled(self, vocabulary: str) -> float:
        lines = 2 * self._pairs(self.experiment.pairs_of("train", vocabulary))
        return min(self.experiment.vocabularies[vocabulary].settings.sample_lines, lines)

    def _total(self, corpora: Iterable[Corpus]) -> float:
        return self._pairs([(corpus, pair) for corpus in corpora for pair in corpus.pairs])

    def _pairs(self, pairs: Iterable[tuple[Corpus, str]]) -> float:
        """Return the sentence pairs under the cap of some language pairs of corpora."""
        return sum(self.counts[f"{c.label}-{c.version}-{pair}"][1] for c, pair in pairs)

    def _counts(self, size: PairSize) -> tuple[float, float]:
        if size.lines is not None:
            return size.lines, size.used
        if size.at_most is not None:
            return size.at_most, size.at_most
        lines = [lines_of_zip(path) if path else None for path in self._zips(size)]
        if None in lines or size.corpus.documents or size.corpus.paths:
            self.unknown.add(f"{size.corpus.label}/{size.corpus.version}")
            return 0, 0
        cap = size.corpus.cap(size.pair)
        split = self.experiment.splits.get(size.corpus.name) if size.corpus.part else None
        share = split.parts.get(size.corpus.part, 1) if split and split.parts else 1
        return sum(lines), sum(n * share if cap is None else min(n * share, cap) for n in lines)

    def fetched(self) -> float:
        """Return the bytes downloaded from the network."""
        remote = [size for size in self.sizes.values() if is_remote(size.corpus.source)]
        return sum(self._zip_bytes(size) for size in remote if not size.shared)

    def on_disk(self, embeddings_mb: int) -> float:
        """Return the bytes of downloads and results, with the checkpoints of one training."""
        experiment, text = self.experiment, 0.0
        for name, (read, used) in self.counts.items():
            text += UNZIPPED * self._zip_bytes(self.sizes[name]) * used / max(read, 1)
        zips = sum(self._zip_bytes(size) for size in self.sizes.values() if not size.shared)
        samples = LINE * sum(map(self._sampled, experiment.vocabularies))
        systems = [experiment.systems[name] for name in experiment.tabled]
        trained = [self.learning(system).parameters for system in systems if system.trained]
        models = WEIGHT_BYTES * 1e6 * (sum(trained) + ADAM * max(trained, default=0))
        sets = {name for each in experiment.benchmarks for name in sets_of(each)}
        sentences = SET_SENTENCES * sum(len(experiment.evalsets[name].languages) for name in sets)
        encoders = [system for system in systems if system.trained or system.base_system]
        width = sum(system.model.pooled_width for system in encoders)
        width += NGRAM_WIDTH * sum(bool(system.base_system) for system in systems)
        embeddings = min(WEIGHT_BYTES * sentences * width, 1e6 * embeddings_mb)
        return zips + (2 + TOKENISED) * text + samples + models + embeddings

    def _zip_bytes(self, size: PairSize) -> float:
        """Return the bytes of the zips of a language pair, which parts of a corpus share."""
        if size.kilobytes and not size.shared:
            return 1000 * size.kilobytes
        return sum(path.stat().st_size for path in self._zips(size) if path)

    def _zips(self, size: PairSize) -> Iterator[Path | None]:
        """Yield the local path of each zip, fetched or at its source; None if it has none."""
        corpus = size.corpus
        for file in corpus.files(size.pair):
            place = Path("opus", corpus.name, corpus.version, "moses", f"{file}.txt.zip")
            paths = [self.data / place, self.data / EMBEDDED / place]
            if not is_remote(corpus.source):
                location = opus_location(corpus.source, corpus.name, corpus.version, file)
                paths.append(local_path(location))
            yield next((path for path in paths if path.is_file()), None)


def lines_of_zip(path: Path) -> float | None:
    """Estimate the lines of the largest text in a zip from its first megabyte."""
    try:
        with zipfile.ZipFile(path) as packed:
            texts = [item for item in packed.infolist() if item.filename.endswith((".en", "-en"))]
            largest = max(texts or packed.infolist(), key=lambda item: item.file_size)
            with packed.open(largest) as text:
                sample = text.read(ZIP_SAMPLE)
    except (OSError, zipfile.BadZipFile, ValueError):
        return None
    return sample.count(b"\n") * largest.file_size / max(1, len(sample))
