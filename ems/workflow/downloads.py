"""`ems corpora list`, `licences` and `lock`: the downloads of an experiment.

`?` marks a number that is unknown without a network; a count with `?` is the known part, and
`at most` an upper bound. Documents of single languages have no sentence pairs. A lock has, for
each file in the folder `data`, its bytes, SHA-256 and address.
"""

import json
from pathlib import Path

from ems.base.errors import LOCK, mistake
from ems.base.files import read_json, write_json
from ems.base.records import Below, Json
from ems.base.templates import rendered
from ems.config.experiment import EMBEDDED, Experiment
from ems.corpora import catalogue
from ems.corpora.catalogue import PairSize, pair_sizes, set_sizes
from ems.corpora.content import Locked, lock_of, read_lock
from ems.corpora.evalsets.sets import default_folder
from ems.corpora.locations import path_of
from ems.tables.printed import TOTAL, in_table_one_order, load_pairs


def as_json(experiment: Experiment) -> str:
    """Return the list as JSON, with null for unknown numbers."""
    return json.dumps(_listing(experiment), indent=1, ensure_ascii=False) + "\n"


def _listing(experiment: Experiment) -> Json:
    sizes = pair_sizes(experiment)
    trained = [size for size in sizes if size.role == "train" and not size.corpus.documents]
    corpora: dict[tuple[str, str], list[PairSize]] = {}
    for size in sizes:
        corpora.setdefault((size.corpus.label, size.corpus.version), []).append(size)
    printed = load_pairs("ems_pairs")
    codes = in_table_one_order({size.language for size in trained})
    of_language = {code: [size for size in trained if size.language == code] for code in codes}
    return {
        "experiment": experiment.name,
        "corpora": [
            {
                "corpus": name,
                "version": version,
                "role": own[0].role,
                "kind": own[0].corpus.kind,
                "languages": [size.language for size in own],
                "licence": own[0].licence,
                **_sums(own),
            }
            for (name, version), own in corpora.items()
        ],
        "total": {
            "kind": "documents" if all(size.corpus.documents for size in sizes) else "pairs",
            **_sums(sizes),
            # parts share their files
            "sentence_pairs": _sum([size.lines for size in sizes if not size.shared]),
            "train": _sums(trained),
        },
        "evalsets": set_sizes(experiment),
        "languages": [
            {"language": code, "table_1": int(printed[code]) if code in printed else None}
            | {key: _sums(own)[key] for key in ("used", "at_most", "unknown")}
            for code, own in of_language.items()
        ],
        "table_1_total": int(printed[TOTAL]),
    }


def _sums(sizes: list[PairSize]) -> Json:
    """Return sums of the known counts (None if all are unknown), numbers of unknown ones; `at_most`
    is None if one bound is. Documents count as files, or languages (`pairs`) if there are no pairs.
    """
    own = [size for size in sizes if not size.shared]
    pairs = [size for size in sizes if not size.corpus.documents]
    bounds = [size.at_most for size in pairs]
    return {
        "pairs": len(pairs or sizes),
        "files": sum(len(size.corpus.files(size.pair)) for size in own),
        "sentence_pairs": _sum([size.lines for size in sizes]),
        "used": _sum([size.used for size in sizes]),
        "at_most": None if None in bounds else sum(bounds),
        "kilobytes": _sum([size.kilobytes for size in own or sizes]),
        "unknown": sum(size.used is None for size in pairs),
        "unknown_kilobytes": sum(size.kilobytes is None for size in own),
    }


def _sum(values: list[int | None]) -> int | None:
    """Return the sum of the known values, None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def as_text(experiment: Experiment) -> str:
    """Return tables of corpora, of evaluation sets drawn from a corpus, and of languages."""
    listing = _listing(experiment)
    trained = {"language": "total", "table_1": listing["table_1_total"]}
    return rendered(
        Path(__file__).with_name("downloads.txt.jinja"),
        **listing,
        all_languages=trained | listing["total"]["train"],
        printed="EMS" in experiment.tables.printed,
    )


def licences_text(experiment: Experiment) -> str:
    """Return a Markdown table of the corpora's licences, for a model card."""
    sizes = {(of.role, of.corpus.label, of.corpus.version): of for of in pair_sizes(experiment)}
    return rendered(
        Path(__file__).with_name("licences.md.jinja"),
        experiment=experiment.name,
        sizes=sizes.values(),
        entry=catalogue.catalogue_entry,
        page=catalogue.page_of,
        terms=catalogue.licence_named,
    )


# --- locks


def lock_text(experiment: Experiment, data: Path) -> str:
    """Return the lock of an experiment. Raises `EmsError` for a corpus that is not fetched."""
    paths: set[Path] = set()
    for _, corpus in experiment.all_corpora():
        if not (corpus.paths or corpus.source == EMBEDDED):
            paths |= {path_of(corpus, file, data) for file in corpus.all_files}
    for path in sorted(paths):
        if not lock_of(path).is_file():
            raise mistake("nothing to lock", path=path, name=experiment.name)
    for name, evalset in experiment.evalsets.items():
        if not (evalset.path or evalset.embedded):
            found = default_folder(experiment, name, data).rglob(f"*{LOCK}")
            paths |= {path.with_name(path.name.removesuffix(LOCK)) for path in found}
    locks = ((path, read_lock(path)) for path in sorted(paths))
    rows = {
        str(path.relative_to(data)): {"bytes": of.bytes, "sha256": of.sha256, "url": of.url}
        for path, of in locks
    }
    return json.dumps(rows, indent=1) + "\n"


def pin(file: Path, data: Path) -> str:
    """Write the locks of a file made by `lock`, so that only the same bytes are fetched. Raises
    `EmsError` if one is here with others.
    """
    locks = {data / path: lock for path, lock in read_json(file, dict[Below, Locked]).items()}
    for path, lock in locks.items():
        if lock_of(path).is_file() and read_lock(path).sha256 != lock.sha256:
            raise mistake("other bytes", path=path, file=file)
    for path, lock in locks.items():
        if not lock_of(path).is_file():
            write_json(lock_of(path), vars(lock))
    return f"{file}: {len(locks):,} files in {data} are locked\n"
