"""PAWS-X: do two sentences that share their words say the same?"""

from ems.config.plugins import Benchmark, Shown, same

BENCHMARK = Benchmark(
    title="PAWS-X",
    licence="may be used for any purpose; credit Google LLC",
    source="a directory or a URL with x-final.tar.gz",
    codes=same("de en es fr ja ko zh"),
    family="pair_classification",
    parallel=True,
    tables={
        "pawsx": Shown(
            place=230,
            caption="PAWS-X by cosine: accuracy and average precision.",
            report="PAWS-X: whether two sentences that share their words are paraphrases, by the "
            "cosine of their embeddings. Accuracy in percent, with the threshold that is best for "
            "English dev, and under it the average precision, which needs none. Bold marks the "
            "best of our systems.",
            heading="PAWS-X, cosine with the threshold of English dev; Avg. without English",
        ),
    },
)
