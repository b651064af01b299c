"""Every table of score files, written through the registry: dashes, refused scores, bytes."""

import ast
from types import SimpleNamespace

import pytest
from conftest import ROOT
from made.scores import (
    BUCC,
    EUROPARL,
    RETRIEVAL,
    both_measures,
    both_ways,
    edit,
    fives,
    write_accuracies,
    write_alignment,
    write_bucc,
    write_cosine,
    write_file,
    write_flores,
    write_noisy,
    write_retrieval,
    write_scores,
)
from made.tables import SUFFIXES, csv_rows

from ems.base.errors import EmsError
from ems.config.plugins import benchmarks
from ems.tables.printed import load_flores_groups
from ems.tables.registry import outputs

MUSE, LOW = load_flores_groups().values()
ISO = {"deu": "de", "fra": "fr"}
NAMES = ["a", "b", "c"]
WAYS = {"de": (10.0, 20.0), "fr": (30.0, 40.0)}


def made(shown=NAMES, families=None, printed=("EMS",)):
    system = SimpleNamespace(train=SimpleNamespace(steps=5))
    return SimpleNamespace(
        shown=shown,
        ablated=shown,
        families=families or {},
        evalsets=("tatoeba",),
        tables=SimpleNamespace(printed=list(printed), intervals=False),
        systems=dict.fromkeys(shown, system),
        learning=lambda names: names,
        scores_unseen=lambda evalset, system: True,
    )


def accuracy(benchmark):
    values = fives(["en-en", "en-de", "en-fr"])
    return lambda folder, name: [write_accuracies(folder, benchmark, name, values)]


def tatoeba(folder, name):
    return [write_scores(folder, name, {"deu": 5.0, "fra": 6.0}, ISO)]


def flores(folder, name):
    return [write_flores(folder, name, [*MUSE[:4], *LOW[:3]])]


def wmt(folder, name):
    rows = [*both_ways(WAYS), *({**each, "measure": "news"} for each in both_ways(WAYS))]
    known = {"label": "source", "protocol": {"k": 4, "margin": "ratio"}}
    return [write_file(folder, name, "wmt24pp", "P@1", rows, [*WAYS, "en"], **known)]


ACCURACIES = ("mldoc", "cls", "marc", "rcv2", "xnli", "sib200", "counterfactual", "pawsx")
FILES = {  # table -> the score files of a system
    "tatoeba": tatoeba,
    "tatoeba_unseen": lambda folder, name: [
        write_scores(folder, name, {"isl": 5.0, "deu": 6.0}, {"isl": "und"})
    ],
    "ntrex": lambda folder, name: [
        write_scores(folder, name, {"de": 5.0, "fr": 6.0}, benchmark="ntrex")
    ],
    "flores": flores,
    "own": lambda folder, name: [
        write_file(folder, name, "own", "P@1", both_ways(WAYS), [*WAYS, "en"], label="direction")
    ],
    "wmt24pp": wmt,
    "wmt24pp_kinds": wmt,
    "noisy": lambda folder, name: [
        write_noisy(folder, name, {"de": {"clean": 60.0, "upper case": 50.0}, "ja": {"clean": 9.0}})
    ],
    "xsim": lambda folder, name: both_measures(folder, name, 1.5, 40),
    "wordorder": lambda folder, name: [write_cosine(folder, name, 0.5)],
    "alignment": lambda folder, name: [write_alignment(folder, name, 60)],
    "bucc2018": lambda folder, name: [write_bucc(folder, name, {"de": 5.0, "zh": 6.0})],
    "paracrawl": lambda folder, name: [write_retrieval(folder, name, "paracrawl", WAYS)],
    "europarlxsr": lambda folder, name: [
        write_retrieval(folder, name, "europarlxsr", WAYS, EUROPARL)
    ],
    **{name: accuracy(name) for name in ACCURACIES},
    "ablation": lambda folder, name: [
        *tatoeba(folder, name),
        *flores(folder, name),
        write_accuracies(folder, "mldoc", name, fives(["en-de", "de-en"])),
    ],
}
PRINTED = {"tatoeba", "tatoeba_unseen", "flores", "bucc2018", "paracrawl", "europarlxsr", "mldoc"}
PRINTED |= {"marc", "rcv2", "xnli", "alignment"}  # of data with a version
OTHER_DATA = [(name, {"version": "mine"}, "these scores of mine") for name in sorted(PRINTED)]
OTHER_DATA += [
    ("ablation", {"version": "mine"}, "Tatoeba mine"),
    ("tatoeba", {"version": "mine"}, "left out (LASER, EMS): they are of Tatoeba v1"),
    ("mldoc", {"version": "mine"}, "left out (LASER, EMS): they are of version v1"),
    ("bucc2018", {"protocol": BUCC | {"threshold": "sample"}}, "its sample part"),
    ("bucc2018", {"protocol": BUCC | {"k": 8}}, "8 neighbours"),
    ("paracrawl", {"protocol": RETRIEVAL | {"candidates": 2000}}, "of ParaCrawl v5, 2,000 queries"),
    ("paracrawl", {"protocol": RETRIEVAL | {"margin": "absolute"}}, "of ParaCrawl v5"),
]


def table(name, experiment, sources, out):
    outputs()["table"][name].make(experiment, sources, out)
    rows = csv_rows(out).items()
    cells = {(label, head): cell for label, row in rows for head, cell in row.items()}
    return cells, out.read_text(encoding="utf-8")


def labels(cells):
    return list(dict.fromkeys(row for row, _ in cells))


def test_each_table_of_score_files_is_tested_here():
    others = {"corpora", "decontamination", "filters", "vocabulary", "models", "sweep", "mining"}
    assert set(outputs()["table"]) == {*FILES, "mldoc_bilingual", "bucc_missed"} | others


def test_the_engine_knows_no_benchmark_by_name():
    words = [
        node
        for path in sorted((ROOT / "ems" / "tables").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    ]
    assert len(words) > 1000
    assert not {word.value for word in words if isinstance(word.value, str)} & set(benchmarks())


@pytest.mark.parametrize("name", list(FILES))
def test_a_missing_score_file_leaves_dashes_in_its_cells_and_a_note(name, tmp_path):
    scores = {system: FILES[name](tmp_path, system) for system in NAMES}
    every = [path for paths in scores.values() for path in paths]
    whole, note = table(name, made(), every, tmp_path / "t.tex")
    assert "no score file" not in note
    for absent in [every[0], *scores["b"]]:
        left = [path for path in every if path != absent]
        shown, note = table(name, made(), left, tmp_path / "t.tex")
        changed = {place for place in whole if shown[place] != whole[place]}
        own = {(row, head) for row, head in whole if is_of(name, row, head, absent)}
        assert list(shown) == list(whole)
        assert changed
        assert changed == {place for place in own if whole[place]}
        assert {shown[place] for place in changed} == {""}
        assert f"no score file {absent.parent.name}/{absent.name}." in note


def is_of(table, row, head, path):
    label, _, system = row.rpartition(": ")
    if head == "Model" or system.partition(",")[0] != path.parent.name:
        return False
    if table == "xsim":
        return label.replace("++", "pp") == path.stem
    if table == "ablation":
        return head.split()[0].lower() == path.stem.removesuffix("200")
    return True


@pytest.mark.parametrize("name", list(FILES))
def test_bytes_depend_on_the_scores_alone_and_rows_have_the_requested_order(name, tmp_path):
    written, shown = [], []
    for folder, order in ((tmp_path / "one", NAMES), (tmp_path / "two" / "deeper", NAMES[::-1])):
        paths = [path for system in order for path in FILES[name](folder, system)]
        cells, _ = table(name, made(["c", "a", "b"]), paths, folder / "t.tex")
        written.append([(folder / "t").with_suffix(suffix).read_bytes() for suffix in SUFFIXES])
        shown = [label.rpartition(": ")[2] for label in labels(cells)]
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])
    assert [label for label in shown if label in NAMES][:3] == ["c", "a", "b"]


@pytest.mark.parametrize(("name", "change", "reason"), OTHER_DATA)
def test_scores_of_other_data_have_a_note_instead_of_printed_rows(name, change, reason, tmp_path):
    paths = FILES[name](tmp_path, "a")
    experiment = made(["a"], printed=("EMS", "LASER", "Lightweight"))
    cells, _ = table(name, experiment, paths, tmp_path / "t.tex")
    assert any("(printed)" in label for label in labels(cells))
    edit(paths[0], lambda data: data.update(change))
    cells, note = table(name, experiment, paths, tmp_path / "t.tex")
    assert {label.partition(",")[0] for label in labels(cells)} <= {"a", "by length alone"}
    assert "(printed)" not in note
    assert ("Printed rows left out (" in note) == (name != "ablation")
    assert reason in note


CHANGES = {
    "version": "demo-v1",
    "data_sha256": "e" * 64,
    "protocol": {"k": 5, "margin": "ratio", "threshold": "oracle"},
    "benchmark": "other",
    "metric": "G1",
    "rows": [],
    "system": "a",
}


@pytest.mark.parametrize("key", list(CHANGES))
@pytest.mark.parametrize("name", ["tatoeba", "flores", "xsim", "bucc2018", "mldoc", "ablation"])
def test_scores_that_cannot_share_a_table_are_an_error_that_names_the_file(name, key, tmp_path):
    paths = [FILES[name](tmp_path, system)[0] for system in "ab"]
    edit(paths[1], lambda data: data.update({key: CHANGES[key]}))
    messages = {"system": "two score files", "rows": "expected at least one score under `rows`"}
    with pytest.raises(EmsError, match=messages.get(key, key)) as error:
        table(name, made(["a", "b"]), paths, tmp_path / "t.tex")
    assert str(paths[1]) in str(error.value)
    assert not list(tmp_path.glob("t.*"))


FAMILIES = {"one": ["a-de", "a-fr"], "two": ["b-de", "b-fr"]}
THREE = {language: code for code, language in ISO.items()}
OF_PAIRS = {  # table -> the score file of a system of one language
    "tatoeba": lambda folder, name, code: write_scores(folder, name, {THREE[code]: 5.0}),
    "ntrex": lambda folder, name, code: write_scores(folder, name, {code: 5.0}, benchmark="ntrex"),
    "flores": lambda folder, name, code: write_flores(folder, name, ["en", code]),
    "europarlxsr": lambda folder, name, code: write_retrieval(
        folder, name, "europarlxsr", {code: (10.0, 20.0)}, EUROPARL
    ),
    "mldoc_bilingual": lambda folder, name, code: write_accuracies(
        folder, "mldoc", name, fives([f"en-{code}", f"{code}-en"])
    ),
}
OF_PAIRS["ablation"] = OF_PAIRS["tatoeba"]


@pytest.mark.parametrize("name", list(OF_PAIRS))
def test_systems_of_one_language_each_share_a_row_with_dashes_for_absent_ones(name, tmp_path):
    members = [member for of in FAMILIES.values() for member in of]
    others = ["all-de"] if name == "mldoc_bilingual" else []  # which is no model of one pair
    experiment = made([*members, *others], FAMILIES, printed=())
    paths = [OF_PAIRS[name](tmp_path, each, each[-2:]) for each in [*members, *others]]
    whole, note = table(name, experiment, paths, tmp_path / "t.tex")
    assert [label for label in labels(whole) if "s.d." not in label] == list(FAMILIES)
    assert "One system per language: one, two." in note
    shown, note = table(name, experiment, paths[1:], tmp_path / "t.tex")
    assert list(shown) == list(whole)
    changed = {place for place in whole if shown[place] != whole[place]}
    assert changed
    assert {row.partition(",")[0] for row, _ in changed} == {"one"}
    assert not any("fr" in head for _, head in changed)  # the other one's cells stay
    assert {shown[place] for place in changed} == {""}
    assert f"no score file a-de/{paths[0].name}." in note
