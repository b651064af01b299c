"""The free sentences of the demo corpus: `free.tsv`, a line per sentence, a column per language."""

from pathlib import Path

from ems.base.errors import EmsError
from ems.corpora.demo.grammar import HERE, LANGUAGES

FREE = HERE / "free.tsv"
FEWEST = 120  # the benchmark and the validation corpus take 60 of them


def read_free(path: Path = FREE) -> list[dict[str, str]]:
    """Read the free sentences as {language: sentence}.

    Raises `EmsError` that names the line: wrong head, wrong number of cells, an empty cell, stray
    spaces, a repeated sentence, or fewer than `FEWEST` sentences.
    """
    try:
        head, *lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise EmsError(
            f"{path}: no such file; it belongs to the package, install ems again"
        ) from None
    except UnicodeDecodeError as error:
        raise EmsError(f"{path}: expected UTF-8 ({error})") from None
    if tuple(head.split("\t")) != LANGUAGES:
        raise EmsError(f"{path}, line 1: expected the tab-separated head {' '.join(LANGUAGES)}")
    sentences = [_sentence(line, path, number) for number, line in enumerate(lines, start=2)]
    if len(sentences) < FEWEST:
        raise EmsError(f"{path}: expected at least {FEWEST} sentences, found {len(sentences)}")
    for language in LANGUAGES:
        seen: dict[str, int] = {}
        for number, sentence in enumerate(sentences, start=2):
            first = seen.setdefault(sentence[language], number)
            if first != number:
                raise EmsError(f"{path}: lines {first} and {number} are the same in {language}")
    return sentences


def _sentence(line: str, path: Path, number: int) -> dict[str, str]:
    cells = line.split("\t")
    if len(cells) != len(LANGUAGES):
        raise EmsError(
            f"{path}, line {number}: expected {len(LANGUAGES)} cells, found {len(cells)}"
        )
    for language, cell in zip(LANGUAGES, cells, strict=True):
        if not cell or cell != " ".join(cell.split()):
            raise EmsError(
                f"{path}, line {number}: {language} is empty or has stray spaces: {cell!r}"
            )
    return dict(zip(LANGUAGES, cells, strict=True))
