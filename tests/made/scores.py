"""Score files of every benchmark, and the values, counts and hits that tests compare."""

import json
import zlib
from itertools import permutations

from made import golden

from ems.bench.scores import read_score_file, unpacked
from ems.benchmarks.alignment.data import LENGTHS, MAIN, MEASURES
from ems.benchmarks.alignment.table import TABLES

SHA = "d" * 64
TEST = TABLES["alignment"].printed.protocol["documents"]
EN = "en"
LOWER = ("error rate", "cosine")
BUCC = {"k": 4, "margin": "ratio", "threshold": "oracle", "missed": 10, "part": "training"}
RETRIEVAL = {"k": 4, "margin": "ratio", "queries": 2000, "candidates": 200_000, "seed": 1234}
EUROPARL = RETRIEVAL | {"margin": "absolute"}
GERMAN = {
    "score": 1.3499,
    "id": "de-1",
    "english_id": "en-2",
    "sentence": "Größe & Maß: 50 % „mehr“ – für alle_",
    "english": "Size & measure: 50 % more for all_",
}
MINING = {"k": 4, "margin": "ratio"}


def row(source, target, value, count=1000, **others):
    return {"source": source, "target": target, "value": value, "count": count, **others}


def write_file(folder, system, benchmark, metric, rows, languages, /, **changes):
    """A score file of these rows; `languages`: code -> language, or codes that are languages."""
    known = languages if isinstance(languages, dict) else {code: code for code in languages}
    data = {"benchmark": benchmark, "version": "v1", "system": system, "system_hash": "ab12"}
    data |= {"data_sha256": SHA, "metric": metric, "higher_is_better": metric not in LOWER}
    data |= {"label": "language", "languages": known, "protocol": {}, "rows": rows, **changes}
    path = folder / system / f"{data['benchmark']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def edit(path, change):
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def both_ways(values, count=1000):
    """Rows of code -> P@1 of both directions, or a pair of numbers: to English, from English."""
    rows = []
    for code, both in values.items():
        to, back = both if isinstance(both, tuple) else (both, both)
        rows += [row(code, EN, to, count), row(EN, code, back, count)]
    return rows


def write_scores(folder, system, values, /, languages=None, benchmark="tatoeba", **changes):
    """P@1 to and from English, of Tatoeba or NTREX; `values` as in `both_ways`; `languages`: code
    -> the experiment's language, which is the code itself unless given."""
    known = {code: (languages or {}).get(code, code) for code in values}
    return write_file(folder, system, benchmark, "P@1", both_ways(values), known, **changes)


def write_retrieval(folder, system, benchmark, values, protocol=RETRIEVAL, **changes):
    """ParaCrawl or Europarl; `values` as in `both_ways`."""
    versions = {"paracrawl": "v5", "europarlxsr": "v7"}
    rows = both_ways(values, 2000)
    changes = {"version": versions[benchmark], "protocol": protocol, **changes}
    return write_file(folder, system, benchmark, "P@1", rows, [*values], **changes)


def write_bucc(folder, system, values, protocol=BUCC, missed=None, **changes):
    """BUCC; `values`: language -> F1; `missed`: language -> the best pairs that gold lacks."""
    rows = [row(code, EN, f1, 9) for code, f1 in values.items()]
    details = {code: {"missed": (missed or {}).get(code, [])} for code in values}
    changes = {"version": "v2018", "protocol": protocol, "details": details, **changes}
    return write_file(folder, system, "bucc2018", "F1", rows, [*values], **changes)


def write_alignment(folder, system, value, **changes):
    """Sentence alignment: the six measures from `value` in steps of 1, and the lengths' 7."""
    values = {"" if n == MAIN else n: value + at for at, n in enumerate(MEASURES)}
    rows = [row("de", "fr", each, 9, measure=name) for name, each in values.items()]
    rows += [row("de", "fr", 7.0, 9, split=name, measure=LENGTHS) for name in MEASURES]
    changes = {"protocol": {"documents": TEST, "largest": 8}, "label": "direction", **changes}
    return write_file(folder, system, "alignment", "F1", rows, ["de", "fr"], **changes)


def write_accuracies(folder, benchmark, system, values, measures=None, /, **changes):
    """A benchmark of classification; `values`: direction -> the accuracy of each seed (or one
    number, without a seed); `measures`: measure -> direction -> value."""
    rows = []
    for name, seeds in values.items():
        numbered = enumerate(seeds, 1) if isinstance(seeds, list) else [(None, seeds)]
        rows += [row(**_place(name), value=v, **({"seed": at} if at else {})) for at, v in numbered]
    for measure, of in (measures or {}).items():
        rows += [row(**_place(name), value=v, measure=measure) for name, v in of.items()]
    codes = [code for name in values for code in name.split()[0].split("-")]
    changes = {"label": "direction", **changes}
    return write_file(folder, system, benchmark, "accuracy", rows, codes, **changes)


def _place(name):
    """ "en-de books" -> where its rows stand."""
    pair, _, domain = name.partition(" ")
    source, target = pair.split("-")
    return {"source": source, "target": target, **({"split": domain} if domain else {})}


def value_of(query, candidates):
    return zlib.crc32(f"{query}-{candidates}".encode()) % 1001 / 10


def write_flores(folder, system, languages, of=value_of, count=1012, /, **changes):
    """FLORES-200 between these languages; `of`: (query, candidates) -> percent."""
    names = {f"{language}_code": language for language in languages}
    pairs = permutations(names, 2)
    rows = [row(one, other, of(names[one], names[other]), count) for one, other in pairs]
    changes = {"label": "source", **changes}
    return write_file(folder, system, "flores200", "P@1", rows, names, **changes)


def write_errors(folder, system, benchmark, errors, kinds=None, **changes):
    """xsim or xsimpp; `errors`: language -> percent of 200 sentences, `kinds`: language -> counts
    of each kind of error."""
    names = sorted({kind for counts in (kinds or {}).values() for kind in counts})
    rows = []
    for language, error in errors.items():
        place = (f"{language}_code", "en_code")
        rows.append(row(*place, error, 200))
        shares = {kind: kinds[language].get(kind, 0) / 2 for kind in names}
        rows += [row(*place, share, 200, measure=kind) for kind, share in shares.items()]
    known = {f"{language}_code": language for language in [*errors, EN]}
    changes = {"protocol": MINING, **changes}
    return write_file(folder, system, benchmark, "error rate", rows, known, **changes)


def write_cosine(folder, system, value, **changes):
    rows = [row(EN, EN, value, 2)]
    return write_file(folder, system, "wordorder", "cosine", rows, [EN], **changes)


def write_noisy(folder, system, values, **changes):
    """Noisy FLORES-200; `values`: language -> damage -> percent, of clean lines first."""
    rows = []
    for language, damages in values.items():
        place = (f"{language}_code", "en_code")
        rows += [row(*place, value, split=name) for name, value in damages.items()]
        rows += [row(*place, damages["clean"], split=n, measure="clean") for n in damages]
    known = {f"{language}_code": language for language in [*values, EN]}
    changes = {"label": "direction", "parallel": True, **changes}
    return write_file(folder, system, "noisy", "P@1", rows, known, **changes)


def both_measures(folder, system, low, high):
    kinds = {"fr": {"number_replacement": high, "misaligned": high}, "de": {"misaligned": 2 * high}}
    return [
        write_errors(folder, system, "xsim", {"fr": low, "de": low + 2.0}),
        write_errors(folder, system, "xsimpp", {"fr": float(high), "de": float(high)}, kinds),
    ]


def fives(names, start=70.0):
    """Five seeds of each direction, all different."""
    steps = range(5)
    return {n: [start + at + s * (at + 1) / 10 for s in steps] for at, n in enumerate(names)}


def values(result, measure=""):
    """Label -> way -> value, of the metric or of another measure."""
    return {
        label: {way: row.value for way, row in ways.items()}
        for label, ways in result.labelled(measure).items()
    }


def means(result, measure=""):
    return {label: sum(of.values()) / len(of) for label, of in values(result, measure).items()}


def counts(result):
    """Label -> the number of sentences, the same in all ways and of all measures."""
    counted = {}
    for row in result.rows:
        assert counted.setdefault(result.label_of(row), row.count) == row.count
    return counted


def hits(row):
    """Of each sentence whether it counts, by the bits alone."""
    return unpacked(row.hits, row.count).tolist()


FACTS = ("benchmark", "version", "system", "metric", "higher_is_better", "label", "parallel")
FACTS += ("languages", "protocol", "details")


def check_golden(name, path):
    """Compare a score file with tests/golden/scores/NAME: a line per row, + for a hit."""
    file = read_score_file(path)
    lines = []
    for key in FACTS:
        value = json.loads(json.dumps(getattr(file, key)), parse_float=lambda x: round(float(x), 4))
        lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    for row in file.rows:
        bits = "".join("-+"[hit] for hit in hits(row)) if row.hits else "no hits"
        name_of = f"{row.direction} {row.measure}".strip()
        lines.append(f"{name_of}: {row.value:.2f} of {row.count}, {bits}")
    golden.check(f"scores/{name}", "\n".join([*lines, ""]))


def by_direction(result):
    return {
        name: ([row for row in result.rows if row.direction == name], details)
        for name, details in result.details.items()
    }
