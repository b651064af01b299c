"""Laws of the paper's printed numbers: they agree among themselves, but for the ones named."""

import pytest
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


@pytest.mark.parametrize("name", list(load_models()))
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


def test_each_printed_group_mean_is_the_mean_of_its_languages_but_the_one_named():
    off, checked = set(), 0
    for model in load_models().values():
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
