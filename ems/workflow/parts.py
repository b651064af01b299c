"""Parts: the language pairs of a corpus that share a job.

A job takes about a second to start, on a cluster several, and most language pairs take less. So
neighbouring pairs of a corpus go into one job until it has `job_mb` (config.yaml) of downloads, or
a tenth of the experiment's, so that a few cores have enough jobs to share. The sizes are those
of OPUS's table or of the files in a local source, known before anything is fetched, so that the
parts are the same in each run and in the jobs of a cluster.
"""

import math
from collections.abc import Iterable, Iterator
from os.path import getsize, isfile
from pathlib import Path

from ems.config.experiment import EMBEDDED, Corpus, Experiment, name_of_part
from ems.config.languages import opus_files
from ems.corpora.catalogue import PairSize, pair_sizes
from ems.corpora.locations import local_path
from ems.workflow.sources import places_of

SHARE, LEAST = 10, 1.0  # jobs of a small experiment; MB
Place = tuple[str, str]  # label and version of a corpus
Parts = dict[Place, dict[str, str]]  # corpus -> language pair -> the name of its part


def parts_of(experiment: Experiment, data: Path, most_mb: float) -> Parts:
    """Return the part of each language pair, named as in `name_of_part`."""
    sizes: dict[Place, dict[str, float]] = {}
    for size in pair_sizes(experiment):
        pairs = sizes.setdefault((size.corpus.label, size.corpus.version), {})
        pairs[size.pair] = megabytes(size, data)
    known = [mb for pairs in sizes.values() for mb in pairs.values() if mb < math.inf]
    limit = min(most_mb, max(LEAST, sum(known) / SHARE))
    return {
        place: {
            pair: name_of_part(part) for part in together(pairs.items(), limit) for pair in part
        }
        for place, pairs in sizes.items()
    }


def together(sizes: Iterable[tuple[str, float]], limit: float) -> Iterator[list[str]]:
    """Put neighbouring pairs together until their sizes reach the limit."""
    part, held = [], 0.0
    for pair, size in sizes:
        part.append(pair)
        held += size
        if held >= limit:
            yield part
            part, held = [], 0.0
    if part:
        yield part


def megabytes(size: PairSize, data: Path) -> float:
    """Return the MB of a language pair's files, of which a capped or divided corpus uses a share;
    0 for the demo's, infinity if unknown.
    """
    corpus = size.corpus
    if corpus.source == EMBEDDED:
        return 0.0
    known = {} if corpus.custom or corpus.documents else opus_files(corpus.name, corpus.version)
    files = [known.get(name) for name in corpus.files(size.pair)]
    if None not in files and None not in [file.pairs for file in files]:
        used = size.at_most if size.used is None else size.used
        share = used / max(1, sum(file.pairs for file in files))
        return share * sum(file.kilobytes for file in files) / 1000
    return sum(file_bytes(corpus, file, data) for file in corpus.files(size.pair)) / 1e6


def file_bytes(corpus: Corpus, file: str, data: Path) -> float:
    """Return the size of a file at its source, or as fetched; infinity if it is neither here."""
    location, fetched = places_of(corpus, file, data)
    paths = [local_path(location), fetched]
    return next((float(getsize(path)) for path in paths if isfile(path)), math.inf)
