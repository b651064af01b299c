"""The demo's Reuters news: RCV1, RCV2 and MLDoc's indices.

The frames of headline and paragraphs (demo.yaml) determine the class; demo.txt is an item. Each
language has different items, so that no test item translates a training item. Some test items
exceed 120 tokens, above which a document is split.
"""

import itertools
from pathlib import Path
from xml.sax.saxutils import escape

from ems.corpora.demo.grammar import DemoSentence
from ems.corpora.demo.mirror import Files, demo_codes, lines
from ems.corpora.demo.texts import Material, read_labels

PLACE = 12
SPLITS = {"train.80": 20, "dev": 10, "test": 20}  # items of each class
PARAGRAPHS, LONG = 2, 16  # sentences per item; in the first test item of each class
DAY = "19960820"

Story = tuple[str, list[DemoSentence]]  # class; headline and paragraphs


def demo_files(material: Material) -> Files:
    files: Files = {}
    item = Path(__file__).with_suffix(".txt").read_text("utf-8")
    numbers = itertools.count(2000)
    for language, name in demo_codes("mldoc").items():
        for split, size in SPLITS.items():
            index: list[str] = []
            for label, sentences in _stories(material, split, size):
                number = next(numbers)
                corpus = f"RCV2_Multilingual_Corpus/{name}"
                part, file = f"REUT{language.upper()}1", str(number)
                if language == "en":
                    corpus, part, file = "rcv1", DAY, f"{number}newsML"
                index.append(f"{part}-{file}")
                headline, *texts = (escape(sentence.texts[language]) for sentence in sentences)
                words = {"number": number, "language": language, "label": label}
                words["paragraphs"] = "".join(f"<p>{text}</p>\n" for text in texts)
                files[f"{corpus}/{part}/{file}.xml"] = item.format(**words, headline=headline)
            files[f"mldoc-indices/{name}.{split}"] = lines(index)
    return files


def _stories(material: Material, split: str, count: int) -> list[Story]:
    """Return `count` items per class, in random order."""
    stories: list[Story] = []
    for label, names in read_labels(__file__).items():
        sizes = [1 + PARAGRAPHS] * count
        if split == "test":
            sizes[0] = 1 + LONG
        sentences = iter(material.draw_from(names, sum(sizes)))
        stories += [(label, [next(sentences) for _ in range(size)]) for size in sizes]
    return material.shuffled(stories)
