"""Laws of the paper's printed numbers: they agree among themselves, but for the ones named."""

import csv

import pytest
from conftest import ROOT
from tables_made import MUSE

from ems.languages import load_languages
from ems.tables.printed import (
    in_paper_order,
    in_table_one_order,
    load_groups,
    load_models,
    load_pair_totals,
    load_pairs,
)

PRINTED = ROOT / "ems" / "tables" / "printed"


@pytest.mark.parametrize("name", [name for name, of in load_models().items() if of.seen])
def test_each_printed_average_is_the_mean_of_its_row_but_the_one_named(name):
    model = load_models()[name]
    assert (len(model.seen), len(model.unseen)) == (58, 54)
    off = set()
    for table, values, average in (
        ("IV", model.seen, model.seen_average),
        ("VI", model.unseen, model.unseen_average),
    ):
        if abs(sum(values.values()) / len(values) - average) > 0.05 + 1e-9:
            off.add(table)
    assert off == ({"VI"} if name == "LASER2" else set())


def rows_of(name):
    with open(PRINTED / name, encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def off_by_more(name):
    """The rows of a CSV whose printed average is not theirs to 0.05, and how many were checked."""
    values, averages = {}, {}
    for row in rows_of(name):
        model = (row.get("group", ""), row.get("model") or row.get("method"))
        columns = [row[key] for key in ("language", "pair", "direction") if key in row]
        if columns and row.get("value") and columns[0] in ("Avg.", "overall"):
            averages[model] = float(row["value"])
        elif columns and row.get("value") and (columns[0] != "en" or "xnli" not in name):
            values.setdefault(model, []).append(float(row["value"]))
    means = {model: sum(values[model]) / len(values[model]) for model in averages}
    off = {model[1] for model, mean in means.items() if abs(mean - averages[model]) > 0.05 + 1e-9}
    return off, len(averages)


def test_each_average_of_each_printed_table_is_that_of_its_row_but_one():
    """Read without ems. The tables not named here print no average of a row (VII, XIV and RCV2: see
    the tests of groups, below and of Table XIV)."""
    found = {path.name: off_by_more(path.name) for path in sorted(PRINTED.glob("*.csv"))}
    checked = {name: count for name, (_, count) in found.items() if count}
    assert checked == {
        "ems-v2-table04-tatoeba.csv": 8,
        "ems-v2-table06-tatoeba-unseen.csv": 8,
        "ems-v2-table09-bucc.csv": 7,
        "ems-v2-table10-paracrawl.csv": 5,
        "ems-v2-table11-mldoc.csv": 5,
        "ems-v2-table12-amazon-v1.csv": 5,
        "ems-v2-table13-amazon-v2.csv": 5,
        "lightweight-table03-mldoc.csv": 6,
        "lightweight-table04-xsr.csv": 5,
        "lightweight-table10-reimers.csv": 4,
        "monolingual-table01-xnli.csv": 6,
    }
    off = {name: models for name, (models, _) in found.items() if models}
    assert off == {"ems-v2-table06-tatoeba-unseen.csv": {"LASER2"}}


def test_the_means_of_table_fourteen_are_those_of_the_tables_that_it_sums_up():
    """Its 58 languages are its 43 and 15, to 0.06 since those two are rounded; three of its rows
    are models of Tables IV and XI."""
    rows = {}
    for row in rows_of("ems-v2-table14-ablation.csv"):
        if row["value"]:
            rows.setdefault(row["model"], {})[row["column"]] = float(row["value"])
    assert len(rows) == 10
    for row in rows.values():
        weighted = 43 * row["Tatoeba >300k (43)"] + 15 * row["Tatoeba <300k (15)"]
        assert weighted / 58 == pytest.approx(row["Tatoeba Avg. (58)"], abs=0.06)
    groups = load_groups("XIV")
    for name in ("EMS", "LaBSE-EMS-vanilla", "LaBSE-EMS-joint (ours)"):
        model = load_models()[name.removesuffix(" (ours)")]
        assert model.seen_average == rows[name]["Tatoeba Avg. (58)"]
        for group in groups:
            mean = sum(model.seen[code] for code in group.languages) / len(group.languages)
            assert mean == pytest.approx(rows[name][f"Tatoeba {group.heading}"], abs=0.05)
    for name in ("EMS (ours)", "LaBSE-EMS-joint (ours)"):
        row = rows.get(name) or rows["EMS"]
        flores = {
            r["pair"]: float(r["value"])
            for r in rows_of("ems-v2-table07-flores.csv")
            if r["model"] == name
        }
        assert [row["Flores mUSE (182)"], row["Flores <300k (240)"]] == [
            flores["mUSE (182)"],
            flores["<300k (240)"],
        ]
        for arrow, column in (("->", "en->X"), ("<-", "X->en")):
            values = [
                float(r["value"])
                for r in rows_of("ems-v2-table11-mldoc.csv")
                if r["model"] == name and arrow in r["direction"]
            ]
            assert sum(values) / 7 == pytest.approx(row[f"MLDoc {column} Avg."], abs=0.05 + 1e-9)


def test_the_totals_of_table_one_are_those_of_its_rows_but_as_the_readme_says():
    pairs = load_pairs().values()
    assert sum(of.laser or 0 for of in pairs) / 1e6 == pytest.approx(206.6, abs=0.05)  # 204M
    assert sum(of.ems or 0 for of in pairs) / 1e6 == pytest.approx(143.6, abs=0.05)  # 143M
    totals = load_pair_totals()
    assert (totals.laser, totals.ems) == (204_000_000, 143_000_000)


def test_each_printed_group_mean_is_the_mean_of_its_languages_but_the_one_named():
    off, checked = set(), 0
    for model in [model for model in load_models().values() if model.seen]:
        for group in load_groups():
            printed = model.groups[group.heading]
            if printed is not None:
                mean = sum(model.seen[code] for code in group.languages) / len(group.languages)
                checked += 1
                if abs(mean - printed) > 0.05 + 1e-9:
                    off.add((model.name, group.heading))
    assert checked == 43  # 48 cells less the 5 dashes of models of Table IV
    assert off == {("LASER2", "<300k (11)")}


def test_groups_have_the_members_that_the_printed_means_average():
    groups = {group.name: set(group.languages) for group in load_groups()}
    sizes = {name: len(codes) for name, codes in groups.items()}
    assert sizes == {
        "mUSE": 14,
        "XTREME": 37,
        "SBERT-distill": 45,
        "<LASER": 43,
        ">300k": 42,
        "<300k": 11,
    }
    assert groups["mUSE"] == MUSE
    assert not {"kur", "max"} & groups["SBERT-distill"]
    assert {"max"} <= groups["XTREME"]


def test_the_groups_by_amount_of_data_follow_from_table_one():
    codes = {name: language.tatoeba_v1 for name, language in load_languages().items()}
    less, large, small = set(), set(), set()
    for name, pairs in load_pairs().items():
        if pairs.laser is None or pairs.ems is None or not codes[name]:
            continue
        if pairs.ems < pairs.laser:
            less.add(codes[name])
        if min(pairs.ems, pairs.laser) >= 300_000:
            large.add(codes[name])
        if max(pairs.ems, pairs.laser) < 300_000:
            small.add(codes[name])
    groups = {group.name: set(group.languages) for group in load_groups()}
    assert (groups["<LASER"], groups[">300k"], groups["<300k"]) == (less, large, small)


def test_table_one_agrees_with_itself_and_with_the_language_table():
    languages = load_languages()
    assert len(load_pairs()) == 61
    for name, pairs in load_pairs().items():
        assert languages[name].ems_pairs == pairs.ems_printed
        for text, number in ((pairs.laser_printed, pairs.laser), (pairs.ems_printed, pairs.ems)):
            factor = {"k": 1000, "M": 1_000_000}.get(text[-1])
            assert number == (round(float(text[:-1]) * factor) if factor else None)
    totals = load_pair_totals()
    assert (totals.laser_printed, totals.ems_printed) == ("204M", "143M")


def test_paper_order_is_table_four_then_six_then_the_alphabet():
    assert in_paper_order({"zzz", "aaa", "amh", "vie", "afr"}) == [
        "afr",
        "vie",
        "amh",
        "aaa",
        "zzz",
    ]


def test_the_order_of_table_one_is_the_alphabet_and_what_it_lacks_comes_last():
    assert list(load_pairs()) == sorted(load_pairs())
    assert in_table_one_order({"zh", "aa", "af", "yo"}) == ["af", "yo", "zh", "aa"]
