"""Mine pairs of similar sentences in documents of two languages (Wang et al., CCL 2019, 3.2).

The paper samples m x m sentences and keeps the best min(m x m, 1000) pairs, until there are enough.
Where it is silent: all pairs of two languages take turns, and m sentences are drawn without
replacement, as a function of (seed, round). Each sentence is encoded once, to a file of the state
folder; so is each block of rounds. A killed run goes on from these, with the same bytes.

Pairs of the validation corpus, which nothing is trained on, are hidden among the sentences of the
first round of their languages. How many of them the same search finds is reported.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

from ems.base.errors import EmsError
from ems.base.files import VOCABULARY, state_of
from ems.base.progress import log
from ems.base.provenance import source_hash
from ems.base.schema import Json, plain
from ems.bench.margin import best_pairs
from ems.bench.retrieval import normalised
from ems.config.experiment import Experiment
from ems.config.objectives import MiningSettings
from ems.model.encode import SentenceEncoder
from ems.model.encoder import embed_tokens
from ems.shards.documents import PAIR, DocumentStore, languages_of, write_mined
from ems.shards.reader import PairStore
from ems.shards.shard import allow_open_files, check_sizes
from ems.text.pieces import Advance, Piece, done_pieces

STREAM = [0, 0, 0, 3]  # of random numbers, far from those of batches
SENTENCES = 5_000  # encoded to one file
PAIRS = 10_000  # of the rounds in one file, about
MOST = 1_000  # rounds in one file
HIDDEN = 1000  # translations of two languages, at most: as many as Tatoeba has of most
Tokens = list[np.ndarray]


@dataclass(frozen=True)
class MiningInputs:
    """What is mined, and with what: documents, known translations (or None), a model folder."""

    documents: DocumentStore
    truth: PairStore | None
    model: Path


@dataclass(frozen=True)
class Rounds:
    """The rounds over languages with `sizes` sentences, that `share` of all at even distances."""

    settings: MiningSettings
    sizes: tuple[int, ...]
    seed: int
    share: float = 1.0

    @cached_property
    def turns(self) -> list[tuple[int, int]]:
        """The pairs of languages, in the order in which they take turns."""
        return list(combinations(range(len(self.sizes)), 2))

    def languages(self, at: int) -> tuple[int, int]:
        return self.turns[at % len(self.turns)]

    def kept(self, at: int) -> int:
        first, second = (min(self.settings.sample, self.sizes[one]) for one in self.languages(at))
        return min(first * second, self.settings.keep)

    @cached_property
    def count(self) -> int:
        of_turns = np.cumsum([self.kept(at) for at in range(len(self.turns))])
        whole, left = divmod(self.settings.pairs, int(of_turns[-1]))
        return whole * len(self.turns) + (int(np.searchsorted(of_turns, left)) + 1 if left else 0)

    def drawn(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sentences of either language that round `at` compares, ascending."""
        random = np.random.Generator(np.random.Philox(key=[self.seed, at], counter=STREAM))
        drawn = []
        for size in (self.sizes[one] for one in self.languages(at)):
            m = min(size, self.settings.sample)
            within = np.sort(random.choice(size, m, replace=False, shuffle=False))
            drawn.append((within / self.share).astype(np.int64))
        return drawn[0], drawn[1]

    def all_drawn(self) -> list[np.ndarray]:
        """Return the sentences of each language that any round compares, ascending."""
        parts: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in self.sizes]
        for at in range(self.count):
            for language, rows in zip(self.languages(at), self.drawn(at), strict=True):
                parts[language].append(rows)
        return [np.unique(np.concatenate(rows)) for rows in parts]


class Sentences:
    """All sentences to encode, each with a number: those that rounds draw, then known ones."""

    def __init__(self, sources: MiningInputs, rounds: Rounds) -> None:
        self.store = sources.documents
        self.drawn = rounds.all_drawn()
        self.rows = np.concatenate(self.drawn)
        self.begins = np.cumsum([0, *map(len, self.drawn)])
        self.known: dict[tuple[int, int], tuple[range, range]] = {}  # numbers of translations
        self.tokens: list[np.ndarray] = []
        codes = languages_of(self.store)
        for turn in rounds.turns[: rounds.count]:
            first, second = translations(sources.truth, *(codes[one] for one in turn))
            if first:
                self.known[turn] = self._add(first), self._add(second)

    def _add(self, tokens: list[np.ndarray]) -> range:
        start = len(self)
        self.tokens += tokens
        return range(start, len(self))

    def __len__(self) -> int:
        return len(self.rows) + len(self.tokens)

    def numbers(self, language: int, rows: np.ndarray) -> np.ndarray:
        return self.begins[language] + np.searchsorted(self.drawn[language], rows)

    def between(self, start: int, end: int) -> list[np.ndarray]:
        rows = self.rows[start:end]
        languages = np.searchsorted(self.begins, np.arange(len(rows)) + start, side="right") - 1
        places = self.store.places(languages, rows)
        known = [max(0, at - len(self.rows)) for at in (start, end)]
        limit = self.store.max_tokens
        return [shard.piece(0, row, limit) for shard, row in places] + self.tokens[slice(*known)]


class Vectors:
    """The embeddings of all sentences, float32 of length 1, in files of SENTENCES each."""

    def __init__(self, files: Sequence[Path]) -> None:
        allow_open_files(len(files))
        self.parts = [np.load(file, mmap_mode="r") for file in files]

    def __getitem__(self, numbers: np.ndarray | range) -> np.ndarray:
        numbers = np.asarray(numbers)
        taken = np.empty((len(numbers), self.parts[0].shape[1]), np.float32)
        part = numbers // SENTENCES
        for at in np.unique(part):
            inside = part == at
            taken[inside] = self.parts[at][numbers[inside] - at * SENTENCES]
        return taken


def mine(
    experiment: Experiment, name: str, sources: MiningInputs, state: Path | None, out: Path
) -> Json:
    """Mine the pairs of system `name`, write their folder, and return its manifest.

    Raises `EmsError` for documents of fewer than two languages, and for a model with another
    vocabulary than theirs.
    """
    settings = experiment.systems[name]
    mining, training = settings.objectives.coherence.mining, settings.train
    torch.set_num_threads(training.threads)
    encoder = SentenceEncoder(sources.model, training.device)
    _check(sources, encoder)
    share, counts = training.corpus_share, sources.documents.sizes.tolist()
    sizes = tuple(max(1, int(count * share)) for count in counts)
    rounds = Rounds(mining, sizes, experiment.seed, share)
    state = state or state_of(out)
    key = [encoder.identity, sources.documents.contents, plain(mining), experiment.seed]
    key += [sources.truth.contents if sources.truth else "", training.threads, share]
    key += [sources.documents.max_tokens, source_hash("ems.train.mine_documents")]
    sentences = Sentences(sources, rounds)
    work = partial(_encode, encoder, sentences)
    pieces = _pieces(sources.model, len(sentences), SENTENCES)
    what = f"mine {name}: encode"
    with done_pieces(what, work, pieces, state / "encoded", key, 1, "sentences") as files:
        search = Search(rounds, sentences, Vectors(files), training.device)
        pieces = _pieces(sources.model, rounds.count, max(1, min(MOST, PAIRS // rounds.kept(0))))
        what = f"mine {name}: compare"
        with done_pieces(what, search.write, pieces, state / "compared", key, 1, "rounds") as files:
            rows = np.concatenate([np.load(file) for file in files])[: mining.pairs]
            about = {"rounds": rounds.count, "mining": plain(mining), "model": encoder.identity}
            about["by_pair"] = search.summary(rows)
            manifest = write_mined(out, sources.documents, rows, about)
    if state.is_dir() and not any(state.iterdir()):
        state.rmdir()
    return manifest


def _check(sources: MiningInputs, encoder: SentenceEncoder) -> None:
    documents = sources.documents
    if len(documents.groups) < 2:
        there = ", ".join(languages_of(documents))
        raise EmsError(f"expected documents of two languages or more to mine in, found {there}")
    advice = "give the model of the system that `train.start_from` names"
    documents.check_vocabulary(encoder.folder / VOCABULARY, advice)
    for store in (documents, sources.truth):
        if store is not None:
            store.check(encoder.vocabulary.get_piece_size())


def _pieces(source: Path, total: int, size: int) -> list[Piece]:
    """Return numbers 0 to `total` in pieces of `size`; `first` and `lines` say which."""
    starts = range(0, total, size)
    return [
        Piece(source, at, 0, 0, start, min(size, total - start)) for at, start in enumerate(starts)
    ]


def _encode(
    encoder: SentenceEncoder, sentences: Sentences, piece: Piece, out: Path, advance: Advance
) -> None:
    tokens = sentences.between(piece.first, piece.first + piece.lines)
    vectors = embed_tokens(encoder.encoder, tokens)
    check_sizes(sentences.store.shards)
    with open(out, "wb") as writer:
        np.save(writer, normalised(vectors, f"{encoder.folder}, sentences {piece.first:,} and on"))
    advance(piece.lines)


@dataclass(frozen=True)
class Search:
    rounds: Rounds
    sentences: Sentences
    vectors: Vectors
    device: str

    def write(self, piece: Piece, out: Path, advance: Advance) -> None:
        """Write the pairs PAIR[P] of the rounds of a piece."""
        rows = []
        for at in range(piece.first, piece.first + piece.lines):
            rows.append(self.compared(at))
            advance(1)
        with open(out, "wb") as writer:
            np.save(writer, np.concatenate(rows))

    def compared(self, at: int) -> np.ndarray:
        """Return the pairs that round `at` keeps, PAIR[P]."""
        mining = self.rounds.settings
        drawn = self.rounds.drawn(at)
        pairs = best_pairs(*self._taken(at), mining.keep, mining.neighbours, self.device)
        rows = np.empty(len(pairs.score), PAIR)
        rows["languages"], rows["round"] = self.rounds.languages(at), at
        rows["rows"] = np.stack([drawn[0][pairs.first], drawn[1][pairs.second]], 1)
        rows["score"], rows["similarity"] = pairs.score, pairs.similarity
        return rows

    def _taken(self, at: int) -> list[np.ndarray]:
        drawn = zip(self.rounds.languages(at), self.rounds.drawn(at), strict=True)
        return [self.vectors[self.sentences.numbers(*each)] for each in drawn]

    def summary(self, rows: np.ndarray) -> dict[str, Json]:
        """Return what was mined by language pair; `equal` counts pairs of the same pieces."""
        codes, result, mining = languages_of(self.sentences.store), {}, self.rounds.settings
        for at, turn in enumerate(self.rounds.turns[: self.rounds.count]):
            own = rows[(rows["languages"] == turn).all(axis=1)]
            about = {
                "pairs": len(own),
                "distinct": len(np.unique(own["rows"], axis=0)),
                "equal": self._equal(turn, own),
                "cosine": float(own["similarity"].mean()),
                "csls": float(own["score"].mean()),
            }
            if known := self.sentences.known.get(turn):
                hidden = tuple(self.vectors[numbers] for numbers in known)
                about["known"] = share_right(
                    hidden, self._taken(at), mining.keep, mining.neighbours, self.device
                )
            pair = "-".join(codes[one] for one in turn)
            log.info("mined %s: %s", pair, about)
            result[pair] = about
        return result

    def _equal(self, turn: tuple[int, int], rows: np.ndarray) -> int:
        store = self.sentences.store
        places = [
            store.places(np.full(len(rows), turn[side]), rows["rows"][:, side]) for side in (0, 1)
        ]
        texts = [[shard.piece(0, row, store.max_tokens) for shard, row in own] for own in places]
        return sum(map(np.array_equal, *texts))


def translations(store: PairStore | None, first: str, second: str) -> tuple[Tokens, Tokens]:
    """Return the tokens of up to HIDDEN sentences in two languages, translations of one another.

    Of two languages that no pair has these are sentences with the same translation into a third
    one, English if it can be. There are none without a `store`.
    """
    pairs = {group: at for at, group in enumerate(store.groups)} if store else {}
    if tuple(sorted((first, second))) in pairs:
        known = list(_sides(store, first, second))[:HIDDEN]
    elif pivot := _pivot(pairs, first, second):
        shared = {text.tobytes(): own for text, own in _sides(store, pivot, second)}
        both = ((own, shared.get(text.tobytes())) for text, own in _sides(store, pivot, first))
        known = [(own, other) for own, other in both if other is not None][:HIDDEN]
    else:
        known = []
    return [own for own, _ in known], [other for _, other in known]


def _pivot(pairs: Collection[tuple[str, ...]], first: str, second: str) -> str:
    """Return a language that has pairs with both, English if it does; "" for none."""
    for code in dict.fromkeys(["en", *(code for pair in pairs for code in pair)]):
        if all(tuple(sorted((side, code))) in pairs for side in (first, second)):
            return code
    return ""


def _sides(store: PairStore, first: str, second: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    pair = tuple(sorted((first, second)))
    group = list(store.groups).index(pair)
    for at in range(int(store.sizes[group])):
        ((shard, row),) = store.places(np.array([group]), np.array([at]))
        one, other = (
            shard.piece(shard.languages.index(code), row, store.max_tokens)
            for code in (first, second)
        )
        yield one, other


def share_right(
    hidden: Sequence[np.ndarray],
    others: Sequence[np.ndarray],
    keep: int,
    k: int,
    device: str,
) -> Json:
    """Mine among `hidden`[T, d], translations row by row, and `others`[m, d] of the two languages.

    Of the pairs with a hidden sentence (`known`), `right` are translations: `share` percent, where
    pairs drawn at random have `chance` percent.
    """
    pools = [np.concatenate([own, more]) for own, more in zip(hidden, others, strict=True)]
    pairs = best_pairs(*pools, keep, k, device)
    count = len(hidden[0])
    has_hidden = (pairs.first < count) | (pairs.second < count)
    known = int(has_hidden.sum())
    right = int((has_hidden & (pairs.first == pairs.second)).sum())
    of_all = len(pools[0]) * len(pools[1]) - len(others[0]) * len(others[1])
    return {
        "hidden": count,
        "among": [len(pool) for pool in pools],
        "known": known,
        "right": right,
        "share": 100 * right / known if known else None,
        "chance": 100 * count / of_all,
    }
