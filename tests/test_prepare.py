"""Laws of `ems prepare`: one pass writes what two would, and makes nothing that was made before."""

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from made.cli import Cli, wait_for
from made.corpora import translations, write_lines, write_opus
from made.experiments import MINIMAL, TRAINING_FREE, Settings, one_line
from made.shards import contents
from made.text import clean_alone, segment_alone

from ems.base.errors import EmsError
from ems.corpora.locations import archives_of
from ems.text import bulk
from ems.text.clean import CleanSource
from ems.text.evalkeys import write_keys
from ems.text.prepare import Part, prepare_pairs

ITEMS = [
    {code: f"{text}, ΟΔΟΣ {at}." for code, text in item.items()}
    for at, item in enumerate(translations(150, ["en", "de", "fr", "sw"], seed=1, least=3))
]
LANGUAGES = {"languages": ["en", "de", "fr", "sw"], "decontaminate": {"key": "plain"}}
LANGUAGES["systems"] = {"ngram": TRAINING_FREE}  # so that documents are enough
TOY = {"name": "Toy", "version": "v1", "source": "made", "max_pairs": 120}
CLEAN = {"duplicates": "drop"}


class Prepared:
    """A corpus of 150 rows in each of three pairs, one of them an evaluation sentence."""

    def __init__(self, root, corpus=TOY, **changes):
        self.root, self.value = root, MINIMAL | LANGUAGES | {"corpora": [corpus]} | changes
        self.settings = Settings(root / "settings", self.value)
        self.experiment, self.data = self.settings.load(), root / "data"
        write_opus(self.data, "Toy", "v1", ITEMS)
        self.keys, self.receipt = root / "keys.tsv", root / "receipt.json"
        write_keys({ITEMS[7]["en"].lower(): ["tatoeba/deu"]}, self.keys, "plain")

    def part(self, workers=1, lines=40, folder="made"):
        corpus = self.experiment.corpora[0]
        names, files = (corpus.label, corpus.version), (self.data, self.keys, None)
        text, state = self.root / folder, self.root / "state"
        pairs = list(corpus.pairs)
        return Part(self.experiment, *names, pairs, *files, text, state, workers, lines)

    def __call__(self, **options):
        """Prepare the part; return the files of text and the line that it says."""
        part = self.part(**options)
        said = prepare_pairs(part, self.receipt)
        files = contents(part.text)
        return {name: own for name, own in files.items() if ".stamps" not in str(name)}, said

    def by_hand(self):
        """The files of cleaning and then segmenting in two passes."""
        part = self.part(folder="by hand")
        corpus = self.experiment.corpora[0]
        for pair in part.pairs:
            archives, files = tuple(archives_of(corpus, pair, self.data)), part.outputs(pair)
            source = CleanSource(part.label, part.version, pair, archives)
            clean_alone(self.experiment, source, self.keys, files["clean"])
            codes = tuple(pair.split("-"))
            names = tuple(self.experiment.segmenters[code] for code in codes)
            segment_alone(files["clean"], files["segmented"], codes, names)
        return contents(part.text)


def own_files(root):
    rows = [f"{item['de']}\t{item['en']}" for item in ITEMS]
    return {"name": "Toy", "files": {"de-en": str(write_lines(root / "de-en.tsv", rows))}}


def documents(root):
    lines = [line for at, item in enumerate(ITEMS) for line in [""] * (at % 5 == 0) + [item["en"]]]
    write_lines(root / "texts/Toy/v1/en.txt", lines)
    shutil.copytree(root / "texts/Toy", root / "data/documents/Toy")
    kinds = {"kind": "documents", "languages": ["en"]}
    return {"name": "Toy", "version": "v1", "source": str(root / "texts")} | kinds


FORMS = {"pairs": lambda root: TOY, "own files": own_files, "documents": documents}


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["none", "sacremoses"])
@pytest.mark.parametrize("form", FORMS)
def test_one_pass_writes_the_bytes_of_cleaning_and_then_segmenting(tmp_path, form, name, workers):
    corpus = FORMS[form](tmp_path)
    prepared = Prepared(tmp_path, corpus, segmenters={"default": name}, clean=CLEAN)
    files, said = prepared(workers=workers)
    assert files == prepared.by_hand()
    assert re.search("removed .*[1-3] evaluation", said)
    assert any("οδος" in str(content, "utf-8") for content in files.values())
    assert not (tmp_path / "state").exists()
    receipt = json.loads(prepared.receipt.read_text())
    assert all({*sums} == {"clean", "report", "segmented"} for sums in receipt.values())
    before = prepared.receipt.read_bytes()
    again, said = prepared()
    assert again == files
    assert prepared.receipt.read_bytes() == before
    assert "done before" in said


def times(part):
    return {pair: part.outputs(pair)["segmented"].stat().st_mtime_ns for pair in part.pairs}


def test_a_bad_archive_is_named_and_the_pairs_beside_it_are_made_once(tmp_path):
    prepared = Prepared(tmp_path)
    archive = prepared.data / "opus/Toy/v1/moses/en-fr.txt.zip"
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-50])
    assert str(archive) in one_line(prepared)
    assert not prepared.receipt.exists()
    part = prepared.part()
    made = {pair: part.outputs(pair)["clean"].stat().st_mtime_ns for pair in ("de-en", "en-sw")}
    archive.write_bytes(whole)
    files, said = prepared()
    assert "3 pairs (2 were done before)" in said
    assert {pair: part.outputs(pair)["clean"].stat().st_mtime_ns for pair in made} == made
    assert files == prepared.by_hand()


def test_another_cap_of_a_pair_or_other_bytes_make_this_pair_again(tmp_path):
    prepared = Prepared(tmp_path)
    prepared()
    before = times(prepared.part())
    caps = {"max_pairs": {"fr": 50, "default": 120}}
    prepared.experiment = prepared.settings.load(prepared.value | {"corpora": [TOY | caps]})
    files, _ = prepared()
    changed = times(prepared.part())
    assert {pair for pair in before if before[pair] != changed[pair]} == {"en-fr"}
    prepared.part().outputs("en-sw")["clean"].write_text("other\n")
    assert prepared()[0] == files
    again = times(prepared.part())
    assert {pair for pair in changed if changed[pair] != again[pair]} == {"en-sw"}


def test_finished_pieces_of_an_interrupted_pair_are_not_segmented_again(tmp_path, monkeypatch):
    prepared = Prepared(tmp_path, segmenters={"default": "sacremoses"})
    calls, segment_text = [], bulk.segment_text

    def counted(*given):
        calls.append(given[-1])
        if len(calls) == 6:  # the third of the second pair
            raise EmsError("interrupted")
        return segment_text(*given)

    monkeypatch.setattr(bulk, "segment_text", counted)
    assert "interrupted" in one_line(prepared)
    done = [text for text in calls if text != calls[5]]
    again = calls.copy()
    files, _ = prepared()
    assert not {*done} & {*calls[len(again) :]}
    assert calls[5] in calls[len(again) :]
    monkeypatch.undo()
    assert files == prepared.by_hand()


@pytest.mark.slow
def test_a_killed_job_goes_on_at_its_first_unfinished_pair(tmp_path):
    ems = Cli(tmp_path)
    pairs = ["de-en", "en-zh", "en-ja"]
    write_keys({}, tmp_path / "keys.tsv")
    ems("demo-mirror", "--out", "mirror")
    shutil.copytree(tmp_path / "mirror/opus", tmp_path / "data/opus")

    def job(folder):
        flags = ("--experiment", "tiny", "--corpus", "Demo", "--version", "v1", "--pair", *pairs)
        flags += ("--keys", "keys.tsv", "--data", "data", "--text", folder, "--state", "state")
        return ("prepare", *flags, "--out", f"{folder}.json", "--piece-lines", 100)

    ems(*job("whole"))
    first = tmp_path / "text/segmented/Demo/v1/.stamps/de-en.json"
    run = ems.start(*job("text"), stderr=subprocess.DEVNULL)
    wait_for(first.exists, run)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    made = first.stat().st_mtime_ns
    assert not (tmp_path / "text.json").exists()
    said = ems(*job("text"))
    assert any("done before" in line for line in said)
    assert first.stat().st_mtime_ns == made
    assert Path(tmp_path / "text.json").read_bytes() == Path(tmp_path / "whole.json").read_bytes()
