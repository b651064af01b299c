"""`ems corpora update`: the table of OPUS's files from its API or a clone of its repository."""

import json
import lzma
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from itertools import groupby
from urllib.parse import parse_qs, urlsplit

import pytest
from made.corpora import write_lines
from made.experiments import one_line
from made.web import Server

from ems.base.errors import EmsError
from ems.config import languages as facts
from ems.config.languages import OpusFile, opus_date, opus_files, opus_releases
from ems.corpora import catalogue
from ems.corpora import update as renewal
from ems.corpora.catalogue import overlap
from ems.corpora.download import Downloads
from ems.corpora.update import packed, update

HOST = "https://object.pouta.csc.fi"
FAST = Downloads(retries=0, stall=1.0, pause=0.01)
OLD = {
    ("Books", "v1"): {"de-en": OpusFile(50, 5), "en-fr": OpusFile(70, 7)},
    ("Gone", "v1"): {"de-en": OpusFile(9, 1)},
    ("Subs", "v9"): {"en-zh_cn": OpusFile(100, 10)},
}
NEW = {
    ("Books", "v1"): {"de-en": OpusFile(51, 5), "en-fr": OpusFile(70, 7), "fr-de": OpusFile(3, 1)},
    ("Subs", "v9"): OLD["Subs", "v9"],
    ("Subs", "v10"): {"en-zh_CN": OpusFile(1000, None), "en-zh_TW": OpusFile(None, 20)},
}


def releases(files):
    return [
        renewal.OpusRelease(*key[:1], (key[1] == "v10", key[1]), key[1], own)
        for key, own in files.items()
    ]


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    """A packed table of OLD, and no updated one yet."""
    table = tmp_path / "packed.tsv.xz"
    table.write_bytes(packed(releases(OLD), "made", "2020-02-02"))
    monkeypatch.setattr(facts, "TABLE", table)
    monkeypatch.setattr(facts, "UPDATED", tmp_path / "share/ems/opus.tsv.xz")
    monkeypatch.setattr(catalogue, "UPDATED", tmp_path / "share/ems/overlaps.tsv.xz")
    facts.forget()
    yield
    monkeypatch.undo()
    facts.forget()
    catalogue.overlaps.cache_clear()


class Api:
    """OPUS's API over some files; `spoil` maps a corpus to another answer."""

    def __init__(self, files, spoil=None):
        self.files, self.spoil, self.asked = files, spoil or {}, []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = {
                    key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()
                }
                api.asked.append(asked.get("corpus"))
                answer = api.spoil.get(asked.get("corpus"), api.answer(asked))
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + (answer == b"stalls")))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.handler = Handler

    def answer(self, asked):
        if asked.get("corpora") == "True":
            return {"corpora": sorted({corpus for corpus, _ in self.files})}
        own = [
            (version, files)
            for (corpus, version), files in self.files.items()
            if corpus == asked["corpus"]
        ]
        newest = own[-1][0] if own else ""
        return {
            "corpora": [
                self.row(asked["corpus"], v, n, f, v == newest)
                for v, fs in own
                for n, f in fs.items()
            ]
        }

    def row(self, corpus, version, name, file, latest):
        first, second = name.split("-")
        return {
            "corpus": corpus, "version": version, "source": first, "target": second, "id": 1,
            "alignment_pairs": "" if file.pairs is None else file.pairs, "documents": "",
            "size": round(file.kilobytes / 1.024) if file.kilobytes else "", "latest": str(latest),
            "preprocessing": "moses", "source_tokens": 1, "target_tokens": 1,
            "url": f"{HOST}/OPUS-{corpus}/{version}/moses/{name}.txt.zip",
        }  # fmt: skip

    def update(self):
        server = Server(self.handler)
        with server.running():
            return update(f"{server.address}/opusapi/", FAST)


def test_the_api_gives_a_new_table_and_a_list_of_what_changed():
    said = Api(NEW).update()
    assert opus_releases() == {"Books": ("v1",), "Subs": ("v9", "v10")}
    assert opus_files("Books", "v1") == NEW["Books", "v1"]
    assert opus_files("Subs", "v10") == NEW["Subs", "v10"]
    assert opus_date() > "2020-02-02"
    lines = said.splitlines()
    assert lines[2] == "1 new releases, 1 gone, 1 changed"
    assert lines[3:] == [
        "+ Subs v10: 2 files, 1,000 pairs",
        "- Gone v1: 1 files, 9 pairs",
        "~ Books v1: 1 new files, 0 gone, 1 with another count",
    ]
    assert facts.opus_pair("Books", "v1", "de", "fr") == {"fr-de": True}  # the codes are not sorted
    assert tuple(facts.opus_pair("Subs", "v10", "zh", "en")) == ("en-zh_CN", "en-zh_TW")
    assert tuple(facts.opus_pair("Subs", "v10", "zh_Hant", "en")) == ("en-zh_TW",)


def test_an_interrupted_update_asks_only_for_the_rest_and_gives_the_same_bytes():
    Api(NEW).update()
    whole = facts.UPDATED.read_bytes()
    facts.UPDATED.unlink()
    facts.forget()
    with pytest.raises(EmsError, match="Subs"):
        Api(NEW, {"Subs": b"stalls"}).update()
    assert not facts.UPDATED.exists()
    assert opus_date() == "2020-02-02"
    # the address of the server is part of the lock of an answer
    kept = facts.UPDATED.with_name(f"update.{datetime.now(UTC):%Y-%m-%d}.part")
    assert [path.name for path in kept.glob("*.corpus.json")] == ["Books.corpus.json"]
    Api(NEW).update()
    lines = [
        lzma.decompress(table).splitlines()[1:] for table in (whole, facts.UPDATED.read_bytes())
    ]
    assert lines[0] == lines[1]
    assert not kept.exists()


ROW = Api(NEW).row("Books", "v1", "de-en", OpusFile(1, 1), True)
BAD = {
    "no JSON": (b"<!DOCTYPE html><html>down", "a web page"),
    "another form": ({"corpora": [{"name": "Books"}]}, "corpus"),
    "another type": ({"corpora": [ROW | {"size": "big"}]}, "size"),
    "negative": ({"corpora": [ROW | {"alignment_pairs": -3}]}, "alignment_pairs"),
    "stalls": (b"stalls", "Books"),
}


@pytest.mark.parametrize("answer", BAD)
def test_an_answer_that_does_not_fit_is_one_error_and_the_table_stays(answer):
    body, message = BAD[answer]
    with pytest.raises(EmsError, match=message):
        Api(NEW, {"Books": body}).update()
    assert not facts.UPDATED.exists()
    assert opus_files("Gone", "v1") == OLD["Gone", "v1"]


def test_a_source_that_lacks_most_of_the_files_is_refused():
    with pytest.raises(EmsError, match=r"lists 1 files, and 4 that the table has are gone"):
        Api({("Other", "v1"): {"de-en": OpusFile(1, 1)}}).update()
    with pytest.raises(EmsError, match="lists 0 files"):
        Api(NEW, {name: {"corpora": []} for name in ("Books", "Subs")}).update()
    assert not facts.UPDATED.exists()


def test_a_clone_of_the_repository_gives_counts_and_the_order_of_releases(tmp_path):
    root = tmp_path / "OPUS"
    days = {"v9": "Thu Feb 1 10:00:00 EET 2018", "v10": "Fri Feb 14 10:00:00 EET 2025"}
    for (corpus, version), files in NEW.items():
        folder = root / "corpus" / corpus / version
        folder.mkdir(parents=True)
        day = days.get(version, days["v9"])
        folder.joinpath("info.yaml").write_text(f"---\nname: {corpus}\nrelease date: {day}\n")
        rows = "".join(
            f"  {name}:\n    alignments: {file.pairs or 5}\n" for name, file in files.items()
        )
        folder.joinpath("statistics.yaml").write_text(f"---\nbitexts:\n{rows}")
    shared = root / "corpus/Books/v1/overlaps"
    shared.mkdir()
    head = "corpus A,release A,corpus B,release B,size A,size B,A∩B,A∩B/A,A∩B/B"
    rows = ["Books,v1,Subs,v9,50,90,9,18.0,10.0", "Books,v1,Subs,v10,50,90,30,60.4,33.3"]
    write_lines(shared / "de-en.tsv", [row.replace(",", "\t") for row in (head, *rows)])
    write_lines(shared / "de-fr.tsv", ["no English"])
    write_lines(shared / "en.tsv", ["one language"])
    said = update(str(root), FAST)
    assert overlap("Books", "Subs", "de-en") == 0.6
    assert overlap("Subs", "Books", "de-en") == overlap("Books", "Subs", "de-fr") == 0
    assert opus_releases() == {"Books": ("v1",), "Subs": ("v9", "v10")}
    assert opus_files("Books", "v1")["de-en"] == OpusFile(50, 5)  # known: the lines of the zip
    assert opus_files("Subs", "v10")["en-zh_CN"] == OpusFile(1000, None)
    assert str(root) in said
    write_lines(shared / "de-en.tsv", ["corpus A\tshared", "Books\t9"])
    with pytest.raises(EmsError, match=r"de-en\.tsv: expected the form .*'corpus B'"):
        update(str(root), FAST)
    root.joinpath("corpus/Books/v1/statistics.yaml").write_text("- no mapping\n")
    with pytest.raises(EmsError, match=r"statistics\.yaml: expected the form .*found list"):
        update(str(root), FAST)
    with pytest.raises(EmsError, match=r"has no corpus/\*/\*/statistics"):
        update(str(tmp_path), FAST)


def test_the_packed_table_is_as_it_was_read():
    everything = [
        (corpus, version, opus_files(corpus, version))
        for corpus, versions in opus_releases().items()
        for version in versions
    ]
    again = [renewal.OpusRelease(c, at, v, files) for at, (c, v, files) in enumerate(everything)]
    assert packed(again, "made", "2020-02-02") == facts.TABLE.read_bytes()
    assert [key for key, _ in groupby(everything, key=lambda row: row[0])] == sorted(
        {"Books", "Gone", "Subs"}
    )


def test_a_damaged_table_of_the_user_is_one_line_that_says_what_to_do():
    facts.UPDATED.parent.mkdir(parents=True)
    facts.UPDATED.write_bytes(b"\xfd7zXZ")
    facts.forget()
    message = one_line(facts.opus_releases)
    assert message.startswith(f"{facts.UPDATED}: is damaged (")
    assert message.endswith("delete it, and run `ems corpora update` again")
