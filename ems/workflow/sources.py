"""Check before any job starts that an experiment's data are there or can be had.

An address is not asked, and what has been fetched already is not expected anywhere else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import exists, isdir  # False for a name that no path can have, too
from pathlib import Path
from typing import NamedTuple

from ems.config.experiment import EMBEDDED, Corpus, Experiment
from ems.config.file import OPUSTOOLS
from ems.config.plugins import benchmark, benchmarks, has
from ems.corpora.demo.grammar import LANGUAGES
from ems.corpora.evalsets.sets import (
    default_folder,
    manifest_name,
    set_files,
    unit,
    unit_source,
    units,
    units_of,
)
from ems.corpora.locations import (
    corpus_location,
    dump_file,
    dump_location,
    is_remote,
    local_path,
    mined_location,
    opus_location,
    text_file,
    text_location,
)
from ems.corpora.own import own_files

SHOWN = 3  # files that a message names
ADVICE = (
    "sources: bring what these directories lack, or set the keys to where it is: a directory in "
    "the same layout, or an address"
)


class Fetch(NamedTuple):
    """A file to fetch: the key of the settings that names its source, the source, its location
    there, and the file that exists once it was fetched.
    """

    key: str
    source: str
    location: str
    fetched: Path

    @property
    def is_copy(self) -> bool:
        """True if it is copied from a directory: from no address, and not made by a program."""
        return self.source not in ("", EMBEDDED, OPUSTOOLS) and not is_remote(self.source)


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
    copies = [fetch for fetch in fetches if fetch.is_copy and not exists(fetch.fetched)]
    expected: dict[tuple[str, str], dict[Path, None]] = {}  # in order, each once
    for copy in copies:
        expected.setdefault((copy.key, copy.source), {})[local_path(copy.location)] = None
    lines = [
        line
        for (key, source), files in expected.items()
        for line in missing_files(key, local_path(source), list(files))
    ]
    lacking = (copy.fetched for copy in copies if not exists(local_path(copy.location)))
    return Missing(lines, frozenset(lacking))


def _keys(experiment: Experiment) -> Iterator[tuple[Corpus, str]]:
    """Yield each corpus with the key that names its source: its own, or that of all of its kind."""
    entries = [f"corpora.{at}" for at in range(len(experiment.corpora))]
    count = len(experiment.validation)
    entries += ["validation"] if count == 1 else [f"validation.{at}" for at in range(count)]
    for entry, (_, corpus) in zip(entries, experiment.all_corpora(), strict=True):
        own = f"{entry}.{'path' if corpus.path else 'files' if corpus.paths else 'source'}"
        yield corpus, own if corpus.own else f"sources.{_shared(corpus)}"


def _shared(corpus: Corpus) -> str:
    """Return the source of all corpora of a kind."""
    if corpus.documents:
        return "wikipedia" if corpus.dumped else "documents"
    return "wikimatrix" if corpus.mined else "opus"


def _of_corpora(experiment: Experiment, data: Path) -> Iterator[Fetch]:
    mirror = str(data / "opus")
    for corpus, key in _keys(experiment):
        if corpus.documents:
            yield from _of_documents(corpus, key, data)
            continue
        if corpus.paths:
            for path in [path for pair in corpus.pairs for path in own_files(corpus, pair)]:
                yield Fetch(key, str(path.parent), str(path), path)
            continue
        release = (corpus.name, corpus.version)
        place, kept = (corpus_location(root, *release) for root in (corpus.source, mirror))
        for file in [file for pair in corpus.pairs for file in corpus.files(pair)]:
            if corpus.mined:
                location = mined_location(corpus.source, file)
                fetched = f"{kept}/mined/{Path(location).name}"
            else:
                location = opus_location(corpus.source, *release, file)
                fetched = opus_location(mirror, *release, file)
            yield Fetch(key, corpus.source, location, Path(fetched))
        documents = experiment.splits[corpus.name].documents if corpus.part else ""
        if documents:
            yield Fetch(key, corpus.source, f"{place}/{documents}", Path(kept, documents))


def _of_documents(corpus: Corpus, key: str, data: Path) -> Iterator[Fetch]:
    for file in [file for code in corpus.pairs for file in corpus.files(code)]:
        if corpus.dumped:
            location = dump_location(corpus.source, file, corpus.version)
            made = text_file(corpus, file, data)  # the dump may have been deleted since
            fetched = made if exists(made) else dump_file(corpus, file, data)
            yield Fetch(key, corpus.source, location, fetched)
        else:
            location = text_location(corpus, file, data)
            yield Fetch(key, corpus.source, location, text_file(corpus, file, data))


def _of_evalsets(experiment: Experiment, data: Path) -> Iterator[Fetch]:
    for name, evalset in experiment.evalsets.items():
        folder, corpus = default_folder(experiment, name, data), benchmark(name).corpus
        if corpus and not (evalset.path or evalset.embedded):
            release = (corpus, evalset.version)
            origins = {(c.name, c.version): (key, c.source) for c, key in _keys(experiment)}
            key, source = origins.get(release, ("sources.opus", experiment.sources["opus"]))
            for path in set_files(experiment, name, folder):
                location = f"{corpus_location(source, *release)}/{path.relative_to(folder)}"
                yield Fetch(key, source, location, path)
        source = unit_source(experiment, name)
        for code in units_of(experiment, name):
            for file in unit(name, code).files:
                location = f"{source.rstrip('/')}/{file}"
                yield Fetch(f"sources.{name}", source, location, folder / manifest_name(code))


def missing_evalsets(experiment: Experiment) -> list[str]:
    """Return a line for each copy (`path`) that lacks files, each set or language that the demo
    lacks, and each closed set without a copy: how to obtain it, the key to set, the files expected.
    """
    lines = []
    for name, evalset in experiment.evalsets.items():
        if evalset.path:
            folder = Path(evalset.path)
            files = set_files(experiment, name, folder)
            lines += missing_files(f"evalsets.{name}.path", folder, files)
        elif evalset.embedded:
            lines += _missing_in_demo(experiment, name)
        elif benchmark(name).status != "open" and name not in experiment.sources:
            lines.append(_how_to_obtain(experiment, name))
    return lines


def missing_files(key: str, folder: Path, files: list[Path]) -> list[str]:
    """Return a line, or none if all `files` exist; `key` names the folder that should have them."""
    if not isdir(folder):
        return [f"{key}: {folder} is no directory; expected {_some(files)}"]
    missing = [path for path in files if not exists(path)]
    counts = f"{len(missing):,} of the {len(files):,} files expected are not there"
    return [f"{key}: {counts}: {_some(missing)}"] if missing else []


def _missing_in_demo(experiment: Experiment, name: str) -> list[str]:
    if not has(name, "demo"):
        known = ", ".join(other for other in benchmarks() if has(other, "demo"))
        return [f"sources.{name}: found {EMBEDDED}, but the demo has only {known}"]
    unknown = sorted(set(experiment.evalsets[name].languages.values()) - set(LANGUAGES))
    known = f"evalsets.{name}.languages: the embedded demo has only {', '.join(LANGUAGES)}"
    return [f"{known}, found {unknown[0]}"] if unknown else []


def _how_to_obtain(experiment: Experiment, name: str) -> str:
    record = benchmark(name)
    files = _some(set_files(experiment, name, Path("DIRECTORY")))
    other = f" (or sources.{name} to the one with the archive)" if units(name) else ""
    return (
        f"evalsets.{name}: this set is {record.status} ({record.licence}): {record.obtain}; then "
        f"set evalsets.{name}.path to the DIRECTORY with it{other}; expected {files}"
    )


def _some(files: list[Path]) -> str:
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    return ", ".join(map(str, files[:SHOWN])) + more
