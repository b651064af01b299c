"""Locations of a corpus's files in a source (a directory or a web address) and on this machine."""

from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from urllib.request import url2pathname

from ems.base.errors import EmsError
from ems.config.corpora import NTREX
from ems.config.experiment import Corpus
from ems.config.languages import names_by_code
from ems.corpora.own import own_files


def is_remote(source: str) -> bool:
    return source.startswith(("https://", "http://"))


# NTREX's names of languages that are not ISO 639-3's
OF_NTREX = {"ar": "arb", "az": "aze-Latn", "ckb": "ckb-Arab", "ku": "kmr", "sd": "snd-Arab"}
OF_NTREX |= {"sn": "sna-Latn", "sr": "srp-Cyrl", "tg": "tgk-Cyrl", "tl": "fil", "zh": "zho-CN"}


def opus_location(source: str, corpus: str, version: str, pair: str) -> str:
    if sides := ntrex_sides(source, corpus, pair):
        return [*sides.values()][pair.startswith("en-")]
    return f"{corpus_location(source, corpus, version)}/moses/{pair}.txt.zip"


def ntrex_sides(source: str, corpus: str, pair: str) -> dict[str, str]:
    """Return member of a Moses zip -> its address, in NTREX's repository; {} for other corpora."""
    if corpus != NTREX or not is_remote(source):
        return {}
    folder, sides = f"{source.rstrip('/')}/NTREX-128", {}
    for code in pair.split("-"):
        iso3 = names_by_code().get(code, {}).get("iso3", code)
        name = "src.eng" if code == "en" else f"ref.{OF_NTREX.get(code, iso3)}"
        sides[f"{corpus}.{pair}.{code}"] = f"{folder}/newstest2019-{name}.txt"
    return sides


def corpus_location(source: str, corpus: str, version: str) -> str:
    """Return the folder of a corpus in a source; OPUS hosts prefix its name with `OPUS-`."""
    if corpus == NTREX and is_remote(source):
        return source.rstrip("/")
    prefix = "OPUS-" if is_remote(source) else ""
    return f"{source.rstrip('/')}/{prefix}{corpus}/{version}"


def mined_location(source: str, pair: str) -> str:
    return f"{source.rstrip('/')}/WikiMatrix/v1/WikiMatrix.{pair}.tsv.gz"


def text_location(corpus: Corpus, file: str, data: Path) -> str:
    """Return the location of one language's documents: FILE.txt.gz, or FILE.txt in a directory, by
    preference the one in `data`. A `path` may have OPUS's raw FILE.zip instead.
    """
    folder = corpus.path or f"{corpus.source.rstrip('/')}/{corpus.name}/{corpus.version}"
    packed = f"{folder}/{file}.txt.gz"
    if is_remote(corpus.source):
        return packed
    if corpus.path and local_path(f"{folder}/{file}.zip").is_file():
        return f"{folder}/{file}.zip"
    kept = data / "documents" / corpus.name / corpus.version / f"{file}.txt"
    is_packed = kept.with_name(f"{file}.txt.gz").is_file() or local_path(packed).is_file()
    return packed if is_packed and not kept.is_file() else packed.removesuffix(".gz")


def archives_of(corpus: Corpus, pair: str, data: Path) -> list[Path]:
    if corpus.paths:
        return own_files(corpus, pair)
    return [path_of(corpus, name, data) for name in corpus.files(pair)]


def path_of(corpus: Corpus, file: str, data: Path) -> Path:
    """Return the path of a file of a corpus, once fetched; of documents also in place."""
    if corpus.dumped:
        return data / "wikipedia" / corpus.version / f"{file}.txt.gz"
    if corpus.documents:
        path = local_path(text_location(corpus, file, data))
        folder = data / "documents" / corpus.name / corpus.version
        return path if corpus.path else folder / path.name
    release = data / "opus" / corpus.name / corpus.version
    if corpus.mined:
        return release / "mined" / f"{corpus.name}.{file}.tsv.gz"
    return release / "moses" / f"{file}.txt.zip"


def dump_location(source: str, code: str, date: str) -> str:
    name = f"{code}wiki-{date}-pages-articles-multistream.xml.bz2"
    return f"{source.rstrip('/')}/{code}wiki/{date}/{name}"


def local_path(location: str) -> Path:
    if location.startswith("file://"):
        return Path(url2pathname(address(location).path))
    return Path(location)


def address(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise EmsError(f"{url}: not a valid address ({error}); check `sources`") from None
