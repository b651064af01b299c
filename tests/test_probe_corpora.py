"""Laws of the probe of a corpus: bad files are named with the reason, good ones are not; a file of
which more than half is wrong is an error after it is in place, unless `accept` says why."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest
from conftest import SHARED, needs
from made.corpora import moses_of, write_form, write_lines
from made.experiments import one_line
from made.text import cleaned, tiny
from made.translated import sentence_pairs

from ems.base.files import sha256_file
from ems.base.texts import read_lines
from ems.config.experiment import Corpus
from ems.config.languages import load_languages
from ems.corpora.demo.mirror import train_pairs
from ems.corpora.demo.texts import build
from ems.corpora.fetch import Release
from ems.corpora.moses import count_pairs, probe_files
from ems.corpora.own import own_files
from ems.corpora.probe import SAMPLE, Sample, check_probe
from ems.text.evalkeys import write_keys

# Article 1 of the Universal Declaration of Human Rights
ARTICLE = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with "
    "reason and conscience and should act towards one another in a spirit of brotherhood.",
    "am": "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው። የተፈጥሮ ማስተዋልና ሕሊና ስላለው አንዱ ሌላውን "
    "በወንድማማችነት መንፈስ መመልከት ይገባዋል።",
    "hy": "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով: Նրանք "
    "ունեն բանականություն ու խիղճ և միմյանց պետք է եղբայրաբար վերաբերվեն:",
    "ka": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. მათ "
    "მინიჭებული აქვთ გონება და სინდისი და ერთმანეთის მიმართ უნდა იქცეოდნენ ძმობის სულისკვეთებით.",
    "km": "មនុស្ស ទាំងអស់ កើតមក មាន សេរីភាព និង សមភាព ក្នុង ផ្នែក សេចក្ដីថ្លៃថ្នូរ និង សិទ្ធិ។ មនុស្ស មាន "
    "វិចារណញ្ញាណ និង សតិសម្បជញ្ញៈ ជាប់ពីកំណើត ហើយ គប្បី ប្រព្រឹត្ដ ចំពោះ គ្នា ទៅវិញទៅមក ក្នុង ស្មារតី ភាតរភាព",
    "kn": "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ. ಹಾಗೂ ಘನತೆ ಮತ್ತು ಹಕ್ಕುಗಳಲ್ಲಿ ಸಮಾನರಾಗಿದ್ದಾರೆ. "
    "ವಿವೇಕ ಮತ್ತು ಅಂತಃಕರಣಗಳನ್ನು ಪಡೆದವರಾದ್ದರಿಂದ ಅವರು ಒಬ್ಬರಿಗೊಬ್ಬರು ಸಹೋದರ ಭಾವದಿಂದ ವರ್ತಿಸಬೇಕು.",
}
RUSSIAN = ["menya zovut ivan", "ya zhivu v moskve", "mne nravitsya etot gorod", "zavtra my poydem"]
RUSSIAN += ["v teatr vmeste s druzyami", "pogoda segodnya khoroshaya", "gde nakhoditsya vokzal"]
RUSSIAN += ["ya ne ponimayu po russki", "skolko eto stoit", "spasibo bolshoe za pomoshch"]


def windows(text, sizes):
    """Every run of so many words."""
    words = text.split()
    return [" ".join(words[at : at + n]) for n in sizes for at in range(len(words) - n + 1)]


def article(code, sizes=range(5, 14)):
    """Distinct rows (the language, English) of the same place of the article, more or less."""
    return list(zip(windows(ARTICLE[code], sizes), windows(ARTICLE["en"], sizes), strict=False))


@cache
def demo(code):
    """Distinct pairs (the language, English) of the demo's text."""
    return [pair[::-1] for pair in dict.fromkeys(train_pairs(build(), code))][:400]


def german():
    return sentence_pairs(300)


def mixed():
    others = [demo(code) for code in ("fr", "es", "ru")]
    kinds = [german(), *others]
    return [(kinds[at % 4][at][0], pair[1]) for at, pair in enumerate(german())]


MENU = ["Sign in", "Log out", "Privacy policy", "Add to cart", "Terms of use", "Read more"]
MENU += ["Accept all cookies", "Subscribe to our newsletter", "Skip to main content"]
SHOP = ["Anmelden", "Abmelden", "Datenschutz", "In den Warenkorb", "Nutzungsbedingungen", "Weiter"]
SHOP += ["Alle Cookies annehmen", "Rundbrief bestellen", "Zum Inhalt"]
MENUS = list(zip(SHOP, MENU, strict=True))
BAD = {  # (rows, languages, reason)
    "swapped": (lambda: [pair[::-1] for pair in german()], "swapped"),
    "wrong language": (
        lambda: [(f, e) for (f, _), (_, e) in zip(demo("fr"), german(), strict=False)],
        "wrong language",
    ),
    "latin-1": (
        lambda: [(de.encode().decode("latin-1"), en) for de, en in german()],
        "mojibake",
    ),
    "cp1252": (
        lambda: [(ru.encode().decode("cp1252", "ignore"), en) for ru, en in demo("ru")],
        "mojibake",
    ),
    "one side empty": (lambda: [("", en) for _, en in german()], "empty"),
    "repeated": (lambda: (german()[:120] * 3)[:300], "repeated"),
    "boilerplate": (
        lambda: [(f"{a} {at}", f"{b} {at}") for at in range(20) for a, b in MENUS],
        "boilerplate",
    ),
    "identical": (lambda: [(en, en) for _, en in german()], "identical"),
    "same language": (
        lambda: [(pair[1], other[1]) for pair, other in zip(german(), demo("fr"), strict=False)],
        "same language",
    ),
    "mixed": (mixed, "wrong language"),
    "other script": (
        lambda: [(ru, en) for ru, (_, en) in zip(ROMAN, demo("ru"), strict=False)],
        "other script",
    ),
    "numbers": (lambda: [(f"{at} - {at + 1}", f"{at}:00") for at in range(300)], "numbers"),
}
ROMAN = [f"{a} {b}" for a in RUSSIAN for b in RUSSIAN if a != b]
LANGUAGE = {"cp1252": "ru", "other script": "ru"}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_with_its_reason_and_is_an_error(tmp_path, name):
    make, reason = BAD[name]
    codes = [LANGUAGE.get(name, "de"), "en"]
    path = Path(write_form(tmp_path, "tsv", codes, make()))
    probe = probe_files([path], codes)
    assert {name.removesuffix(" de").removesuffix(" ru") for name in probe.findings} == {reason}
    assert probe.wrong > 0.5 or name == "latin-1"  # a third of the rows has an umlaut
    (sentence,) = probe.findings.values()
    line, shown = re.fullmatch(r".*, like line (\d+): (['\"].*['\"])", sentence).groups()
    assert ast.literal_eval(shown).split(" | ") == [text[:60] for text in make()[int(line) - 1]]
    if name == "latin-1":
        return
    message = one_line(check_probe, str(path), probe)
    assert message.startswith(f"{path}: {100 * probe.wrong:.0f} % of its rows are wrong: ")
    assert sentence in message
    check_probe(str(path), probe, "it is a test")


GOOD = {code: (code, lambda code=code: article(code)) for code in ("am", "hy", "ka", "km", "kn")}
GOOD |= {code: (code, lambda code=code: demo(code)) for code in ("fr", "ru", "zh", "ja", "ar")}
GOOD |= {"de": ("de", german), "short": ("hy", lambda: article("hy", range(1, 4)))}
GOOD["unknown"] = ("xq", lambda: [(de.translate({97: "q"}), en) for de, en in german()])


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_in_a_good_file(tmp_path, name):
    code, make = GOOD[name]
    rows = list(dict.fromkeys(make()))
    probe = probe_files([Path(write_form(tmp_path, "tsv", [code, "en"], rows))], [code, "en"])
    assert probe.findings == {}
    assert probe.rows == len(rows) >= 50
    assert probe.unknown == (["xq"] if code == "xq" else [])


def test_few_rows_and_fewer_wrong_ones_than_half_are_no_error(tmp_path):
    few, some = [pair[::-1] for pair in german()[:40]], german()
    some[:100] = [pair[::-1] for pair in some[:100]]
    for number, rows in enumerate((few, some)):
        path = Path(write_form(tmp_path / str(number), "tsv", ["de", "en"], rows))
        probe = probe_files([path], ["de", "en"])
        assert next(iter(probe.findings)) == "swapped"
        check_probe(str(path), probe)


# --- the sample


@pytest.mark.parametrize("count", [1, SAMPLE, SAMPLE + 1, 4 * SAMPLE + 5, 150_000])
def test_both_ways_to_sample_take_the_same_even_rows(tmp_path, count):
    rows = [(f"zeile {at}", f"line {at}") for at in range(count)]
    path, streamed = moses_of(tmp_path / "x.zip", rows), Sample(["de", "en"])
    assert list(streamed.over(rows)) == rows
    zipped = Sample(["de", "en"])
    assert count_pairs(path, "C", "de-en", zipped) == count == count_pairs(path, "C", "de-en")
    sides = [[text.decode() for text in side.kept] for side in zipped.sides]
    assert sides == [side.kept for side in streamed.sides]
    step = zipped.sides[0].step
    assert sides[0] == [first for first, _ in rows[::step]]
    assert min(count, SAMPLE) <= len(sides[0]) < 2 * SAMPLE
    first, second = zipped.probe(), streamed.probe()
    assert first == second
    assert first.rows == min(count, SAMPLE)


def test_repetitions_far_apart_in_a_long_file_are_counted(tmp_path):
    rows = [(f"zeile {at % 20_000}", f"line {at % 20_000}") for at in range(100_000)]
    sample = Sample(["de", "en"])
    count_pairs(moses_of(tmp_path / "x.zip", rows), "C", "de-en", sample)
    assert sample.probe().shares["repeated"] == 0.8


def test_a_line_without_an_end_and_long_lines_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("ems.corpora.probe.HASHED", 3)
    long = "wort " * 100_000
    path = moses_of(tmp_path / "x.zip", [(long, "a"), ("b", long), *[("c", "d")] * 5000])
    sample = Sample(["de", "en"])
    assert count_pairs(path, "C", "de-en", sample) == 5002
    assert [len(side.kept) for side in sample.sides] == [2501, 2501]
    assert sample.sides[0].kept[0] == long[:1000].encode()


# --- where it is asked


def fetched(tmp_path, form="moses", **more):
    name = "de-en" if form == "moses" else "de"
    out = tmp_path / f"data/{name}"
    release = Release(form, str(tmp_path / "mirror"), "C", "v1", **more)
    return out, lambda: release.fetch_all({name: out})


def test_a_fetched_file_is_an_error_once_it_is_in_place_and_from_then_on(tmp_path, logged, caplog):
    source = tmp_path / "mirror/C/v1/moses/de-en.txt.zip"
    moses_of(source, BAD["swapped"][0]())
    out, fetch = fetched(tmp_path)
    message = one_line(fetch)
    assert re.search("(99|100) % have their sides swapped, like line 1: ", message)
    assert message in caplog.text or "have their sides swapped" in caplog.text
    lock = json.loads(out.with_name("de-en.lock.json").read_text())
    assert (lock["pairs"], lock["probe"]["rows"], lock["probe"]["wrong"]) == (300, 300, 1.0)
    before = out.stat()
    assert one_line(fetch) == message
    _, accepted = fetched(tmp_path, accept="swapped back later")
    assert accepted() == {str(out): sha256_file(source)}
    assert (out.stat().st_mtime_ns, out.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    del lock["probe"]  # as before probes
    out.with_name("de-en.lock.json").write_text(json.dumps(lock))
    assert fetch() == accepted()


def test_documents_are_probed_when_they_are_fetched(tmp_path):
    write_lines(tmp_path / "mirror/C/v1/de", [en for _, en in german()])
    out, fetch = fetched(tmp_path, "text")
    assert "100 % are not in German on its side (English 100 %)" in one_line(fetch)
    assert out.is_file()


@pytest.mark.parametrize("form", ["tsv", "two", "jsonl", "tmx"])
def test_own_files_are_probed_when_they_are_cleaned(tmp_path, form):
    rows, keys = BAD["swapped"][0](), tmp_path / "keys.tsv"
    if form == "tmx":
        units = [
            f'<tu><tuv xml:lang="de-DE"><seg>{de}</seg></tuv>'
            f'<tuv xml:lang="EN"><prop>x</prop><seg><ph>n</ph>{en}</seg></tuv></tu>'
            for de, en in rows
        ]
        paths = str(write_lines(tmp_path / "x.tmx", ["<tmx><body>", *units, "</body></tmx>"]))
    else:
        paths = write_form(tmp_path, form, ("de", "en"), rows)
    paths = (paths,) if isinstance(paths, str) else tuple(paths)
    write_keys({}, keys)

    def clean(accept):
        own = Corpus("Mine", "own", "", True, ("de-en",), None, paths={"de-en": paths})
        own = Corpus(**{**vars(own), "accept": accept})
        experiment = tiny(own, decontaminate={"against": []})
        return cleaned(experiment, own_files(own, "de-en"), keys)[1]["kept"]

    assert re.search("(99|100) % have their sides swapped", one_line(clean, ""))
    assert clean("it is a test") == 300


# --- real text


def test_flores_is_right_in_every_language_and_wrong_in_any_other(tmp_path):
    folder = SHARED / "flores200/flores200_dataset/devtest"
    needs(folder.is_dir(), "no FLORES-200 in ../shared")
    texts = {
        code: read_lines(folder / f"{language.flores200}.devtest")[:400]
        for code, language in load_languages().items()
    }
    for code, other in zip(texts, [*list(texts)[7:], *list(texts)[:7]], strict=True):
        for claimed, right in ((code, True), (other, False)):
            sample = Sample([claimed])
            sample.sides[0].add(texts[code])
            probe = sample.probe()
            if right:  # FLORES itself has "ErdoÄŸan" in Indonesian
                assert list(probe.findings) == ["mojibake id"] * (code == "id"), code
            else:
                assert probe.wrong > 0.5, (code, claimed)


@pytest.mark.slow
def test_no_real_file_is_named_but_one_with_slovak_for_slovenian():
    paths = sorted(SHARED.glob("opus/*/*/moses/*.zip"))
    needs(paths, "no corpora in ../shared")
    named = []
    for path in paths:
        pair = path.name.partition(".")[0]
        if probe_files([path], pair.split("-")).findings:
            named.append(f"{path.parts[-4]} {pair}")
    assert named == ["Tatoeba en-sl"]
