"""Laws of the paper's printed numbers: they agree among themselves, but for the ones named."""

from statistics import mean

import pytest
from made.papers import COPIES
from made.papers import read as rows_of
from made.tables import MUSE

from ems.config.languages import load_languages
from ems.tables.printed import (
    in_paper_order,
    in_table_one_order,
    load_accuracies,
    load_flores_groups,
    load_groups,
    load_models,
    load_pair_totals,
    load_pairs,
    load_table,
)


def off_by_more(name):
    """Models of a CSV whose printed average is not that of their row, and how many were checked."""
    values, averages = {}, {}
    for row in rows_of(name, lambda row: row.get("value")):
        model = row.get("group", ""), row.get("model") or row.get("method")
        column = next((row[key] for key in ("language", "pair", "direction") if key in row), None)
        if column in ("Avg.", "overall"):
            averages[model] = float(row["value"])
        elif column and (column != "en" or "xnli" not in name):
            values.setdefault(model, []).append(float(row["value"]))
    off = {m for m, average in averages.items() if abs(mean(values[m]) - average) > 0.05 + 1e-9}
    return {model for _, model in off}, len(averages)


def test_each_average_of_each_printed_table_is_that_of_its_row_but_one():
    """Read without ems. The tables not named here print no average of a row (VII, XIV and RCV2: see
    the tests of groups, below and of Table XIV)."""
    mistakes = {path.stem: off_by_more(path.stem) for path in sorted(COPIES.glob("*.csv"))}
    checked = {name: count for name, (_, count) in mistakes.items() if count}
    assert checked == {
        "ems-v2-table04-tatoeba": 8,
        "ems-v2-table06-tatoeba-unseen": 8,
        "ems-v2-table09-bucc": 7,
        "ems-v2-table10-paracrawl": 5,
        "ems-v2-table11-mldoc": 5,
        "ems-v2-table12-amazon-v1": 5,
        "ems-v2-table13-amazon-v2": 5,
        "lightweight-table03-mldoc": 6,
        "lightweight-table04-xsr": 5,
        "lightweight-table10-reimers": 4,
        "monolingual-table01-xnli": 6,
    }
    off = {name: models for name, (models, _) in mistakes.items() if models}
    assert off == {"ems-v2-table06-tatoeba-unseen": {"LASER2"}}


def test_the_means_of_table_fourteen_are_those_of_the_tables_that_it_sums_up():
    """Its 58 languages are its 43 and 15, to 0.06 since those two are rounded; three of its rows
    are models of Tables IV, VII and XI."""
    rows = {}
    for row in rows_of("ems-v2-table14-ablation"):
        if row["value"]:
            rows.setdefault(row["model"].split(" (")[0], {})[row["column"]] = float(row["value"])
    assert len(rows) == 10
    for row in rows.values():
        weighted = 43 * row["Tatoeba >300k (43)"] + 15 * row["Tatoeba <300k (15)"]
        assert weighted / 58 == pytest.approx(row["Tatoeba Avg. (58)"], abs=0.06)
    for name in ("EMS", "LaBSE-EMS-vanilla", "LaBSE-EMS-joint"):
        model = load_models()[name]
        assert model.seen_average == rows[name]["Tatoeba Avg. (58)"]
        for heading, codes in load_groups("XIV").items():
            expected = rows[name][f"Tatoeba {heading}"]
            values = [model.seen[code] for code in codes]
            assert mean(values) == pytest.approx(expected, abs=0.05)
    for name in ("EMS", "LaBSE-EMS-joint"):
        for heading in load_flores_groups():
            assert (
                rows[name][f"Flores {heading}"]
                == load_table("ems-v2-table07-flores", "pair")[name][heading]
            )
        documents = load_accuracies("ems-v2-table11-mldoc")[name]
        for side, column in ((0, "en->X"), (1, "X->en")):
            values = [v for k, v in documents.items() if [*k.split("-"), ""][side] == "en"]
            expected = rows[name][f"MLDoc {column} Avg."]
            assert sum(values) / 7 == pytest.approx(expected, abs=0.05 + 1e-9)


def test_each_printed_group_mean_is_the_mean_of_its_languages_but_the_one_named():
    off, checked = set(), 0
    for model in [model for model in load_models().values() if model.seen]:
        for heading, codes in load_groups().items():
            printed = model.groups[heading]
            if printed is not None:
                mean = sum(model.seen[code] for code in codes) / len(codes)
                checked += 1
                if abs(mean - printed) > 0.05 + 1e-9:
                    off.add((model.name, heading))
    assert checked == 43  # 48 cells less the 5 dashes of models of Table IV
    assert off == {("LASER2", "<300k (11)")}


def test_groups_have_the_members_that_the_printed_means_average():
    groups = {heading.split(" (")[0]: set(codes) for heading, codes in load_groups().items()}
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
    groups = {heading.split(" (")[0]: set(codes) for heading, codes in load_groups().items()}
    assert (groups["<LASER"], groups[">300k"], groups["<300k"]) == (less, large, small)


def test_table_one_agrees_with_itself_and_with_the_language_table():
    languages = load_languages()
    assert len(load_pairs()) == 61
    for name, pairs in load_pairs().items():
        assert languages[name].ems_pairs == pairs.ems_printed
        for text, number in ((pairs.laser_printed, pairs.laser), (pairs.ems_printed, pairs.ems)):
            factor = {"k": 1000, "M": 1_000_000}.get(text[-1])
            assert number == (round(float(text[:-1]) * factor) if factor else None)
    sums = [sum(getattr(of, key) or 0 for of in load_pairs().values()) for key in ("laser", "ems")]
    assert [total / 1e6 for total in sums] == pytest.approx([206.6, 143.6], abs=0.05)
    totals = load_pair_totals()  # as the README says, they are not those of the rows
    assert (totals.laser_printed, totals.laser) == ("204M", 204_000_000)
    assert (totals.ems_printed, totals.ems) == ("143M", 143_000_000)


def test_orders_are_the_papers_and_what_they_lack_comes_last_by_the_alphabet():
    codes = {"zzz", "aaa", "amh", "vie", "afr"}  # of neither, neither, VI, IV, IV
    assert in_paper_order(codes) == ["afr", "vie", "amh", "aaa", "zzz"]
    assert list(load_pairs()) == sorted(load_pairs())
    assert in_table_one_order({"zh", "aa", "af", "yo"}) == ["af", "yo", "zh", "aa"]
