"""The embedded demo corpus: parallel sentences in eight languages, written for EMS, made by rules.

It lets the whole pipeline run without a network, and gives each stage something to do: a training
corpus and a validation corpus in the OPUS layout, a benchmark in the layout of Tatoeba v1, a leak
between them that decontamination must find, and the other evaluation sets in theirs (`sets`).

Notable choices:
- every sentence is ours: phrases in `lexicon/*.tsv`, frames in `train.yaml` and `heldout.yaml`, free
  sentences in `free.tsv`; no text is copied, so the corpus carries no licence but the project's;
- grammar is data, not code: the lexicon lists each surface form that a frame needs (case, article,
  elision, measure word), and a frame picks forms by name or by the gender of another slot;
- the benchmark alone has Italian too, of some held-out frames, with the English sides of the other
  languages, so that an experiment meets a language that no system of it was trained on;
- half of the benchmark comes from frames that training never sees, so a score above chance on that half
  shows more than memory of frames; the words are shared, so it can be learnt;
- a third of each language's training pairs has English sides that every language shares, the rest
  is a third of a common pool: like OPUS, batches hold the same English sentence in several pairs;
- `LEAKED_PAIRS` benchmark pairs per language stand in the training corpus: verbatim, in disguise
  (case, punctuation, spaces, full-width or decomposed letters), or by one side only. Nothing else
  matches the benchmark, in any language, so decontamination must remove exactly that many;
- the same bytes each time: one seed, only `Random.random()` (whose sequence Python guarantees), no
  iteration over sets, fixed zip stamps. Another zlib may compress to other bytes of the same text.
"""

from ems.corpora.demo.leak import LEAKED_PAIRS
from ems.corpora.demo.mirror import write_mirror

__all__ = ["LEAKED_PAIRS", "write_mirror"]
