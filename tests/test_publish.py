"""Laws of `ems publish`: a folder that the hub can show and mteb can read, whose card says what was
measured; an upload sends that folder, or ends in one line."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from huggingface_hub import ModelCard
from made.experiments import one_line
from made.hub import TOKEN, local_hub
from made.models import export, figures_here, write_model
from made.scores import write_accuracies, write_cosine, write_flores, write_scores
from made.tables import write_cost, write_report

from ems import Encoder
from ems.commands.cli import main
from ems.config.languages import load_languages
from ems.corpora.demo.grammar import read_free
from ems.export import is_export, verify
from ems.export.card import licence_from
from ems.export.publish import complete, upload
from ems.tables.printed import tatoeba_codes

TEXT = [text for sentence in read_free() for text in sentence.values()]  # of eight languages
TABLE = {"layers": 0, "table": 16, "ngrams": 256, "max_tokens": 50}
RESULTS = {"task_name": "Tatoeba", "scores": {"test": [{"main_score": 0.5}]}}


def write_run(folder, languages=("en", "de", "yo"), corpus="Tatoeba"):
    """A run with a model, scores on four benchmarks, a report and costs; returns the model."""
    model = write_model(folder / "models/ems", languages, TEXT, 2500, sizes=TABLE)
    about = json.loads((model / "model.json").read_text()) | {"name": "ems", "experiment": "toy"}
    (model / "model.json").write_text(json.dumps(about))
    others = {"deu": "de", "yor": "yo", "ber": "und"}
    known = {code: ours for code, ours in others.items() if ours in (*languages, "und")}
    values = dict(zip(known, [90.0, 40.0, 5.0], strict=False))
    write_scores(folder / "scores", "ems", values, known)
    flores = {"de-en": 70.0, "en-de": 80.0, "yo-en": 50.0, "en-yo": 51.0}
    write_flores(folder / "scores", "ems", languages, lambda *pair: flores.get("-".join(pair), 1.0))
    write_cosine(folder / "scores", "ems", 0.97)
    write_accuracies(
        folder / "scores", "pawsx", "ems", {"en-en": 56}, {"most frequent class": {"en-en": 55}}
    )
    (folder / "reports").mkdir()
    pairs = [(corpus, "train", f"{code}-en", 10, {}, {}) for code in languages if code != "en"]
    write_report(folder / "reports/decontamination.json", pairs)
    write_cost(folder / "costs", "train/ems", "train")
    return model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def exported(model):
    pytest.importorskip("tokenizers")
    return export(model, model.parents[1] / "exported")


def publish(model, out, *flags, expect=0):
    words = ["publish", "--model", model, "--out", out, *flags]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "_in_another_process", figures_here)
        assert main([str(word) for word in words]) == expect
    return out


# --- the card


def test_the_card_has_the_weak_languages_first_with_english_only(exported):
    card = (exported / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \((\w\w)\) \| (.*) \| (.*) \|$", card, re.M)
    assert [(name, code) for name, code, *_ in rows] == [("Yoruba", "yo"), ("German", "de")]
    assert [row[2:] for row in rows] == [("40.0", "50.5"), ("90.0", "75.0")]  # without de-yo
    assert "**Its weakest languages:** Yoruba (yo)." in card
    assert "have a cosine of 0.97." in card
    assert "Accuracy on PAWS-X: 56.0 %; the same answer every time has 55.0 %." in card
    assert "- Not measured: negation.\n" in card
    assert "| Tatoeba | P@1 | 5.0 | 1 unseen language | v1 |" in card
    assert not re.search(r"\d/\d|LaBSE|potion", card)  # no printed row of other languages
    assert "\n\n\n" not in card


def test_other_models_are_named_only_for_the_58_languages(tmp_path):
    model = write_run(tmp_path)
    ours = {each.tatoeba_v1: code for code, each in load_languages().items() if code != "en"}
    seen = tatoeba_codes()
    write_scores(tmp_path / "scores", "ems", dict.fromkeys(seen, 70.0), {c: ours[c] for c in seen})
    card = (export(model, tmp_path / "out") / "README.md").read_text(encoding="utf-8")
    assert "| this model | 70.0 | measured by us |" in card
    assert "| potion-multilingual-128M | 49.3 | as printed by MTEB |" in card


def test_a_model_of_two_languages_or_without_scores_has_a_sane_card(tmp_path):
    model = write_run(tmp_path, ("en", "de"), "Europarl")  # its licence is unknown
    card = (export(model, tmp_path / "out") / "README.md").read_text(encoding="utf-8")
    assert "| German (de) | 90.0 |" in card
    assert "weakest" not in card
    assert "license" not in card.split("---")[1]
    for path in (tmp_path / "scores/ems").iterdir():
        path.unlink()
    card = (export(model, tmp_path / "bare") / "README.md").read_text(encoding="utf-8")
    assert "Not measured: the run of this model has no score files." in card
    assert "- Not measured: word order, negation, paraphrases" in card
    assert ModelCard(card).data.eval_results is None


@pytest.mark.parametrize(
    ("licences", "expected"),
    [
        (["CC0", "CC BY 2.0 FR", "MIT"], "cc-by-4.0"),
        (["CC0", "CC BY-SA 4.0", "MPL 2.0"], "cc-by-sa-4.0"),
        (["CC BY-SA 4.0", "CC BY-NC-ND, TED's usage policy"], None),
        (["CC0", "see https://opus.nlpl.eu/legacy/GNOME.php"], None),
        (["CC0", "GPL-3.0 / Apache-2.0"], None),
        (["the user's own"], None),
        ([], None),
    ],
)
def test_share_alike_wins_and_an_unclear_licence_gives_none(licences, expected):
    assert licence_from(licences) == expected


# --- the folder


def test_a_dry_run_writes_the_folder_and_lists_every_file_of_it(exported, tmp_path, capsys):
    results = tmp_path / "results/ems/1/Tatoeba.json"
    results.parent.mkdir(parents=True)
    results.write_text(json.dumps(RESULTS))
    flags = ["--mteb", tmp_path / "results", "--repo", "me/ems", "--dry-run"]
    out = publish(exported, tmp_path / "out", *flags)
    listed = re.findall(
        r"^ *([\d,]+) bytes  (\w{12})  (LFS|git)  (.*)$", capsys.readouterr().out, re.M
    )
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {name for *_, name in listed} == files - {"SHA256SUMS"}
    assert {name for *_, kind, name in listed if kind == "LFS"} == {
        "model.safetensors",
        "vocabulary.model",
    }
    assert json.loads((out / "results/ems/1/Tatoeba.json").read_text()) == RESULTS
    card = ModelCard.load(out / "README.md")
    assert (card.data.license, card.data.datasets) == ("cc-by-4.0", ["Tatoeba"])
    assert "Attribution 4.0 International" in (out / "LICENSE").read_text(encoding="utf-8")
    assert 'SentenceTransformer("me/ems", trust' in card.text
    found = {(r.dataset_type, r.dataset_config, r.metric_type): r for r in card.data.eval_results}
    assert found["tatoeba", "2 trained languages", "P@1"].metric_value == 65.0
    assert (Encoder(out).encode(["a b"]) == Encoder(exported).encode(["a b"])).all()
    assert is_export(publish(exported, out))  # the folder may be replaced


def test_a_trained_model_is_exported_with_its_graphs_and_its_plain_table(model, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    text = tmp_path / "text.tsv"
    pairs = zip(TEXT[0::8], TEXT[1::8], strict=True)
    text.write_text("".join(f"{en}\t{de}\n" for en, de in pairs), encoding="utf-8")
    out = publish(model, tmp_path / "out", "--plain", "--text", text)
    names = ("onnx/model.onnx", "onnx/model_qint8.onnx", "plain/model.safetensors", "LICENSE")
    assert all((out / name).is_file() for name in names)
    plain = ModelCard.load(out / "plain/README.md")
    assert plain.data.eval_results is None  # the scores are not the table's
    assert "was not scored" in plain.text


def test_an_edited_card_is_kept_and_an_edited_model_refused(exported, tmp_path):
    own = tmp_path / "own"
    subprocess.run(["cp", "-r", exported, own], check=True)
    card = (own / "README.md").read_text(encoding="utf-8")
    (own / "README.md").write_text(card + "\nMy own words.\n", encoding="utf-8")
    out = publish(own, tmp_path / "out", "--licence", "cc-by-sa-4.0")
    made = ModelCard.load(out / "README.md")
    assert made.text.endswith("My own words.\n")
    assert (made.data.license, len(made.data.eval_results)) == ("cc-by-sa-4.0", 5)
    (own / "ems.json").write_text("{}")
    publish(own, tmp_path / "other", expect=1)
    assert not (tmp_path / "other").exists()


def test_a_licence_may_be_a_file_and_must_be_known(exported, tmp_path):
    terms = tmp_path / "ours-1.0.txt"
    terms.write_text("You may.\n")
    out = publish(exported, tmp_path / "out", "--licence", terms)
    data = ModelCard.load(out / "README.md").data
    assert (data.license, data.license_name, data.license_link) == ("other", "ours-1.0", "LICENSE")
    assert (out / "LICENSE").read_text() == "You may.\n"
    for licence in ("mit", "../x"):
        line = one_line(complete, out, licence, None, "")
        assert line.startswith("--licence: expected cc-by-sa-4.0, cc-by-4.0, or a file")
        assert line.endswith(f"found {licence}")
    (out / "README.md").write_text("# No front matter\n")
    assert "found none" in one_line(complete, out, "", None, "")
    (out / "README.md").write_text("---\n[1\n---\n")
    assert "expected front matter in YAML" in one_line(complete, out, "", None, "")


# --- the upload


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with local_hub() as server:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.address)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        yield server


def test_an_upload_sends_the_folder_to_the_endpoint_of_the_environment(hub, exported, tmp_path):
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_HUB_OFFLINE": "0", "PYTHONPATH": str(ROOT)}
    out = tmp_path / "out"
    words = [sys.executable, "-m", "ems.commands.cli", "publish", "--model", exported, "--out", out]
    words += ["--repo", "me/ems", "--private"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{hub.address}/me/ems\n")
    files = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert hub.repos["me/ems"] == {"private": True, "files": files}
    assert any("objects/batch" in call for call in hub.calls)


def test_nothing_is_sent_without_a_repository_or_in_a_dry_run(hub, exported, tmp_path):
    publish(exported, tmp_path / "a")
    publish(exported, tmp_path / "b", "--repo", "me/ems", "--dry-run")
    publish(exported, tmp_path / "c", "--repo", "ems", expect=1)
    assert hub.calls == []
    assert not (tmp_path / "c").exists()


def test_each_refusal_is_one_line_and_the_folder_stays(hub, exported, tmp_path, monkeypatch):
    out = publish(exported, tmp_path / "out")
    upload(out, "me/ems", False, False)
    assert "exists; add --update" in one_line(upload, out, "me/ems", False, False)
    upload(out, "me/ems", False, True)
    assert "may not write there" in one_line(upload, out, "others/ems", False, False)
    hub.broken = True
    hub.repos.clear()
    line = one_line(upload, out, "me/ems", False, False)
    assert re.search(r"the disk is full.*; .*out is complete; publish again, with --up", line)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert "does not accept the token" in one_line(upload, out, "me/ems", False, True)
    assert is_export(out)
