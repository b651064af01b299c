"""The embedded demo corpus: parallel sentences in eight languages, written for EMS, made by rules.

It lets the whole pipeline run without a network: a training and a validation corpus in the OPUS
layout, a benchmark in the layout of Tatoeba v1, a leak between them that decontamination must find
(`LEAKED_PAIRS` for each language), and the other evaluation sets (`mirror`).

Every sentence is ours: words in `lexicon/*.tsv`, frames in `train.yaml` and `heldout.yaml`, free
sentences in `free.tsv`. Half of the benchmark comes from frames that training never sees, and it
alone has Italian, so that an experiment meets a language that no system was trained on. A third of
each language's training pairs has English sides that every language shares; the rest is a third of
a common pool, so that, as in OPUS, several pairs of a batch have the same English sentence.

The bytes are the same each time: one seed, only `Random.random()` (whose sequence Python
guarantees), no iteration over sets, fixed zip stamps.
"""

from ems.corpora.demo.leak import LEAKED_PAIRS
from ems.corpora.demo.mirror import write_mirror

__all__ = ["LEAKED_PAIRS", "write_mirror"]
