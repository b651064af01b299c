"""Write the demo corpus as a mirror: a folder with the layout of OPUS and of LASER's Tatoeba v1.

    opus/Demo/v1/moses/<a>-<b>.txt.zip        training pairs, a < b in string order
    opus/DemoDev/v1/moses/<a>-<b>.txt.zip     validation pairs
    tatoeba/tatoeba.<iso3>-eng.<iso3|eng>     benchmark
    <set>/...                                 the other evaluation sets, each as published
    documents/DemoDocuments/v1/<a>.txt        documents of single languages
    manifest.json                             counts and checksums; written last
    .ems-demo                                 marks the folder as one that may be replaced; first

OPUS: https://opus.nlpl.eu; Tatoeba v1: https://github.com/facebookresearch/LASER (data/tatoeba/v1).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from ems.base.errors import EmsError
from ems.base.files import atomic_path, check_target, read_json, sha256_file, write_json, write_text
from ems.base.progress import Progress
from ems.base.schema import Below, Count, Json, Record, Text
from ems.config.languages import load_languages
from ems.config.plugins import benchmarks, has, module
from ems.corpora.demo.build import OTHERS, SEED, Demo, build
from ems.corpora.demo.draw import Sentence, shuffled
from ems.corpora.demo.grammar import BENCHMARK_ONLY, LANGUAGES
from ems.corpora.demo.layout import VERSION, Pair, lines, moses, moses_name
from ems.corpora.demo.leak import LEAKED_PAIRS
from ems.corpora.demo.material import Files, Material
from ems.corpora.demo.stories import CORPUS, stories

MARK = ".ems-demo"  # written first: what is in a folder with it may be replaced
NOTE = {
    "Demo": f"{LEAKED_PAIRS} of the pairs match the demo benchmark on purpose; "
    "decontamination must remove them.",
    "DemoDev": "For validation; no sentence of it is in Demo or in the demo benchmark.",
}


class _Manifest(Record):
    """What manifest.json of a mirror must have."""

    counts: Json
    seed: Count
    sha256: dict[Below, Text]


def write_mirror(root: Path) -> None:
    """Write the mirror below `root`; `manifest.json` is written last, so with it the mirror is whole.

    Raises `EmsError` when the package's data are malformed or the disk cannot take the files.
    """
    total = 4 * len(OTHERS) + 2 * len(BENCHMARK_ONLY) + len(demo_sets()) + len(LANGUAGES)
    progress = Progress("demo corpus", total, "files and sets")
    check_target(root, _is_mirror)
    write_text(root / MARK, "written by `ems demo-mirror`, which replaces what is in this folder\n")
    (root / "manifest.json").unlink(missing_ok=True)
    demo = build()
    written: list[Path] = []
    for language in OTHERS:
        written.append(_write_moses(root, "Demo", language, train_pairs(demo, language)))
        written.append(_write_moses(root, "DemoDev", language, pairs_of(demo.dev, language)))
        progress.add(2)
    for language in (*OTHERS, *BENCHMARK_ONLY):
        written += _write_tatoeba(root, language, pairs_of(demo.benchmark, language))
        progress.add(2)
    for folder, files in made_sets(demo):
        written += _write_folder(root / folder, files)
        progress.add()
    for language, text in stories(demo).items():  # last: what is drawn before stays as it was
        path = root / "documents" / CORPUS / VERSION / f"{language}.txt"
        write_text(path, text)
        written.append(path)
        progress.add()
    sums = {path.relative_to(root).as_posix(): sha256_file(path) for path in written}
    counts = {language: count(demo, language) for language in (*OTHERS, *BENCHMARK_ONLY)}
    write_json(root / "manifest.json", {"counts": counts, "seed": SEED, "sha256": sums})
    progress.close()


def _is_mirror(root: Path) -> bool:
    """True for a mirror, an unfinished one and one without a mark, too."""
    if all(path.name.startswith(f".{MARK}.") for path in root.iterdir()):  # half of the mark
        return True
    try:
        return (root / MARK).exists() or bool(read_json(root / "manifest.json", _Manifest))
    except EmsError:
        return False


def count(demo: Demo, language: str) -> dict[str, int]:
    """Return the manifest's counts of one language; `train` includes `leaked`."""
    leaked, trained = len(demo.leak.get(language, [])), language in demo.train
    return {
        "train": len(demo.train.get(language, [])) + leaked,
        "leaked": leaked,
        "dev": len(demo.dev) if trained else 0,
        "benchmark": len(pairs_of(demo.benchmark, language)),
    }


def train_pairs(demo: Demo, language: str) -> list[Pair]:
    """Return one language's training pairs with its leak among them."""
    leaked = [(leak.english, leak.other) for leak in demo.leak[language]]
    random = Random(f"{SEED} {language}")
    return shuffled([*pairs_of(demo.train[language], language), *leaked], random)


def pairs_of(sentences: Sequence[Sentence], language: str) -> list[Pair]:
    """Return the sentences that are in `language` as (English, `language`)."""
    return [sentence.pair(language) for sentence in sentences if language in sentence.texts]


def _write_moses(root: Path, corpus: str, language: str, pairs: Sequence[Pair]) -> Path:
    """Write one zip in OPUS' Moses layout; return its path."""
    path = root / "opus" / corpus / VERSION / "moses" / moses_name(language)
    with atomic_path(path) as temporary:
        temporary.write_bytes(moses(corpus, language, pairs, NOTE[corpus]))
    return path


def _write_tatoeba(root: Path, language: str, pairs: Sequence[Pair]) -> list[Path]:
    """Write the benchmark of one language as two plain files; return their paths."""
    code = load_languages()[language].tatoeba_v1
    paths = [root / "tatoeba" / f"tatoeba.{code}-eng.{side}" for side in ("eng", code)]
    for path, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        write_text(path, lines(texts))
    return paths


def _write_folder(folder: Path, files: Files) -> list[Path]:
    """Write `files` as the whole content of `folder`; return their paths."""
    with atomic_path(folder, lambda folder: True) as temporary:  # of a mirror, which is ours
        for name, content in files.items():
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return [folder / name for name in files]


def demo_sets() -> dict[str, str]:
    """Return folder of the mirror -> the benchmark that writes it, in the order of drawing.

    That is `PLACE` of a `demo` module: a new one goes to the end, so the bytes of the others stay.
    """
    demos = {name: module(name, "demo") for name in benchmarks() if has(name, "demo")}
    places = {name: getattr(demo, "PLACE", len(demos)) for name, demo in demos.items()}
    folders: dict[str, str] = {}
    for name in sorted(places, key=places.__getitem__):
        folders.setdefault(benchmarks()[name].demo or name, name)
    return folders


def made_sets(demo: Demo) -> Iterator[tuple[str, Files]]:
    """Yield (folder, files) of each set."""
    material = Material(demo)
    for folder, name in demo_sets().items():
        yield folder, module(name, "demo").made(material)
