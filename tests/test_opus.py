"""OPUS's table: codes, files and sizes; `ems corpora list`."""

import itertools
import json
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from made import golden
from made.cli import Cli
from made.corpora import write_opus
from made.experiments import REAL, Settings, shipped

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.config import languages as facts
from ems.config.languages import opus_codes, opus_files, opus_releases
from ems.config.load import load_yaml
from ems.corpora.catalogue import (
    NOISE,
    Licence,
    catalogue,
    catalogue_entry,
    check_corpora,
    defects_of,
    known_defects,
    licence_named,
    page_of,
    versions_of,
)
from ems.corpora.fetch import Release
from ems.tables.printed import TOTAL, load_pairs
from ems.workflow.downloads import as_json, as_text, licences_text, lock_text, pin
from ems.workflow.init import choose
from ems.workflow.search import named_languages

NO_SETS = {"evalsets": {}, "benchmarks": [], "decontaminate": {"against": []}, "validation": None}
TED = {"name": "TED2020", "version": "v1"}


def test_every_code_of_the_table_belongs_to_a_file_and_a_known_language():
    releases = {name: [opus_files(name, v) for v in of] for name, of in opus_releases().items()}
    files = itertools.chain(*itertools.chain(*releases.values()))
    codes = set(itertools.chain(*(file.split("-") for file in files)))
    for corpus, language, code in facts.opus_language_codes():
        assert language.partition("_")[0] in named_languages()
        if corpus == facts.ANY:
            assert code in codes
        elif code != facts.NOTHING:
            names = {f"en-{code}", f"{code}-en", "de-en"}
            assert any(names & set(files) for files in releases[corpus]), (corpus, language, code)


def test_few_files_have_unsorted_codes_and_no_file_is_without_a_pair():
    unsorted = set()
    for corpus, versions in opus_releases().items():
        for version in versions:
            files = opus_files(corpus, version)
            assert files
            unsorted |= {
                (corpus, name) for name in files if name.split("-") != sorted(name.split("-"))
            }
            assert all(file.pairs is None or file.pairs > 0 for file in files.values())
    assert len(unsorted) < 60
    assert {"NLLB", "News-Commentary", "Samanantar"} < {corpus for corpus, _ in unsorted}
    assert facts.opus_pair("NLLB", "v1", "en", "ee") == {"en-ee": False}
    assert facts.opus_pair("Samanantar", "v0.2", "bn", "en") == {"en-bn": True}
    assert facts.opus_pair("NLLB", "v1", "ckb", "en") == {"ku_Arab-en": False}


def test_the_counts_equal_opus_get_list():
    assert opus_files("Europarl", "v8")["en-fr"].pairs == 2_051_014
    assert opus_files("OpenSubtitles", "v2018")["en-fr"].kilobytes == 1_296_193
    english = {"Europarl": 20, "UNPC": 5}
    for name, count in english.items():
        files = opus_files(name, opus_releases()[name][-1])
        assert sum("en" in file.split("-") for file in files) == count
    assert opus_releases()["Europarl"] == ("v3", "v7", "v8")
    assert opus_files("Ubuntu", "v14.10")["en-fr"].pairs is None
    assert opus_files("Europarl", "v99") == opus_files("Eurpoarl", "v8") == {}


WITHOUT_FILES = ("DocHPLT", "ELRA-W0232", "ELRC-416-", "JW300")  # or elsewhere


def test_the_catalogue_adds_rated_corpora_and_versions_that_opus_lacks():
    for name, known in catalogue().items():
        assert known.noise in NOISE
        assert not set(known.versions) & set(opus_releases().get(name, ()))
        assert versions_of(name) or name.startswith(WITHOUT_FILES)
        assert not known.repeats or known.repeats in catalogue()
        assert not known.licence.startswith("see ")
        assert not known.kind or known.page.startswith("http") or known.page == ""


def test_a_known_defect_is_of_files_of_opus_and_names_a_better_release_that_has_them():
    withdrawn = {"JW300"}
    for (corpus, version), defects in known_defects().items():
        for defect in defects:
            files = opus_files(corpus, version)
            assert corpus in withdrawn or any(defect.is_in(file) for file in files), defect
            own = {*files} | {code for file in files for code in file.split("-")}
            assert {word.strip("*!") for word in defect.pair.split()} <= {"", *own}, defect
            assert defect.bad in ("yes", "")
            assert defect.what
            assert defect.source.startswith("https://")
            if defect.replaced_by:
                assert opus_files(*defect.replaced_by.split(" ")), defect
    assert bad("pmindia", "v1", "bn-en").replaced_by == "pmindia v1b"
    assert bad("pmindia", "v1", "en-hi") is None
    assert bad("OpenSubtitles", "v2018", "ka-ru").defect == "mojibake"
    assert bad("OpenSubtitles", "v2018", "en-kab") is None
    assert bad("XLEnt", "v1.1", "de-fr").replaced_by == "XLEnt v1.2"
    assert bad("XLEnt", "v1.1", "de-en") is None
    assert len(known_defects()) > 50


def bad(corpus, version, file):
    return next((each for each in defects_of(corpus, version, [file]) if each.bad), None)


def test_check_tells_of_defects_and_of_the_better_release(tmp_path):
    ems = Cli(tmp_path)
    own = {"languages": ["en", "bn", "th"], "segmenters": {"default": "none"}, **NO_SETS}
    release = {"name": "pmindia", "version": "v1", "accept": "swapped back"}
    corpora = [release | {"languages": ["en", "bn"]}, {"name": "bible-uedin", "version": "v1"}]
    text = yaml.safe_dump(REAL | own | {"corpora": corpora})
    (ems.folder / "configs/own.yaml").write_text(text, encoding="utf-8")
    output = ems.run("check", "--experiment", "own")[1]
    assert "pmindia v1, bn-en: swapped sides: the bn file holds English" in output
    assert "; better: pmindia v1b" in output
    assert "bible-uedin v1, en-th: duplicates: each verse occurs twice" in output


def test_a_release_with_a_known_defect_is_not_chosen_and_used_only_with_a_reason(tmp_path):
    picks = {each.offer.corpus: each for each in choose([("bn", "en")], 10**6)}
    assert picks["pmindia"].offer.version == "v1b"  # v1 has its sides swapped
    assert picks["pmindia"].most == picks["pmindia"].offer.pairs
    assert picks["ALT"].most == 0
    assert "its zips hold no text" in picks["ALT"].reason
    settings = Settings(tmp_path)
    entry = {"name": "pmindia", "version": "v1", "languages": ["en", "bn"]}
    own = {"languages": ["en", "bn", "hi"], "segmenters": {"default": "none"}}
    with pytest.raises(EmsError, match=r"^corpora\.0: pmindia v1 bn-en: swapped sides: .* v1b"):
        check_corpora(settings.changed(**own, corpora=[entry]))
    for better in (entry | {"accept": "swapped back"}, entry | {"languages": ["en", "hi"]}):
        check_corpora(settings.changed(**own, corpora=[better]))


def test_a_language_has_the_codes_of_the_table_or_its_own():
    assert opus_codes("Europarl", "v8", "de") == ("de",)
    assert opus_codes("GlobalVoices", "v2018q4", "ja") == ("jp",)
    assert opus_codes("TED2020", "v1", "ku") == opus_codes("TED2020", "v1", "ku", paper=True) == ()
    assert opus_codes("CCAligned", "v1", "pt_BR") == ("pt_BR",)
    assert opus_codes("OpenSubtitles", "v2024", "zh_Hant") == ("zh_Hant", "zh_TW")
    assert tuple(facts.opus_pair("MultiCCAligned", "v1.1", "cy", "pl")) == ("cy-pl",)
    assert tuple(facts.opus_pair("MultiCCAligned", "v1.1", "zh", "de")) == ("de-zh_CN", "de-zh_TW")
    assert tuple(facts.opus_pair("TED2020", "v1", "ku", "en")) == ()  # its ku is another language


# --- `ems corpora list`
OWN_TEXT = {"name": "Mine", "version": "1", "source": "x", "languages": ["de"]}
OWN_DOCUMENTS = {"name": "Own", "version": "v1", "kind": "documents", "source": "x"}
WIKI = {"name": "WikiMatrix", "version": "v1"}
UNPC = {"name": "UNPC", "version": "v1.0"}
MINED = {**WIKI, "format": "mined", "threshold": 1.075, "languages": ["de"]}
DRAWN = {"paracrawl": {"version": "v5"}, "europarlxsr": {"version": "v9"}}  # v9 is not in the table
ALONE = {"xtr": {"weight": 0}, "contrastive": {"weight": 0}, "context": {"weight": 1}}
LISTS = {
    "caps and sets": {
        "corpora": [{**TED, "max_pairs": {"zh": 9_000}}, UNPC, OWN_TEXT],
        "evalsets": REAL["evalsets"] | DRAWN,
    },
    "parts": {
        "corpora": [{**WIKI, "languages": ["de"], "part": "train"}],
        "validation": {**WIKI, "languages": ["de"], "part": "validation"},
        "splits": {"WikiMatrix": {"first": {"validation": 1000}, "rest": "train"}},
        "tables": {"printed": ["EMS"]},
    },
    "mined": {"corpora": [MINED, OWN_DOCUMENTS]},
    "documents": {"corpora": [OWN_DOCUMENTS], "objectives": ALONE},
}


def test_unknown_sizes_are_never_zero_and_capped_or_shared_files_count_once(tmp_path):
    base = REAL | {"languages": ["en", "de", "zh", {"code": "xq"}], "validation": None}
    blocks = []
    for name, value in LISTS.items():
        experiment = Settings(tmp_path / name, base | value).load()
        total = json.dumps(json.loads(as_json(experiment))["total"], indent=1)
        blocks += [f"# {name}", as_text(experiment), total]
    golden.check("corpora_list.txt", "\n\n".join(blocks) + "\n")


def test_the_paper_experiment_has_all_corpora_and_comes_close_to_table_one():
    whole = json.loads(as_json(shipped("ems62")))
    corpora = "Europarl GlobalVoices News-Commentary OpenSubtitles TED2020 UNPC WikiMatrix+train"
    corpora += " Tatoeba WikiMatrix+validation"
    assert [row["corpus"] for row in whole["corpora"]] == corpora.split()
    rows = {row["language"]: row for row in whole["languages"]}
    assert set(rows) == set(load_pairs()) - {TOTAL}
    train = whole["total"]["train"]
    assert train["used"] < whole["table_1_total"] < train["at_most"]
    for language in ("eu", "ka", "kk", "hy", "mn", "et", "lv"):  # no WikiMatrix to speak of
        row = rows[language]
        assert abs(row["used"] - row["table_1"]) < 0.05 * row["table_1"], row
    (paracrawl,) = whole["evalsets"]  # how much retrieval downloads stands in the settings
    assert (paracrawl["evalset"], paracrawl["files"]) == ("paracrawl", 21)
    gigabytes = f"{paracrawl['kilobytes'] / 1e6:.1f} GB"
    assert gigabytes in (ROOT / "configs/ems62.yaml").read_text()


def test_starter_states_its_downloads_and_needs_only_python():
    experiment = shipped("starter")
    text = load_yaml(ROOT / "configs/starter.yaml")["description"]
    total = json.loads(as_json(experiment))["total"]
    words = f"{total['used']:,} sentence pairs in {total['files']} files"
    assert (words in " ".join(text.split()), total["unknown"]) == (True, 0)
    assert f"({total['kilobytes'] / 1000:.0f} MB)" in text
    assert set(experiment.segmenters.values()) == {"unicode"}
    assert len({language.script for language in experiment.languages.values()}) == 6


def test_the_command_prints_text_and_json(tmp_path):
    ems, tiny = Cli(tmp_path), shipped("tiny")
    job = ("corpora", "list", "--experiment", "tiny")
    for flags, form in ((), as_text), (("--json",), as_json):
        assert ems.run(*job, *flags)[0] == form(tiny)
    assert "expected nothing more, found cy" in ems.error("corpora", "list", "cy")


# --- licences and locks


def test_every_licence_has_its_terms_and_the_address_of_its_text_or_of_the_corpus():
    for name, known in catalogue().items():
        terms = licence_named(known.licence)
        assert {terms.attribution, terms.share_alike, terms.commercial} <= {"yes", "no", ""}
        if known.licence:
            assert (terms.link or page_of(name)).startswith("http"), name
            assert terms != Licence(known.licence) or "sector" in known.licence, name
    closed = "Tanzil QED TED2020 NeuLab-TedTalks IITB fiskmo FFR EiTB-ParCC InterdialectCorpus"
    closed += " TedTalks JParaCrawl TEP MBS JW300"
    assert not any(catalogue_entry(name).commercial for name in closed.split())
    assert all(catalogue_entry(name).commercial for name in ("NLLB", "HPLT", "Tatoeba", "GNOME"))


def test_licences_are_a_table_for_the_model_card(tmp_path):
    output = licences_text(shipped("small62"))
    head, line, *rows = output.splitlines()[2:]
    assert head.count("|") == line.count("|") == 10
    assert all(row.count("|") == 10 for row in rows)
    assert "https://creativecommons.org/licenses/by/2.0/fr/) | yes | no | yes |" in rows[0]
    assert "| NTREX+train | v1 | train |" in output
    assert "https://github.com/MicrosoftTranslator/NTREX |" in output
    languages = {"languages": ["en", "de"], "validation": None}
    own = Settings(tmp_path, REAL | languages | {"corpora": [OWN_TEXT]}).load()
    assert "| Mine | 1 | train |  | yours |  |  |  |  |" in licences_text(own)


def test_a_lock_made_elsewhere_refuses_other_bytes(tmp_path):
    mirror, mine, theirs = (tmp_path / name for name in ("mirror", "mine", "theirs"))
    write_opus(mirror, "Toy", "v1", [{"de": f"Satz {n}", "en": f"Row {n}"} for n in range(9)])
    corpus = {"name": "Toy", "version": "v1", "source": str(mirror / "opus")}
    own = {"languages": ["en", "de"], "corpora": [corpus], **NO_SETS}
    experiment = Settings(tmp_path, REAL | own).load()
    place = Path("opus/Toy/v1/moses/de-en.txt.zip")
    with pytest.raises(EmsError, match=r"de-en\.txt\.zip: not fetched yet; .* -- data"):
        lock_text(experiment, mine)
    release = Release("moses", str(mirror / "opus"), "Toy", "v1")
    release.fetch_all({"de-en": mine / place})
    file = tmp_path / "lock.json"
    file.write_text(lock_text(experiment, mine))
    (entry,) = json.loads(file.read_text()).items()
    assert entry[0] == str(place)
    assert entry[1]["sha256"] == sha256_file(mine / place)
    assert pin(file, theirs) == f"{file}: 1 files in {theirs} are locked\n" == pin(file, theirs)
    release.fetch_all({"de-en": theirs / place})
    assert lock_text(experiment, theirs) == file.read_text()
    write_opus(mirror, "Toy", "v1", [{"de": "anders", "en": "other"}])
    pin(file, tmp_path / "late")
    with pytest.raises(EmsError, match="the source changed"):
        release.fetch_all({"de-en": tmp_path / "late" / place})
    release.fetch_all({"de-en": tmp_path / "alone" / place})
    with pytest.raises(EmsError, match=r"is here with other bytes than .*lock\.json says"):
        pin(file, tmp_path / "alone")
