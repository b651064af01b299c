"""Mine pairs of similar sentences in documents of two languages (Wang et al., CCL 2019, 3.2).

The paper samples m x m sentences and keeps the best min(m x m, 1000) pairs, until there are enough.
It leaves the rest open. Here the language pairs take turns, and m sentences of each language are
drawn without replacement, as a function of (seed, round). To measure the search, pairs of the
validation corpus are hidden among the sentences of the first round of each language pair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import prod
from pathlib import Path

import numpy as np
import torch

from ems.base.errors import EmsError
from ems.base.files import VOCABULARY, state_of
from ems.base.progress import log
from ems.base.provenance import source_hash
from ems.base.records import Json
from ems.base.schema import plain
from ems.bench.margin import best_pairs
from ems.bench.retrieval import normalised
from ems.config.experiment import Experiment
from ems.config.objectives import MiningSettings
from ems.model.encode import SentenceEncoder
from ems.model.encoder import embed_tokens
from ems.shards.documents import PAIR, DocumentStore, languages_of, write_mined
from ems.shards.index import TRAIN, shards_of
from ems.shards.reader import PairStore
from ems.shards.shard import allow_open_files, check_sizes
from ems.text.pieces import Advance, Piece, done_pieces, numbered
from ems.train.data import Index, validation_pairs

STREAM = [0, 0, 0, 3]  # counter of random numbers, far from the one of batches
SENTENCES = 5_000  # in one file of vectors
PAIRS = 10_000  # in one file of compared rounds, about
MOST = 1_000  # rounds in one file, at most
HIDDEN = 1000  # hidden translations of a language pair, at most: Tatoeba's usual size
Tokens = list[np.ndarray]


@dataclass(frozen=True)
class Rounds:
    """Rounds over languages of `sizes` sentences, an evenly spaced `share` of the documents."""

    settings: MiningSettings
    sizes: tuple[int, ...]
    seed: int
    share: float = 1.0

    @cached_property
    def turns(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.sizes)), 2))

    def languages(self, number: int) -> tuple[int, int]:
        return self.turns[number % len(self.turns)]

    def kept(self, number: int) -> int:
        samples = (min(self.settings.sample, self.sizes[one]) for one in self.languages(number))
        return min(prod(samples), self.settings.keep)

    @cached_property
    def count(self) -> int:
        sums = np.cumsum([self.kept(number) for number in range(len(self.turns))])
        whole, left = divmod(self.settings.pairs, int(sums[-1]))
        return whole * len(self.turns) + (int(np.searchsorted(sums, left)) + 1 if left else 0)

    def drawn(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the sentences of both languages that a round compares, ascending."""
        random = np.random.Generator(np.random.Philox(key=[self.seed, number], counter=STREAM))
        drawn = []
        for size in (self.sizes[one] for one in self.languages(number)):
            m = min(size, self.settings.sample)
            within = np.sort(random.choice(size, m, replace=False, shuffle=False))
            drawn.append((within / self.share).astype(np.int64))
        return drawn[0], drawn[1]

    def all_drawn(self) -> list[np.ndarray]:
        """Return the sentences of each language that any round compares, ascending."""
        parts: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in self.sizes]
        for number in range(self.count):
            for language, rows in zip(self.languages(number), self.drawn(number), strict=True):
                parts[language].append(rows)
        return [np.unique(np.concatenate(rows)) for rows in parts]


def mine(
    experiment: Experiment, name: str, index: Index, model: Path, out: Path, state: Path | None
) -> Json:
    """Mine the pairs of system `name` in documents, write their folder `out`, return its manifest.
    `model`: folder to embed with; `state`: folder of finished pieces (default: next to `out`).
    Raises `EmsError` for documents of fewer than two languages, and for another vocabulary.
    """
    settings, languages = experiment.systems[name], list(experiment.languages)
    coherence, training = settings.objectives.coherence, settings.train
    mining, folders = coherence.mining, shards_of(index[TRAIN], languages, 1)
    documents = DocumentStore(folders, languages, settings.model.max_tokens, coherence.k)
    truth = validation_pairs(settings, languages, index)
    torch.set_num_threads(training.threads)
    encoder = SentenceEncoder(model, training.device)
    if len(documents.groups) < 2:
        there = ", ".join(languages_of(documents))
        raise EmsError(f"expected documents of two languages or more to mine in, found {there}")
    advice = "give the model of the system that `train.start_from` names"
    documents.check_vocabulary(model / VOCABULARY, advice)
    for store in filter(None, (documents, truth)):
        store.check(encoder.vocabulary.get_piece_size())
    share = training.corpus_share
    sizes = tuple(max(1, int(count * share)) for count in documents.sizes.tolist())
    rounds = Rounds(mining, sizes, experiment.seed, share)
    state = state or state_of(out)
    key = [encoder.identity, documents.contents, plain(mining), experiment.seed]
    key += [truth.contents if truth else "", training.threads, share]
    key += [documents.max_tokens, source_hash("ems.train.mine_documents")]
    search = PairSearch(documents, truth, rounds, encoder)
    pieces = numbered(model, len(search), SENTENCES)
    what = f"mine {name}: encode"
    with done_pieces(what, search.encode, pieces, state / "encoded", key, 1, "sentences") as files:
        allow_open_files(len(files))
        search.vectors = [np.load(file, mmap_mode="r") for file in files]
        pieces = numbered(model, rounds.count, max(1, min(MOST, PAIRS // rounds.kept(0))))
        what = f"mine {name}: compare"
        with done_pieces(what, search.write, pieces, state / "compared", key, 1, "rounds") as files:
            rows = np.concatenate([np.load(file) for file in files])[: mining.pairs]
            about = {"rounds": rounds.count, "mining": plain(mining), "model": encoder.identity}
            about["by_pair"] = search.summary(rows)
            manifest = write_mined(out, documents, rows, about)
    if state.is_dir() and not any(state.iterdir()):
        state.rmdir()
    return manifest


class PairSearch:
    """The search for pairs. The sentences of the rounds are numbered, then hidden translations."""

    vectors: list[np.ndarray]  # of length 1, SENTENCES in each array

    def __init__(
        self,
        documents: DocumentStore,
        truth: PairStore | None,
        rounds: Rounds,
        encoder: SentenceEncoder,
    ) -> None:
        self.documents, self.rounds, self.encoder = documents, rounds, encoder
        mining = rounds.settings
        self.limits = mining.keep, mining.neighbours, encoder.device.type
        self.languages = languages_of(documents)
        self.drawn = rounds.all_drawn()
        self.rows = np.concatenate(self.drawn)
        self.begins = np.cumsum([0, *map(len, self.drawn)])
        self.tokens: list[np.ndarray] = []  # of hidden translations
        self.hidden: dict[tuple[int, int], list[range]] = {}  # their numbers, side by side
        for turn in rounds.turns[: rounds.count]:
            for side in translations(truth, *(self.languages[one] for one in turn)):
                self.hidden.setdefault(turn, []).append(range(len(self), len(self) + len(side)))
                self.tokens += side

    def __len__(self) -> int:
        return len(self.rows) + len(self.tokens)

    def encode(self, piece: Piece, out: Path, advance: Advance) -> None:
        start, end = piece.first, piece.first + piece.lines
        rows = self.rows[start:end]
        languages = np.searchsorted(self.begins, np.arange(len(rows)) + start, side="right") - 1
        first, last = (max(0, number - len(self.rows)) for number in (start, end))
        tokens = self._texts(languages, rows) + self.tokens[first:last]
        vectors = embed_tokens(self.encoder.encoder, tokens)
        check_sizes(self.documents.shards)
        place = f"{self.encoder.folder}, sentences {start:,} and on"
        with open(out, "wb") as writer:
            np.save(writer, normalised(vectors, place))
        advance(piece.lines)

    def write(self, piece: Piece, out: Path, advance: Advance) -> None:
        """Compare the rounds of a piece and write their pairs, PAIR[P]."""
        rows = []
        for number in range(piece.first, piece.first + piece.lines):
            rows.append(self.compared(number))
            advance(1)
        with open(out, "wb") as writer:
            np.save(writer, np.concatenate(rows))

    def compared(self, number: int) -> np.ndarray:
        """Compare the sentences of a round; return the pairs to keep, PAIR[P]."""
        first, second = self.rounds.drawn(number)
        pairs = best_pairs(*self._vectors_of_round(number), *self.limits)
        rows = np.empty(len(pairs.score), PAIR)
        rows["languages"], rows["round"] = self.rounds.languages(number), number
        rows["rows"] = np.stack([first[pairs.first], second[pairs.second]], 1)
        rows["score"], rows["similarity"] = pairs.score, pairs.similarity
        return rows

    def summary(self, rows: np.ndarray) -> dict[str, Json]:
        """Summarise mined pairs by language pair; `equal` counts pairs of identical sentences."""
        result = {}
        for number, turn in enumerate(self.rounds.turns[: self.rounds.count]):
            own = rows[(rows["languages"] == turn).all(axis=1)]
            first, second = map(self._texts, own["languages"].T, own["rows"].T)
            about = {
                "pairs": len(own),
                "distinct": len(np.unique(own["rows"], axis=0)),
                "equal": sum(map(np.array_equal, first, second)),
                "cosine": float(own["similarity"].mean()),
                "csls": float(own["score"].mean()),
            }
            if self.hidden[turn][0]:
                hidden = [self._taken(numbers) for numbers in self.hidden[turn]]
                about["known"] = share_right(hidden, self._vectors_of_round(number), *self.limits)
            pair = "-".join(self.languages[one] for one in turn)
            log.info("mined %s: %s", pair, about)
            result[pair] = about
        return result

    def _texts(self, languages: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
        places = self.documents.places(languages, rows)
        return [shard.piece(0, row, self.documents.max_tokens) for shard, row in places]

    def _vectors_of_round(self, number: int) -> list[np.ndarray]:
        drawn = zip(self.rounds.languages(number), self.rounds.drawn(number), strict=True)
        numbers = [self.begins[at] + np.searchsorted(self.drawn[at], rows) for at, rows in drawn]
        return list(map(self._taken, numbers))

    def _taken(self, numbers: np.ndarray | range) -> np.ndarray:
        """Read the vectors of sentences, float32[len(numbers), d]."""
        numbers = np.asarray(numbers)
        taken = np.empty((len(numbers), self.vectors[0].shape[1]), np.float32)
        files = numbers // SENTENCES
        for file in np.unique(files):
            inside = files == file
            taken[inside] = self.vectors[file][numbers[inside] - file * SENTENCES]
        return taken


def translations(store: PairStore | None, first: str, second: str) -> tuple[Tokens, Tokens]:
    """Return the tokens of up to HIDDEN sentences and of their translations; if the store lacks the
    language pair, of sentences with the same translation into a third language, preferably English.
    """
    pairs = store.groups if store else {}
    codes, sides = dict.fromkeys(["en", *chain.from_iterable(pairs)]), (first, second)
    pivots = (code for code in codes if all(tuple(sorted((own, code))) in pairs for own in sides))
    if tuple(sorted((first, second))) in pairs:
        known = list(_sides(store, first, second))
    elif pivot := next(pivots, ""):
        shared = {text.tobytes(): own for text, own in _sides(store, pivot, second)}
        both = ((own, shared.get(text.tobytes())) for text, own in _sides(store, pivot, first))
        known = [(own, other) for own, other in both if other is not None]
    else:
        known = []
    return [own for own, _ in known[:HIDDEN]], [other for _, other in known[:HIDDEN]]


def _sides(store: PairStore, first: str, second: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    group = list(store.groups).index(tuple(sorted((first, second))))
    within = np.arange(store.sizes[group])
    for shard, row in store.places(np.full(len(within), group), within):
        sides = (shard.languages.index(code) for code in (first, second))
        yield tuple(shard.piece(side, row, store.max_tokens) for side in sides)


def share_right(
    hidden: Sequence[np.ndarray], others: Sequence[np.ndarray], keep: int, k: int, device: str
) -> Json:
    """Mine among `hidden`[T, d], translations row by row, and `others`[m, d] in two languages.
    `share`: translations among pairs with a hidden sentence, in percent; `chance`: in random pairs.
    """
    pools = [np.concatenate([own, more]) for own, more in zip(hidden, others, strict=True)]
    pairs = best_pairs(*pools, keep, k, device)
    count = len(hidden[0])
    has_hidden = (pairs.first < count) | (pairs.second < count)
    known = int(has_hidden.sum())
    right = int((has_hidden & (pairs.first == pairs.second)).sum())
    candidates = len(pools[0]) * len(pools[1]) - len(others[0]) * len(others[1])
    sizes = {"hidden": count, "among": list(map(len, pools)), "known": known, "right": right}
    share = 100 * right / known if known else None
    return {**sizes, "share": share, "chance": 100 * count / candidates}
