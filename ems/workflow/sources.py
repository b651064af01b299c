"""Check before any job starts that the data of an experiment are available.

URLs are not contacted. Files that have been fetched already need not exist at their source.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import exists, isdir  # they also return False for impossible names
from pathlib import Path
from typing import NamedTuple

from ems.base.errors import mistake
from ems.config.corpora import host_of
from ems.config.experiment import EMBEDDED, Corpus, Experiment
from ems.config.plugins import benchmark, benchmarks, has_module
from ems.corpora import locations
from ems.corpora.demo.grammar import LANGUAGES
from ems.corpora.evalsets import sets
from ems.corpora.locations import is_remote, local_path, path_of
from ems.corpora.own import own_files

SHOWN = 3  # files that a message names


class Fetch(NamedTuple):
    """A file to fetch: its source with the setting that names it, its places there and here."""

    key: str
    source: str
    location: str
    fetched: Path


@dataclass(frozen=True)
class Missing:
    """Files missing from local directories: a line per directory, and the unfetched files."""

    lines: list[str]
    files: frozenset[Path]

    def __str__(self) -> str:
        advice = [str(mistake("missing sources"))] if self.lines else []
        return "\n".join([*self.lines, *advice])


def missing_sources(experiment: Experiment, data: Path) -> Missing:
    """Return the files that are neither fetched nor in local directories, a line per directory."""
    expected: dict[tuple[str, str], dict[Path, None]] = {}  # in order, each once
    lacking = set()
    for fetch in (*_of_corpora(experiment, data), *_of_evalsets(experiment, data)):
        of_directory = fetch.source not in ("", EMBEDDED) and not is_remote(fetch.source)
        if of_directory and not exists(fetch.fetched):
            path = local_path(fetch.location)
            expected.setdefault((fetch.key, fetch.source), {})[path] = None
            if not exists(path):
                lacking.add(fetch.fetched)
    lines: list[str] = []
    for (key, source), files in expected.items():
        lines += missing_files(key, local_path(source), list(files))
    return Missing(lines, frozenset(lacking))


def _keys(experiment: Experiment) -> Iterator[tuple[Corpus, str]]:
    """Yield each corpus with the setting that names its source: its own, or one of `sources`."""
    entries = [f"corpora.{at}" for at in range(len(experiment.corpora))]
    count = len(experiment.validation)
    entries += ["validation"] if count == 1 else [f"validation.{at}" for at in range(count)]
    for entry, (_, corpus) in zip(entries, experiment.all_corpora(), strict=True):
        kind = "wikimatrix" if corpus.mined else host_of(corpus.name, experiment.sources)
        if corpus.documents:
            kind = "wikipedia" if corpus.dumped else "documents"
        kinds = {"path": corpus.path, "documents": corpus.aligned, "files": corpus.paths}
        own = f"{entry}.{next((name for name, used in kinds.items() if used), 'source')}"
        yield corpus, own if corpus.custom else f"sources.{kind}"


def _of_corpora(experiment: Experiment, data: Path) -> Iterator[Fetch]:
    for corpus, key in _keys(experiment):
        if corpus.aligned:
            folder = corpus.aligned.folder
            for paths in corpus.paths.values():
                yield Fetch(key, folder, folder, Path(*paths))
        elif corpus.paths:
            for path in [path for pair in corpus.pairs for path in own_files(corpus, pair)]:
                yield Fetch(key, str(path.parent), str(path), path)
        if corpus.paths:
            continue
        for file in corpus.all_files:
            yield Fetch(key, corpus.source, *places_of(corpus, file, data))
        if file := experiment.document_names(corpus):
            release = locations.corpus_location(corpus.source, corpus.name, corpus.version)
            fetched = data / "opus" / corpus.name / corpus.version / file
            yield Fetch(key, corpus.source, f"{release}/{file}", fetched)


def places_of(corpus: Corpus, file: str, data: Path) -> tuple[str, Path]:
    """Return the location of a corpus file at its source, and its local path once fetched."""
    if corpus.dumped:
        made = path_of(corpus, file, data)  # the dump may have been deleted since
        dump = data / "dumps" / corpus.name / corpus.version / f"{file}.xml.bz2"
        fetched = made if exists(made) else dump
        return locations.dump_location(corpus.source, file, corpus.version), fetched
    if corpus.documents:
        location = locations.text_location(corpus, file, data)
    elif corpus.mined:
        location = locations.mined_location(corpus.source, file)
    else:
        location = locations.opus_location(corpus.source, corpus.name, corpus.version, file)
    return location, path_of(corpus, file, data)


def _of_evalsets(experiment: Experiment, data: Path) -> Iterator[Fetch]:
    for name, evalset in experiment.evalsets.items():
        folder, corpus = sets.default_folder(experiment, name, data), benchmark(name).corpus
        if corpus and not (evalset.path or evalset.embedded):
            release = (corpus, evalset.version)
            origins = {(c.name, c.version): (key, c.source) for c, key in _keys(experiment)}
            host = host_of(corpus, experiment.sources)
            key, source = origins.get(release, (f"sources.{host}", experiment.sources[host]))
            for path in sets.set_files(experiment, name, folder):
                place = locations.corpus_location(source, *release)
                yield Fetch(key, source, f"{place}/{path.relative_to(folder)}", path)
        source = sets.unit_source(experiment, name)
        for code in sets.units_of(experiment, name):
            for file in sets.unit(name, code).files:
                location = f"{source.rstrip('/')}/{file}"
                yield Fetch(f"sources.{name}", source, location, folder / sets.manifest_name(code))


def missing_evalsets(experiment: Experiment) -> list[str]:
    """Return a line for each set without its files: what is missing, or how to obtain it."""
    lines = []
    for name, evalset in experiment.evalsets.items():
        record, key = benchmark(name), f"evalsets.{name}"
        if evalset.path:
            files = sets.set_files(experiment, name, Path(evalset.path))
            lines += missing_files(f"{key}.path", Path(evalset.path), files)
        elif evalset.embedded:
            unknown = sorted({*evalset.languages.values()} - {*LANGUAGES})
            if not has_module(name, "demo"):
                known = ", ".join(other for other in benchmarks() if has_module(other, "demo"))
                lines.append(f"sources.{name}: found {EMBEDDED}, but the demo has only {known}")
            elif unknown:
                known = f"the embedded demo has only {', '.join(LANGUAGES)}"
                lines.append(f"{key}.languages: {known}, found {unknown[0]}")
        elif record.status != "open" and name not in experiment.sources:
            files = _some(sets.set_files(experiment, name, Path("DIRECTORY")))
            other = f" (or sources.{name} to the one with the archive)" if sets.units(name) else ""
            words = {"record": record, "other": other, "files": files}
            lines.append(str(mistake("closed set", key=key, **words)))
    return lines


def missing_files(key: str, folder: Path, files: list[Path]) -> list[str]:
    """Return a line if `files` are missing, else []; `key`: the setting that names `folder`."""
    if not isdir(folder):
        return [f"{key}: {folder} is not a directory; expected {_some(files)}"]
    missing = [path for path in files if not exists(path)]
    count = f"{len(missing):,} of {len(files):,} files" if len(files) > 1 else "file"
    return [f"{key}: {count} not found: {_some(missing)}"] if missing else []


def _some(files: list[Path]) -> str:
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    return ", ".join(map(str, files[:SHOWN])) + more
