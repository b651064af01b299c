"""Laws of `ems corpora search` and `ems init`: what is chosen by the rule, and a file that runs."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from made import golden
from made.cli import Cli
from made.experiments import one_line

from ems.base.errors import EmsError
from ems.config.languages import (
    load_languages,
    load_tatoeba_codes,
    opus_files,
    opus_pair,
    opus_releases,
)
from ems.config.load import load_experiment, load_site
from ems.corpora.catalogue import NOISE, catalogue_entry
from ems.workflow import init
from ems.workflow.search import (
    find_language,
    language_of,
    named_languages,
    nearest,
    offers,
    partners,
    relatives,
    search,
)

BASQUE = [("en", "cy"), ("en", "eu"), ("en", "yo")]  # little, more, least
BUDGET = 600_000


@pytest.fixture
def ems(tmp_path):
    return Cli(tmp_path)


# --- names


def picked(text):
    pair, budget, corpus = text.split()
    picks = init.choose([tuple(pair.split("-"))], int(budget))
    (pick,) = (each for each in picks if each.offer.corpus == corpus)
    return f"{pick.most:,} pairs: {pick.reason}"


ACTS = {
    "pick": picked,
    "name": lambda text: find_language(text).code,
    "relatives": lambda text: " ".join(each.code for each in relatives(find_language(text))),
    "code": lambda text: language_of(*text.split()) or "none",
    "budget": lambda text: f"{init.read_budget(text):,}",
    "languages": lambda text: str(init.language_pairs(init.read_languages(text))),
    "size": lambda text: str(init.size_for(*map(int, text.split()))),
    "steps": lambda text: str(init.steps_for(init.size_for(2, int(text)), int(text))),
    "vocabulary": lambda text: str(init.vocabulary_size(*map(int, text.split()))),
}


def test_what_is_typed_is_read_as_languages_codes_budgets_and_sizes():
    def read(line):
        act, _, text = line.partition(":")
        try:
            return ACTS[act](text.removeprefix(" ")) or "none"
        except EmsError as error:
            return str(error)

    golden.replay("start.txt", read)


def test_every_language_of_ours_and_of_the_benchmarks_has_a_name():
    assert set(load_languages()) <= set(named_languages())
    for code, language in named_languages().items():
        assert language.language.iso1 == code
        assert not (code in load_languages() and language.flores200)
    own = {language.language.tatoeba_v1 for language in named_languages().values()}
    assert set(load_tatoeba_codes()) - own == {"ber"}  # a group of languages
    flores = [each.language.flores200 for each in named_languages().values()]
    assert len(set(flores) - {""}) > 190
    welsh = find_language("cy").language
    assert (welsh.tatoeba_v1, welsh.flores200, welsh.script) == ("cym", "cym_Latn", "Latin")


# --- search


def test_a_search_shows_what_an_entry_of_corpora_takes():
    found = {offer.corpus: offer for offer in search(find_language("cy"), find_language("pl"))}
    aligned = found["MultiCCAligned"]
    assert (aligned.files, aligned.noise) == (("cy-pl",), "mined")
    assert aligned.pairs == opus_files("MultiCCAligned", aligned.version)["cy-pl"].pairs
    assert found["Ubuntu"].pairs is None
    order = [list(NOISE).index(offer.noise) for offer in offers("en", "de")]
    assert order == sorted(order)
    for offer in offers("zh", "en"):
        assert set(offer.files) == set(opus_pair(offer.corpus, offer.version, "en", "zh"))
        versions = opus_releases()[offer.corpus]
        newer = versions[versions.index(offer.version) + 1 :]
        assert not any(opus_pair(offer.corpus, version, "en", "zh") for version in newer)
    (subtitles,) = [each for each in offers("zh", "en") if each.corpus == "OpenSubtitles"]
    assert (subtitles.version, subtitles.files) == ("v2024", ("en-zh_CN", "en-zh_TW"))


def test_what_is_not_there_is_one_line_with_what_is():
    dari, manx = find_language("prs"), find_language("gv")
    assert partners()["prs"]
    text = one_line(search, dari, manx)
    assert "OPUS has no text of Dari (prs) and Manx (gv)" in text
    assert "it has Dari (prs) with " in text
    assert "related languages in OPUS: Persian (fa)" in text
    assert "found Manx (gv) twice" in one_line(search, manx, manx)
    assert nearest(find_language("eu")) == ""


def test_the_command_lists_a_language_with_english_or_a_pair(ems):
    text = ems.run("corpora", "search", "Welsh")[0]
    assert text.startswith("Welsh (cy) and English (en): ")
    assert "CCAligned" in text
    rows = json.loads(ems.run("corpora", "search", "cy", "pl", "--json")[0])
    assert ("QED", "research only") in {(row["corpus"], row["licence"]) for row in rows}
    small = {row["corpus"] for row in rows if row["sentence_pairs"] and row["sentence_pairs"] < 300}
    text = ems.run("corpora", "search", "cy", "pl")[0]
    every = ems.run("corpora", "search", "cy", "pl", "--all")[0]
    assert small
    assert all(name not in text and name in every for name in small)
    assert "expected a language, found none" in ems.error("corpora", "search")


# --- the rule


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=9), st.integers(0, 10**6))
def test_shares_are_even_and_leave_nothing_that_could_be_used(have, budget):
    parts = init.shares(have, budget)
    assert all(0 <= part <= most for part, most in zip(parts, have, strict=True))
    assert min(budget, sum(have)) - len(have) < sum(parts) <= budget
    short = [part for part, most in zip(parts, have, strict=True) if part < most]
    assert not short or max(parts) - min(short) <= len(have)


def taken(picks, pair, *noises):
    return [p for p in picks if p.pair == pair and p.most and p.offer.noise in (noises or NOISE)]


def test_a_pair_takes_clean_text_before_mined_text_and_no_more_than_its_share():
    picks = init.choose(BASQUE, BUDGET)
    sums = {pair: sum(pick.most for pick in taken(picks, pair)) for pair in BASQUE}
    assert sum(sums.values()) <= BUDGET
    assert all(sums[pair] > 0 for pair in BASQUE)
    for pair in BASQUE:
        mined = taken(picks, pair, "mined")
        better = [p for p in picks if p.pair == pair and p.offer.noise in ("clean", "fair")]
        left = [p for p in better if not p.most and p.reason == "the share is full"]
        assert not (mined and left)
        assert sum(pick.most for pick in mined) <= BUDGET / len(BASQUE)
        strings = sum(pick.most for pick in taken(picks, pair, "strings"))
        assert strings <= sums[pair] / 9
    assert taken(picks, ("en", "yo"), "mined")  # else nothing was seen


def test_every_corpus_of_a_pair_is_taken_or_left_out_and_names_never_are_taken():
    picks = init.choose([("en", "pl")], 10**9)
    assert {pick.offer.corpus for pick in picks} == {each.corpus for each in offers("en", "pl")}
    assert all(pick.most >= init.LEAST_PAIRS for pick in picks if pick.most)
    assert not [pick for pick in picks if pick.most and pick.offer.noise == "names"]
    assert sum(pick.most for pick in init.choose([("de", "fr")], 50_000)) == 50_000


def test_of_text_that_programs_found_the_cleaner_comes_first_and_two_crawls_are_better_than_one():
    picks = {pick.offer.corpus: pick for pick in init.choose([("en", "cy")], 5_000_000)}
    assert sum(pick.most for pick in picks.values()) == 5_000_000
    assert picks["HPLT"].most > picks["NLLB"].most > 500_000
    assert picks["CCAligned"].most == 0
    assert picks["MultiHPLT"].reason == "repeats HPLT"
    few = {pick.offer.corpus: pick for pick in init.choose([("en", "cy")], 1_200_000)}
    assert few["NLLB"].reason == "too large for the share"
    icelandic = init.choose([("en", "is")], 10**9)
    repeated = {
        pick.offer.corpus: pick.reason for pick in icelandic if "% of it is in" in pick.reason
    }
    assert repeated["NLLB"] == "100% of it is in CCMatrix"


def test_religious_text_is_a_tenth_unless_there_is_no_other():
    taken = {pick.offer.corpus: pick.most for pick in init.choose([("en", "sw")], 300_000)}
    assert (sum(taken.values()), taken["Tanzil"]) == (300_000, 30_000)
    rest = {pick.offer.corpus: pick for pick in init.choose([("ha", "en")], 10**8)}
    assert rest["Tanzil"].most == rest["Tanzil"].offer.pairs
    only = [pick for pick in init.choose([("am", "dv")], 10**6) if pick.most]
    assert {pick.offer.corpus for pick in only} & {"Tanzil"}


def test_licences_that_forbid_commercial_use_are_named_and_can_be_left_out(ems, tmp_path):
    out = ems.run("init", "--languages", "en,cy", "--out", "configs/all.yaml")[0]
    assert "no commercial use: QED" in out
    out = ems.run("init", "--languages", "en,cy", "--commercial", "--out", "configs/some.yaml")[0]
    assert "no commercial use" not in out
    assert "QED" not in (tmp_path / "configs/some.yaml").read_text()


def test_each_pair_validates_on_one_corpus_and_trains_on_what_is_left_of_it():
    picks = [pick for pick in init.choose(BASQUE, BUDGET) if pick.most]
    chosen = init.validation_of(picks)
    assert sorted(pair for pairs in chosen.values() for pair in pairs) == sorted(BASQUE)
    assert {catalogue_entry(name).noise for name in chosen} <= {"clean", "fair"}


# --- the sizes

SIZED = st.tuples(st.integers(2, 200), st.integers(1000, 10**9))  # languages, pairs


def sizes(languages, pairs):
    size = init.size_for(languages, pairs)
    return init.vocabulary_size(languages, pairs), size.table, size.ngrams


def megabytes(languages, pairs):
    pieces, table, ngrams = sizes(languages, pairs)
    return (pieces + ngrams) * table * 4 / 1e6


@given(SIZED, SIZED)
def test_more_languages_or_pairs_never_make_a_smaller_model(one, other):
    less, more = (tuple(map(choose, one, other)) for choose in (min, max))
    assert all(low <= high for low, high in zip(sizes(*less), sizes(*more), strict=True))


def test_little_text_gets_a_small_model_and_much_text_that_of_small62_or_more():
    assert megabytes(2, 5000) < 12
    assert megabytes(2, 50_000) < 30
    for pairs in (2_000_000, 20_000_000):
        wanted = zip(sizes(62, pairs), (32_000, 256, 65_536), strict=True)
        assert all(size >= least for size, least in wanted)


# --- the file


@pytest.mark.parametrize("languages", ["en,cy,uk,pl", "sw,yo,en", "en,zh,ja,ka,gd,ckb"])
def test_the_file_is_a_valid_experiment_with_what_was_chosen(ems, tmp_path, languages):
    out = ems.run("init", "--languages", languages, "--budget", "300k")[0]
    assert ("zh takes OPUS's" in out) == ("zh" in languages)  # its codes are zh_CN and so on
    assert "experiment mine is fine" in ems.run("check", "--experiment", "mine")[1]
    site = load_site(tmp_path / "config.yaml", {"experiment": "mine"})
    experiment = load_experiment("mine", site, tmp_path / "configs")
    assert set(experiment.languages) == {each.code for each in init.read_languages(languages)}
    assert set(experiment.segmenters.values()) == {"unicode"}
    assert experiment.vocabulary.byte_fallback
    assert experiment.export.systems == ["ems-plus"]
    picks = init.choose(init.language_pairs(init.read_languages(languages)), 300_000)
    picks = [pick for pick in picks if pick.most]
    corpora = {(corpus.name, corpus.version): corpus for corpus in experiment.corpora}
    assert set(corpora) == {(pick.offer.corpus, pick.offer.version) for pick in picks}
    for pick in picks:
        corpus, pair = corpora[pick.offer.corpus, pick.offer.version], "-".join(sorted(pick.pair))
        assert corpus.files(pair) == pick.offer.files
        cap = pick.most // len(pick.offer.files) if pick.most < pick.offer.pairs else None
        assert corpus.cap(pair) == cap
    assert f"{sum(pick.most for pick in picks):,} sentence pairs, budget 300,000" in out
    found = {pick.offer.corpus for pick in picks if pick.offer.noise in init.FOUND}
    filtered = experiment.clean.language
    assert set(filtered.corpora if filtered else ()) == found
    validated = [pair for corpus in experiment.validation for pair in corpus.pairs]
    assert sorted(validated) == sorted({"-".join(sorted(pick.pair)) for pick in picks})


def settings_for(text):
    languages = init.read_languages(text)
    picks = init.choose(init.language_pairs(languages), 10**5)
    return yaml.safe_load(init.experiment_text(Path("x"), languages, picks, "ems init"))


def test_text_that_is_not_mined_is_not_filtered_by_language():
    assert "language" not in settings_for("de,fr,it")["clean"]


def test_without_english_the_file_has_the_pairs_between_the_languages():
    value = settings_for("cy,pl,uk")
    entry = {"name", "version", "part", "pairs", "max_pairs"}
    assert all(set(each) <= entry for each in value["corpora"])
    pairs = {pair for entry in value["corpora"] for pair in entry["pairs"]}
    assert pairs == {"cy-pl", "cy-uk", "pl-uk"}
    assert set(value["evalsets"]) == {"flores200"}  # the others are scored with English


def test_a_file_that_is_there_stays_and_a_language_without_text_is_named(ems, tmp_path):
    ems.run("init", "--languages", "en,cy", "--budget", "20k")
    before = (tmp_path / "configs/mine.yaml").read_text()
    assert "file already exists" in ems.error("init", "--languages", "en,pl")
    ems.run("init", "--languages", "en,cy", "--budget", "20k")  # the same again
    assert (tmp_path / "configs/mine.yaml").read_text() == before
    message = ems.error("init", "--languages", "en,prs,acq", "--out", "configs/x.yaml")
    assert "OPUS has no text of Ta'izzi-Adeni Arabic (acq) with en, prs" in message
    assert "related languages in OPUS: Arabic (ar)" in message
    assert not (tmp_path / "configs/x.yaml").exists()
