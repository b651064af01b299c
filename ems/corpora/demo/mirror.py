"""Write the demo corpus as a mirror: a folder laid out like OPUS and LASER's Tatoeba v1.

opus/Demo/v1/moses/<a>-<b>.txt.zip        training pairs, a < b in string order
opus/DemoDev/v1/moses/<a>-<b>.txt.zip     validation pairs
tatoeba/tatoeba.<iso3>-eng.<iso3|eng>     benchmark
<set>/...                                 the other evaluation sets, in their published layouts
documents/DemoDocuments/v1/<a>.txt        documents of single languages
manifest.json                             counts and checksums; written last
.ems-demo                                 marks a folder that may be replaced; written first
"""

import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from ems.base.files import atomic_path, check_target, sha256_file, write_json, write_text
from ems.base.progress import Progress
from ems.config.languages import load_languages
from ems.config.load import parse_yaml
from ems.config.plugins import benchmarks, has_module, module
from ems.corpora.demo.grammar import BENCHMARK_ONLY, HERE, LANGUAGES, OTHERS, DemoSentence, shuffled
from ems.corpora.demo.texts import SEED, Material, TextPair, build, stories

VERSION = "v1"
DOCUMENTS = "DemoDocuments"  # the corpus of documents
MARK = ".ems-demo"  # written first: the content of a folder with it may be replaced
STAMP = (2020, 1, 1, 0, 0, 0)  # of every zip member, so that the same text gives the same bytes
UNIX = 3

Files = dict[str, str | bytes]  # name below a folder -> content


def write_mirror(root: Path) -> None:
    total = 4 * len(OTHERS) + 2 * len(BENCHMARK_ONLY) + len(demo_sets()) + len(LANGUAGES)
    progress = Progress("demo corpus", total, "files and sets")
    check_target(root, _is_mirror)
    write_text(root / MARK, "written by `ems demo-mirror`, which replaces what is in this folder\n")
    (root / "manifest.json").unlink(missing_ok=True)
    material = build()
    folders = dict(_corpora(material))
    folders |= {at: module(name, "demo").demo_files(material) for at, name in demo_sets().items()}
    documents = stories(material).items()  # drawn last, to keep the bytes of the other files
    folders[f"documents/{DOCUMENTS}/{VERSION}"] = {f"{code}.txt": text for code, text in documents}
    sums = {}
    for folder, files in folders.items():
        with atomic_path(root / folder, lambda folder: True) as temporary:  # may replace our own
            for name, content in files.items():
                path = temporary / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        sums |= {f"{folder}/{name}": sha256_file(root / folder / name) for name in files}
        progress.add(1 if folder in demo_sets() else len(files))
    counts = {}
    for language in (*OTHERS, *BENCHMARK_ONLY):
        leaked, trained = len(material.leak.get(language, [])), language in material.train
        counts[language] = {
            "train": len(material.train.get(language, [])) + leaked,
            "leaked": leaked,
            "dev": len(material.dev) if trained else 0,
            "benchmark": len(pairs_of(material.benchmark, language)),
        }
    write_json(root / "manifest.json", {"counts": counts, "seed": SEED, "sha256": sums})
    progress.close()


def _is_mirror(root: Path) -> bool:
    """Return True for a mirror, even if writing of its mark was interrupted."""
    return (root / MARK).exists() or all(p.name.startswith(f".{MARK}.") for p in root.iterdir())


def _corpora(material: Material) -> Iterator[tuple[str, Files]]:
    train = dict(_moses("Demo", language, train_pairs(material, language)) for language in OTHERS)
    yield f"opus/Demo/{VERSION}", train
    yield f"opus/DemoDev/{VERSION}", moses_zips("DemoDev", material.dev, OTHERS)
    tatoeba: Files = {}
    for language in (*OTHERS, *BENCHMARK_ONLY):
        code = load_languages()[language].tatoeba_v1
        english, other = zip(*pairs_of(material.benchmark, language), strict=True)
        tatoeba[f"tatoeba.{code}-eng.eng"] = lines(english)
        tatoeba[f"tatoeba.{code}-eng.{code}"] = lines(other)
    yield "tatoeba", tatoeba


def demo_sets() -> dict[str, str]:
    """Return {folder of the mirror: benchmark that writes it} in the order of drawing: by `PLACE`
    of its `demo` module. A new one goes last, to keep the others' bytes.
    """
    demos = {name: module(name, "demo") for name in benchmarks() if has_module(name, "demo")}
    places = {name: getattr(demo, "PLACE", len(demos)) for name, demo in demos.items()}
    folders: dict[str, str] = {}
    for name in sorted(places, key=places.__getitem__):
        folders.setdefault(benchmarks()[name].demo or name, name)
    return folders


def demo_codes(name: str) -> dict[str, str]:
    """Return {language: its code in the benchmark} for the languages of both it and the demo."""
    record, languages = benchmarks()[name], load_languages()
    order = LANGUAGES if isinstance(record.codes, str) else record.codes
    codes = {code: record.code_of(languages[code]) for code in order if code in LANGUAGES}
    return {language: code for language, code in codes.items() if code}


def train_pairs(material: Material, language: str) -> list[TextPair]:
    pairs = [*pairs_of(material.train[language], language), *material.leak[language]]
    return shuffled(pairs, Random(f"{SEED} {language}"))


def pairs_of(sentences: Iterable[DemoSentence], language: str) -> list[TextPair]:
    return [sentence.pair(language) for sentence in sentences if language in sentence.texts]


# --- formats


def lines(texts: Iterable[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def table(rows: Iterable[Sequence[str]]) -> str:
    return lines("\t".join(row) for row in rows)


def moses_zips(corpus: str, sentences: Sequence[DemoSentence], languages: Iterable[str]) -> Files:
    """Return {"moses/de-en.txt.zip": bytes} of each language paired with English."""
    return dict(_moses(corpus, code, pairs_of(sentences, code)) for code in languages)


def _moses(corpus: str, language: str, pairs: list[TextPair]) -> tuple[str, bytes]:
    a, b = sorted(("en", language))
    words = {"corpus": corpus, "version": VERSION, "a": a, "b": b, "pairs": len(pairs)}
    texts = parse_yaml((HERE / "moses.yaml").read_text("utf-8"))
    notes = texts["notes"]
    sides = {"en": [english for english, _ in pairs], language: [other for _, other in pairs]}
    links = "".join(texts["link"].format(n=n) for n in range(1, len(pairs) + 1))
    members = {
        "README": texts["readme"].format(**words, note=notes.get(corpus, notes["others"])),
        "LICENSE": texts["license"],
        f"{corpus}.{a}-{b}.{a}": lines(sides[a]),
        f"{corpus}.{a}-{b}.{b}": lines(sides[b]),
        f"{corpus}.{a}-{b}.xml": texts["head"].format(**words) + links + texts["tail"],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            info = zipfile.ZipInfo(name, STAMP)
            info.create_system, info.external_attr = UNIX, 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text.encode("utf-8"), compresslevel=6)
    return f"moses/{a}-{b}.txt.zip", buffer.getvalue()
