"""The demo's documents: sentences of its Tatoeba that FLORES-200 lacks, some joined or left out."""

from random import Random

from ems.benchmarks.flores200.demo import SENTENCES
from ems.corpora.demo.grammar import below
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import SEED, Material

DOCUMENTS, ALIGNMENTS = 7, 36  # in all, in each document
SHAPES = [(1, 1)] * 10 + [(1, 2), (2, 1)] * 2 + [(1, 3), (0, 1), (1, 0)]  # German, French lines


def demo_files(material: Material) -> Files:
    """Return both sides and the alignments of each document. The sentences of the shorter side are
    joined. Nothing is drawn from `material`, so other data keep their bytes.
    """
    random, sentences = Random(f"{SEED} alignment"), iter(material.benchmark[SENTENCES:])
    files: Files = {}
    for number in range(DOCUMENTS):
        texts: dict[str, list[str]] = {code: [] for code in demo_codes("alignment")}
        gold = []
        for _ in range(ALIGNMENTS):
            shape = SHAPES[below(random, len(SHAPES))]
            own = [next(sentences) for _ in range(max(shape))]
            numbers = []
            for (code, side), size in zip(texts.items(), shape, strict=True):
                parts = [sentence.texts[code] for sentence in own]
                parts = parts if size == len(own) else [" ".join(parts)] * size
                numbers.append(str(list(range(len(side), len(side) + size))))
                side += parts
            gold.append(":".join(numbers))
        files |= {f"test{number}.{code}": lines(side) for code, side in texts.items()}
        files[f"test{number}.{''.join(texts)}"] = lines(gold)
    return files
