"""Mine the pairs that an iteration of coherence regression learns from.

Each sentence that a round draws is encoded once, to a file of its state folder; so is each finished
block of rounds. What a killed run has done is used again, and gives the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from ems.base.errors import EmsError
from ems.base.files import VOCABULARY, state_of
from ems.base.progress import log
from ems.base.provenance import source_hash
from ems.base.schema import Json, plain
from ems.bench.csls import best_pairs
from ems.bench.retrieval import normalised
from ems.config.experiment import Experiment
from ems.model.encode import SentenceEncoder
from ems.model.encoder import embed_tokens
from ems.shards.documents import PAIR, DocumentStore, languages_of, write_mined
from ems.shards.reader import PairStore
from ems.shards.shard import allow_open_files, check_sizes
from ems.text.pieces import Advance, Piece, done_pieces
from ems.train.mine_documents.known import share_right, translations
from ems.train.mine_documents.rounds import Rounds

SENTENCES = 5_000  # encoded to one file
PAIRS = 10_000  # of the rounds in one file, about
MOST = 1_000  # rounds in one file


@dataclass(frozen=True)
class Sources:
    """What is mined, and with what: documents, known translations (or None), a model folder."""

    documents: DocumentStore
    truth: PairStore | None
    model: Path


class Sentences:
    """All sentences to encode, each with a number: those that rounds draw, then known ones."""

    def __init__(self, sources: Sources, rounds: Rounds) -> None:
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
        """Return the numbers of drawn rows of a language."""
        return self.begins[language] + np.searchsorted(self.drawn[language], rows)

    def between(self, start: int, end: int) -> list[np.ndarray]:
        """Return the tokens of the sentences with these numbers."""
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
    experiment: Experiment, name: str, sources: Sources, state: Path | None, out: Path
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


def _check(sources: Sources, encoder: SentenceEncoder) -> None:
    """Raise `EmsError` as `mine` does."""
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
    """The rounds over encoded sentences."""

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
        """Return the embeddings of both languages in round `at`."""
        drawn = zip(self.rounds.languages(at), self.rounds.drawn(at), strict=True)
        return [self.vectors[self.sentences.numbers(*each)] for each in drawn]

    def summary(self, rows: np.ndarray) -> dict[str, Json]:
        """Return what was mined of each pair of languages: how many pairs, how many of them
        distinct and how many of the same pieces, the mean cosine and score, and the share that is
        right where translations are known (`known`).
        """
        codes, result = languages_of(self.sentences.store), {}
        for at, turn in enumerate(self.rounds.turns[: self.rounds.count]):
            own = rows[(rows["languages"] == turn).all(axis=1)]
            about = {
                "pairs": len(own),
                "distinct": len(np.unique(own["rows"], axis=0)),
                "equal": self._equal(turn, own),
                "cosine": float(own["similarity"].mean()),
                "csls": float(own["score"].mean()),
            }
            about |= {"known": self._known(at, turn)} if turn in self.sentences.known else {}
            pair = "-".join(codes[one] for one in turn)
            log.info("mined %s: %s", pair, about)
            result[pair] = about
        return result

    def _known(self, at: int, turn: tuple[int, int]) -> Json:
        mining = self.rounds.settings
        hidden = tuple(self.vectors[numbers] for numbers in self.sentences.known[turn])
        others = tuple(self._taken(at))
        return share_right(hidden, others, mining.keep, mining.neighbours, self.device)

    def _equal(self, turn: tuple[int, int], rows: np.ndarray) -> int:
        """Count the pairs of sentences that are the same pieces."""
        store = self.sentences.store
        places = [
            store.places(np.full(len(rows), turn[side]), rows["rows"][:, side]) for side in (0, 1)
        ]
        texts = [[shard.piece(0, row, store.max_tokens) for shard, row in own] for own in places]
        return sum(map(np.array_equal, *texts))
