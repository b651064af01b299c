"""The runs that text_throughput.py compares: stages of the text path, bare Perl, and a plain loop.

`write_data` writes the data of every scale. Each of MEASURED then runs in the process calling it.
"""

import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from ems.config.languages import pair_name
from ems.config.load import load_experiment, load_site
from ems.corpora.moses import read_pairs

ROOT = Path(__file__).resolve().parents[1]
SCALES = (1, 4, 16)
LANGUAGES = ["de", "fr", "ru", "ar", "hi", "zh", "ja"]
SOURCES = [
    *[("tico-19", "v2020-10-28"), ("NTREX", "v1"), ("Tatoeba", "v2021-08-07")],
    ("Demo", "v1"),  # in the demo's mirror
]
PAIRS = 60_000
SETTINGS = """
seed: 1
sources: {}
splits: {}
corpora: [{name: Bench, version: v1, source: made}]
validation: null
segmenters: {default: moses, zh: jieba, ja: fugashi}
model: {}
objectives: {}
train: {steps: 1}
systems: {ems: {}}
tables: {}
"""


class Work:
    """The folder of a measurement: its experiment and its data at each scale."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keys = folder, folder / "keys.tsv"
        self.vocabulary, self.sample = folder / "vocabulary.model", folder / "sample.txt"
        self.experiment = load_experiment("bench", load_site(ROOT / "config.yaml"), folder)
        self.pairs, self.corpus = self.experiment.corpora[0].pairs, ("Bench", "v1")

    def archive(self, scale: int, pair: str) -> Path:
        name, version = self.corpus
        folder = self.folder / f"{scale}" / "data/opus" / name / version
        return folder / "moses" / f"{pair}.txt.zip"

    def segmented(self, scale: int, pair: str) -> Path:
        return self.folder.joinpath(f"{scale}", "segmented", *self.corpus, f"{pair}.tsv")


# --- data


def real_lines(shared: Path, code: str, count: int) -> Iterator[tuple[str, str]]:
    """Return `count` pairs of a language from the corpora that exist."""
    pair = pair_name("en", code)
    paths = [
        (name, shared / "opus" / name / v / "moses" / f"{pair}.txt.zip") for name, v in SOURCES
    ]
    every = (line for name, path in paths if path.exists() for line in read_pairs(path, name, pair))
    return islice(every, count)


def write_data(folder: Path, shared: Path | None, chinese: str, moses: str) -> Work:
    """Write the experiment, the zips of every scale, and the keys of the evaluation sentences."""
    from ems.text.evalkeys import eval_files, write_eval_keys

    settings: dict[str, Any] = {"description": "the text path, measured"} | yaml.safe_load(SETTINGS)
    if shared:
        evalset, version, codes, pieces = "flores200", "v1", LANGUAGES, 16_000
        place = shared / "flores200" / "flores200_dataset"
        source = partial(real_lines, shared, count=PAIRS // len(LANGUAGES))
    else:
        from ems.corpora.demo.mirror import write_mirror

        write_mirror(folder / "mirror")
        evalset, version, codes, pieces = "tatoeba", "demo-v1", ["de", "zh", "ja"], 1_500
        place = folder / "mirror" / "tatoeba"
        source = partial(real_lines, folder / "mirror", count=300)
    settings["segmenters"] |= {"zh": chinese, "default": moses}
    settings |= {
        "languages": ["en", *codes],
        "evalsets": {"tatoeba": {"version": "v1"}} | {evalset: {"version": version}},
        "benchmarks": ["tatoeba"],
        "decontaminate": {"against": [evalset]},
        "vocabulary": {"size": pieces, "sample_lines": PAIRS},
    }
    (folder / "bench.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    work = Work(folder)
    for code in codes:
        write_zips(work, pair_name("en", code), list(source(code=code)))
    write_eval_keys(
        work.experiment.decontaminate.key,
        eval_files(work.experiment, {evalset: place}),
        work.keys,
    )
    return work


def write_zips(work: Work, pair: str, lines: list[tuple[str, str]]) -> None:
    for scale in SCALES:
        path = work.archive(scale, pair)
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for side, code in enumerate(pair.split("-")):
                with archive.open(f"Bench.{pair}.{code}", "w", force_zip64=True) as member:
                    for copy in range(scale):
                        number = f" {copy}" if copy else ""
                        text = "".join(f"{line[side]}{number}\n" for line in lines)
                        member.write(text.encode())


# --- what is measured


def prepare(work: Work, scale: int) -> None:
    from ems.text.bulk import LINES
    from ems.text.prepare import Part, prepare_pairs

    folder, data = work.folder / f"{scale}", work.folder / f"{scale}" / "data"
    files = (data, work.keys, None, folder, folder / "state", 1, LINES)
    shutil.rmtree(folder / "segmented", ignore_errors=True)  # with the stamps of an earlier run
    part = Part(work.experiment, *work.corpus, list(work.pairs), *files)
    prepare_pairs(part, folder / "receipt.json")


def sample(work: Work, scale: int) -> None:
    from ems.text.subwords import write_sample

    sources = [work.segmented(scale, pair) for pair in work.pairs]
    write_sample(work.experiment, sources, work.folder / f"{scale}" / "sample.txt")


def encode(work: Work, scale: int) -> None:
    from ems.shards.writer import write_shards

    for pair in work.pairs:
        out = work.folder / f"{scale}" / "shards" / pair
        write_shards(work.segmented(scale, pair), work.vocabulary, out)


def perl(work: Work, scale: int) -> None:
    import mosestokenizer

    script = Path(mosestokenizer.__file__).with_name("tokenizer-v1.1.perl")
    for pair in work.pairs:
        for code in pair.split("-"):
            path = work.folder / f"{scale}" / "perl" / f"{pair}.{code}"
            command = ["perl", str(script), "-q", "-no-escape", "-l", code]
            with open(path, "rb") as lines, open(f"{path}.out", "wb") as out:
                subprocess.run(command, stdin=lines, stdout=out, check=True)


def plain(work: Work, scale: int) -> None:
    """Run a plain loop over sentences, as a first version would be written."""
    import numpy as np

    from ems.text.subwords import load_vocabulary

    processor = load_vocabulary(work.vocabulary)
    for pair in work.pairs:
        codes, ids = pair.split("-"), ([], [])
        tools = [plain_tool(work.experiment.segmenters[code], code) for code in codes]
        for line in read_pairs(work.archive(scale, pair), "Bench", pair):
            for side, text in enumerate(line):
                words = " ".join(tools[side](text))
                ids[side].append(np.array(processor.encode(words.lower()), np.uint16))
        for side, code in enumerate(codes):
            np.save(work.folder / f"{pair}.{code}.npy", np.concatenate(ids[side]))
        for tool in tools:
            if hasattr(tool, "close"):
                tool.close()  # so that its CPU time is counted


def plain_tool(name: str, code: str) -> Callable[[str], list[str]]:
    if name in ("jieba", "rjieba"):
        import jieba

        return jieba.lcut
    if name == "fugashi":
        from fugashi import Tagger

        tagger = Tagger("-Owakati")
        return lambda text: tagger.parse(text).split()
    from mosestokenizer import MosesTokenizer

    return MosesTokenizer(code, no_escape=True)


MEASURED = {"prepare": prepare, "sample": sample, "encode": encode}
MEASURED |= {"perl": perl, "plain": plain}
