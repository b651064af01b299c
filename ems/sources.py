"""Check before any job starts that local directories have what an experiment takes from them.

An address is not asked, and what has been fetched already is not expected anywhere else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import exists
from pathlib import Path

from ems.benchmarks import benchmark
from ems.config import EMBEDDED, OPUSTOOLS, Corpus, Experiment
from ems.corpora.locations import (
    corpus_location,
    is_remote,
    local_path,
    mined_location,
    opus_location,
)
from ems.evalsets.check import missing_files
from ems.evalsets.sets import default_folder, manifest_name, set_files, unit_source, units_of
from ems.evalsets.units import unit

ADVICE = (
    "sources: bring what these directories lack, or set the keys to where it is: a directory in "
    "the same layout, or an address"
)


@dataclass(frozen=True)
class Source:
    """A place that files come from, and the key of the settings that names it."""

    key: str
    place: str

    @property
    def is_directory(self) -> bool:
        """True if files are copied from it: it is no address, and no program makes them."""
        return self.place not in ("", EMBEDDED, OPUSTOOLS) and not is_remote(self.place)


@dataclass(frozen=True)
class Fetch:
    """A file to fetch: its location in a source, and the file that exists once it was fetched."""

    source: Source
    location: str
    fetched: Path


@dataclass(frozen=True)
class Missing:
    """What local directories lack: a line for each of them, and the files that stay unfetched."""

    lines: list[str]
    files: frozenset[Path]

    def __str__(self) -> str:
        return "\n".join([*self.lines, ADVICE] if self.lines else [])


def missing_sources(experiment: Experiment, data: Path) -> Missing:
    """Return what the directories of an experiment lack of the files that are not in `data` yet.

    A line names the key of the directory and the files expected there.
    """
    fetches = [*_of_corpora(experiment, data), *_of_evalsets(experiment, data)]
    copies = [f for f in fetches if f.source.is_directory and not exists(f.fetched)]
    expected: dict[Source, dict[Path, None]] = {}  # in order, each once
    for copy in copies:
        expected.setdefault(copy.source, {})[local_path(copy.location)] = None
    lines = [
        line
        for source, files in expected.items()
        for line in missing_files(source.key, local_path(source.place), list(files))
    ]
    lacking = (copy.fetched for copy in copies if not exists(local_path(copy.location)))
    return Missing(lines, frozenset(lacking))


def _origins(experiment: Experiment) -> Iterator[tuple[Corpus, Source]]:
    """Yield each corpus with its source: its own, or the one for all of its kind."""
    entries = [f"corpora.{at}" for at in range(len(experiment.corpora))] + ["validation"]
    for entry, (_, corpus) in zip(entries, experiment.all_corpora(), strict=False):
        shared = "sources.wikimatrix" if corpus.mined else "sources.opus"
        yield corpus, Source(f"{entry}.source" if corpus.own else shared, corpus.source)


def _of_corpora(experiment: Experiment, data: Path) -> Iterator[Fetch]:
    mirror = str(data / "opus")
    for corpus, source in _origins(experiment):
        release = (corpus.name, corpus.version)
        for file in [file for pair in corpus.pairs for file in corpus.files(pair)]:
            if corpus.mined:
                location = mined_location(source.place, file)
                fetched = f"{corpus_location(mirror, *release)}/mined/{Path(location).name}"
            else:
                location = opus_location(source.place, *release, file)
                fetched = opus_location(mirror, *release, file)
            yield Fetch(source, location, Path(fetched))
        documents = experiment.splits[corpus.name].documents if corpus.part else ""
        if documents:
            location = f"{corpus_location(source.place, *release)}/{documents}"
            yield Fetch(source, location, Path(corpus_location(mirror, *release), documents))


def _of_evalsets(experiment: Experiment, data: Path) -> Iterator[Fetch]:
    for name, evalset in experiment.evalsets.items():
        folder, corpus = default_folder(experiment, name, data), benchmark(name).corpus
        if corpus and not (evalset.path or evalset.embedded):
            origins = {(one.name, one.version): source for one, source in _origins(experiment)}
            shared = Source("sources.opus", experiment.sources["opus"])
            source = origins.get((corpus, evalset.version), shared)
            base = corpus_location(source.place, corpus, evalset.version)
            for path in set_files(experiment, name, folder):
                yield Fetch(source, f"{base}/{path.relative_to(folder)}", path)
        source = Source(f"sources.{name}", unit_source(experiment, name))
        for code in units_of(experiment, name):
            for file in unit(name, code).files:
                location = f"{source.place.rstrip('/')}/{file}"
                yield Fetch(source, location, folder / manifest_name(code))
