"""Parts: the language pairs of a corpus that share a job.

A job takes about a second to start, on a cluster several, and most language pairs take less. So
neighbouring pairs of a corpus go into one job until it has `job_mb` (config.yaml) of downloads, or
a tenth of the experiment's, so that a few cores have enough jobs to share. The sizes come
from OPUS's table or from the files in a local source, known before anything is fetched, so that the
parts are the same in each run and in the jobs of a cluster. Ten pairs of unknown size share a job.
"""

import math
from os.path import getsize, isfile
from pathlib import Path

from ems.base.texts import batched
from ems.config.experiment import EMBEDDED, Experiment, name_of_part
from ems.config.languages import opus_files, summed
from ems.corpora.catalogue import PairSize, pair_sizes
from ems.corpora.locations import is_remote
from ems.corpora.own import own_files
from ems.workflow.sources import places_of

SHARE, LEAST, UNKNOWN = 10, 1.0, 10  # jobs of a small experiment; MB; pairs of a job
Place = tuple[str, str]  # label and version of a corpus
Parts = dict[Place, dict[str, str]]  # corpus -> language pair -> the name of its part


def parts_of(experiment: Experiment, data: Path, most_mb: float) -> Parts:
    """Return the part of each language pair, named as in `name_of_part`."""
    sizes: dict[Place, dict[str, float | None]] = {}
    for size in pair_sizes(experiment):
        pairs = sizes.setdefault((size.corpus.label, size.corpus.version), {})
        pairs[size.pair] = megabytes(size, data)
    known = [mb for pairs in sizes.values() for mb in pairs.values() if mb not in (None, math.inf)]
    limit = min(most_mb, max(LEAST, sum(known) / SHARE))
    parts: Parts = {}
    for place, pairs in sizes.items():
        counted = {pair: limit / UNKNOWN if mb is None else mb for pair, mb in pairs.items()}
        own = batched(counted, counted.__getitem__, len(counted), limit)  # neighbours, up to it
        parts[place] = {pair: name_of_part(part) for part in own for pair in part}
    return parts


def megabytes(size: PairSize, data: Path) -> float | None:
    """Return the MB of a language pair's files, of which a capped or divided corpus uses a share;
    0 for the demo's, infinity for a Wikipedia, None if unknown, as of any other host.
    """
    corpus = size.corpus
    if corpus.source == EMBEDDED:
        return 0.0
    known = {} if corpus.custom or corpus.documents else opus_files(corpus.name, corpus.version)
    whole = summed(known.get(name) for name in corpus.files(size.pair))
    if whole.pairs is not None and whole.kilobytes is not None:
        used = size.at_most if size.used is None else size.used
        return used / max(1, whole.pairs) * whole.kilobytes / 1000
    if corpus.dumped or is_remote(corpus.source):
        return math.inf if corpus.dumped else None
    own = [(path,) for path in own_files(corpus, size.pair)] if corpus.paths else []
    places = own or [places_of(corpus, file, data) for file in corpus.files(size.pair)]
    found = [next((getsize(path) for path in each if isfile(path)), None) for each in places]
    return None if None in found else sum(found) / 1e6
