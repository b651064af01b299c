"""Laws of the repairs: damage of each kind is undone, right text of all scripts stays as it is."""

import random

import pytest
from conftest import ROOT, SHARED, needs
from hypothesis import given, settings
from hypothesis import strategies as st
from made.experiments import one_line
from made.noise import KINDS, measure, total
from made.text import filtered

from ems.base.files import read_table
from ems.base.texts import read_lines
from ems.config.languages import load_languages
from ems.config.text import CleanSettings, check_clean
from ems.corpora.demo.mirror import train_pairs
from ems.corpora.demo.texts import build
from ems.text.keys import KEYS
from ems.text.repairs.base import (
    COUNT,
    ORDER,
    SAMPLES,
    RepairReport,
    chosen,
    repairer,
    repairs,
)

FOLDER = ROOT / "ems/text/repairs"
PHRASES = list(
    zip(
        read_lines(ROOT / "examples/phrases.txt"),
        read_lines(ROOT / "examples/phrases.txt.languages"),
        strict=True,
    )
)
DEFAULT = "default"


def repaired(text, language, setting=DEFAULT):
    return repairer(setting, (language,))([(text, 0)], RepairReport())[0][0]


# --- one by one


def examples():
    """(repair, language, before, after) of each table and each docstring."""
    for path in sorted(FOLDER.glob("*.tsv")):
        for row in read_table(path) if path.stem in repairs() else ():
            if "before" in row:
                code = "de" if row["languages"][:1] in ("", "-") else row["languages"].split()[0]
                yield path.stem, code, row["before"], row["after"], row["replacement"]


@pytest.mark.parametrize(("name", "code", "before", "after", "replacement"), [*examples()])
def test_each_rule_does_what_its_example_says(name, code, before, after, replacement):
    assert any(own.mend(before, "") != before for own in repairs()[name](code))
    assert repaired(before, code, (name,)) == (before if replacement == COUNT else after)


CASES = [
    ("mojibake", "de", "schÃ¶n", "schön"),
    ("mojibake", "fr", "Ã©cole Ã\xa0 lâ€™eau", "école à l’eau"),
    ("mojibake", "fr", "CAFÉ» À… «VOILÀ» É”", "CAFÉ» À… «VOILÀ» É”"),
    ("mojibake", "ru", "РџСЂРёРІРµС‚, РјРёСЂ!", "Привет, мир!"),
    ("mojibake", "uk", "Різдво. Рік, Січень, Ві… «НТВ» «В»", "Різдво. Рік, Січень, Ві… «НТВ» «В»"),
    ("mojibake", "ur", "یجا گیا تھا، جنہوں", "یجا گیا تھا، جنہوں"),
    ("mojibake", "el", "Β΄ Παγκόσμιος", "Β΄ Παγκόσμιος"),
    ("mojibake", "id", "ErdoÄŸan berkata “ya”", "Erdoğan berkata “ya”"),
    ("mojibake", "ca", "al feble\x97essent", "al feble—essent"),
    ("entities", "en", "AT&T, R&D; a=1&copy=2 <3", "AT&T, R&D; a=1&copy=2 <3"),
    ("entities", "en", "the element <div> of <name>", "the element <div> of <name>"),
    ("entities", "en", "&amp;amp;amp;quot;", '"'),
    ("escapes", "en", r"C:\new\table", r"C:\new\table"),
    ("invisible", "fa", "می\u200cخواهم \u200eABC", "می\u200cخواهم \u200eABC"),
    ("invisible", "km", "ក\u200bខ", "ក\u200bខ"),
    ("lookalikes", "ru", "CO2, VIPом, SIMки, ATMы", "CO2, VIPом, SIMки, ATMы"),
    ("lookalikes", "hi", "TNFα, IL-1β, μm", "TNFα, IL-1β, μm"),
    ("turkic", "tr", "İstanbul", "İstanbul"),
    ("widths", "ja", "ＡＢＣ", "ＡＢＣ"),
    ("detokenise", "fr", "Oui ! Non ? Si : cela ; fin", "Oui ! Non ? Si : cela ; fin"),
    ("detokenise", "en", "3 : 2 at :( half ...", "3 : 2 at :( half ..."),
    ("detokenise", "zh", "张三 李四 王五 赵六 钱七 孙八", "张三 李四 王五 赵六 钱七 孙八"),
    ("quotes", "en", "He said “no”, ‘yes’ – “–”", "He said “no”, ‘yes’ – “–”"),
]


@pytest.mark.parametrize(("name", "code", "before", "after"), CASES)
def test_damage_is_undone_and_what_looks_like_it_stays(name, code, before, after):
    assert repaired(before, code, (name,)) == after


PAIRS = [
    (("- Komm!", "Come!"), ("Komm!", "Come!")),
    (("Komm!", "• 3) Come!"), ("Komm!", "Come!")),
    (("ANNA: Komm!", "Come!"), ("Komm!", "Come!")),
    (("ANNA: Komm!", "Anna: come!"), None),
    (("– Komm!", "“Come!”"), None),
    (("3. Mai", "May 3"), None),
    (("3. Liga", "Third league"), None),
    (("Dritte", "3. Third"), ("Dritte", "Third")),
    (("- Komm!", ""), None),
]


@pytest.mark.parametrize(("pair", "after"), PAIRS)
def test_a_bullet_of_one_side_goes(pair, after):
    assert repairer(DEFAULT, ("de", "en"))([(*pair, 1)], RepairReport()) == [(*(after or pair), 1)]


# --- all together


def test_the_order_names_every_repair_and_each_is_used_once():
    assert tuple(repairs()) == ORDER
    assert chosen(["quotes", "mojibake"]) == ["mojibake", "quotes"]
    assert chosen("none") == []
    assert chosen(DEFAULT) == [*ORDER]


def test_an_unknown_repair_is_refused_with_the_known_ones():
    message = one_line(lambda: check_clean(CleanSettings(repairs=["mojibake", "typos"])))
    assert message.startswith("clean.repairs: found typos; expected `none`, `default`, or a list")
    assert "mojibake, entities" in message


@pytest.mark.parametrize(("text", "code"), PHRASES)
def test_right_text_of_every_language_stays(text, code):
    assert repaired(text, code) == text


WILD = "aeizAÃÂÐСРâ€™©´`'\"’<>&;#amp\\nrt.,!?-–•() @:3\u0307\xad\u200b\u200c\ufeffαοаоіحي你 。\n\t"


@pytest.mark.parametrize("code", ["de", "en", "fr", "ru", "el", "ar", "fa", "hi", "zh", "xq", "sr"])
def test_any_text_is_repaired_once_and_for_all(code):
    repair = repairer(DEFAULT, (code, "en"))
    texts = st.one_of(st.text(), st.text(alphabet=WILD, max_size=40))

    @settings(max_examples=150, deadline=None, database=None)
    @given(texts, texts)
    def law(first, second):
        once = repair([(first, second, 1)], RepairReport())
        assert repair(once, RepairReport()) == once
        for sign in "\n\t":
            assert once[0][0].count(sign) <= first.count(sign)

    law()


@pytest.mark.parametrize("code", ["de", "en", "ru", "ar", "fa", "zh", "ja", "hi"])
def test_a_line_without_suspects_is_never_one_that_a_repair_would_change(code):
    draw = random.Random(code)
    texts = [text for text, own in PHRASES if own == code]
    texts += [damage(text, code, draw) or text for _, damage in KINDS.values() for text in texts]
    for name in ORDER:
        one = repairer((name,), (code,))
        masks = one._masks(texts, one.tables[0])
        unread = [text for text, mask in zip(texts, masks, strict=True) if not mask]
        for own in repairs()[name](code):
            assert [text for text in unread if own.mend(text, text) != text] == []


def test_a_report_counts_all_and_samples_some_evenly():
    rows = [(f"Q&amp;A {line}", "right", line) for line in range(1000)]
    reports = [RepairReport(), RepairReport()]
    for report in reports:
        for start in range(0, 1000, 100):
            repairer(DEFAULT, ("de", "en"))(rows[start : start + 100], report)
    assert reports[0].changed == {"entities": 1000}
    samples = reports[0].samples["entities"]
    assert samples == reports[1].samples["entities"]
    assert len({*samples}) == SAMPLES
    assert any(line > 500 for line, *_ in samples)
    assert all(after == before.replace("&amp;", "&") for _, before, after in samples)


def test_a_legacy_font_is_only_counted():
    report, row = RepairReport(), ("og Hkkjr ds yksx gS", "They are people of India", 1)
    assert repairer(DEFAULT, ("hi", "en"))([row], report) == [row]
    assert report.changed == {"legacy": 1}


# --- in the stage


def test_cleaning_repairs_before_it_tidies_and_counts_repairs():
    pairs = [("schÃ¶n\x20und", "fine &amp; dandy"), ("so\xadft", "soft"), ("gut", "good")]
    kept, report = filtered(pairs, sides=("de", "en"), repairs=DEFAULT)
    assert kept[0] == ("schön und", "fine & dandy")
    assert kept[2] == ("gut", "good")
    assert report.changed == {"mojibake": 1, "entities": 1, "invisible": 1}
    assert report.repairs.samples["mojibake"] == [(1, "schÃ¶n und", "schön und")]
    assert filtered(pairs, repairs=["entities"])[1].changed == {"entities": 1}
    assert filtered(pairs)[1].repairs is None


@pytest.mark.parametrize("held", ["schÃ¶n gut", "schön gut"])
def test_an_evaluation_sentence_is_found_as_it_was_and_as_it_is_repaired(held):
    known = {KEYS["folded"]([held])[0]: ("tatoeba",)}
    pairs = [("schÃ¶n gut", "fine"), ("gut", "good")]
    kept, report = filtered(pairs, known=known, repairs=DEFAULT)
    assert kept == [("gut", "good")]
    assert report.removed["evaluation"] == 1


# --- made noise


@pytest.fixture(scope="module")
def material():
    """{language: right pairs with English} of the demo."""
    every = build()
    rows = {
        code: train_pairs(every, code)[:500] for code in ("de", "es", "fr", "ru", "zh", "ja", "ar")
    }
    return {**{code: [row[::-1] for row in own] for code, own in rows.items()}, "en": rows["de"]}


def scored(texts, kind):
    scores, wrong = [], []
    for code, rows in texts.items():
        score, bad = measure(rows, (code, "de" if code == "en" else "en"), kind)
        scores.append(score)
        wrong += bad
    return total(scores), wrong[:3]


@pytest.mark.parametrize("kind", KINDS)
def test_made_noise_is_repaired(material, kind):
    score, wrong = scored(material, kind)
    assert score.damaged > 50, "the text of the demo has none"
    assert score.recall >= 95, wrong
    assert score.precision >= 99.5, wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_made_noise_in_62_languages_is_repaired(kind):
    folder = SHARED / "flores200/flores200_dataset/devtest"
    needs(folder.is_dir(), "real data in ../shared/data")
    codes = load_languages()
    lines = {code: read_lines(folder / f"{own.flores200}.devtest") for code, own in codes.items()}
    texts = {code: [*zip(own[:200], lines["en"], strict=False)] for code, own in lines.items()}
    score, wrong = scored(texts, kind)
    assert score.recall >= 95, wrong
    assert score.precision >= 99.5, wrong
