"""One training step of each trainer that train_throughput.py compares, on the same pairs.

sentence-transformers gets every advantage that its own trainer allows: a WordLevel tokeniser (Rust)
over token ids written as words, so that tokenising costs next to nothing; no clipping, logging or
checkpoints; fused AdamW; a BERT without a pooler, or its StaticEmbedding if the model has no
layers. The plain loop uses PyTorch alone: nn.TransformerEncoder, both sides padded by a
DataLoader's collate, one forward pass per side, the same contrastive head and loss. Ours is the
library's step: `Trainer` on batches that `PairStore.assemble` makes from the shards, in advance if
a core is free for that.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ems.config.model import EncoderSettings
from ems.config.systems import SystemSettings
from ems.model.objectives.system import System
from ems.shards.reader import PairStore
from ems.text.subwords import load_vocabulary
from ems.train.distributed import World
from ems.train.job import letters_of
from ems.train.memory import keep_freed
from ems.train.step import Trainer

RATE = 1e-4
WORKERS = 4  # processes that collate batches for a GPU
PEER_ENCODER = ("sentence_transformers.sentence_transformer.modules",)
PEER_TRAINER = (
    "datasets",
    "accelerate",
    *PEER_ENCODER,
    "sentence_transformers.sentence_transformer.losses",
)


@dataclass
class Job:
    """The work of a trainer: `warm` steps before the clock starts, then `steps` on it."""

    settings: SystemSettings
    store: PairStore
    pieces: int
    batch: int
    warm: int
    steps: int
    device: torch.device
    precision: str
    compiled: bool
    folder: Path  # for files that a trainer must write

    @property
    def vocabulary(self) -> Path:
        return self.folder.parent / f"{self.pieces}" / "bpe.model"

    @property
    def chosen(self) -> np.ndarray:
        """Return the pairs of every step, int64[steps, batch], numbered over all language pairs."""
        order = np.random.default_rng(1).permutation(int(self.store.sizes.sum()))
        count = (self.warm + self.steps) * self.batch
        return np.resize(order, count).reshape(-1, self.batch)

    def located(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (language pair, pair within it) of numbered pairs."""
        ends = np.cumsum(self.store.sizes)
        groups = np.searchsorted(ends, pairs, side="right")
        return groups, pairs - (ends - self.store.sizes)[groups]

    def sentences(self) -> list[tuple[list[int], list[int]]]:
        """Return the token ids of both sides of every pair, step after step."""
        drawn: list[tuple[list[int], list[int]]] = []
        for pairs in self.chosen:
            batch = self.store.assemble(*self.located(pairs))
            parts = np.split(batch.tokens, np.cumsum(batch.lengths)[:-1])
            by_row = dict(zip(batch.rows.tolist(), parts, strict=True))
            count = batch.pairs
            drawn += [(by_row[at].tolist(), by_row[count + at].tolist()) for at in range(count)]
        return drawn


class Clock:
    """Seconds from the end of the warm-up to the last step; waits for a GPU at both ends."""

    def __init__(self, job: Job) -> None:
        self.job, self.done, self.started, self.seconds = job, 0, 0.0, 0.0

    def step(self) -> None:
        self.done += 1
        if self.done in (self.job.warm, self.job.warm + self.job.steps):
            if self.job.device.type == "cuda":
                torch.cuda.synchronize()
            self.seconds = time.perf_counter() - self.started
            self.started = time.perf_counter()


def scaler_of(job: Job) -> torch.amp.GradScaler:
    """Return a scaler, which only float16 enables."""
    return torch.amp.GradScaler(job.device.type, enabled=job.precision == "float16")


CONTRASTIVE = {"objectives": {"xtr": {"weight": 0}}}
RECIPE = {"width": 0, "temperature": 0.05, "margin": 0.4, "mask_duplicates": True}
PLUS = {"objectives": {"xtr": {"weight": 0}, "contrastive": RECIPE}}
OURS: dict[str, dict[str, Any]] = {  # settings, in addition to those of the size
    "contrastive": CONTRASTIVE,
    "ems": {"objectives": {"xtr": {"weight": 1}}},
    "ems-quarter": {"objectives": {"xtr": {"weight": 1, "share": 0.25}}},
    "plus": PLUS,
    "plus-pieces": PLUS | {"model": {"ngrams": 0}},
}


def ours(job: Job, name: str) -> float:
    """Return the seconds of the library's steps, with the objectives of an entry of OURS."""
    clock = Clock(job)
    for _ in our_steps(job, name):
        clock.step()
    return clock.seconds


def our_steps(job: Job, name: str) -> Iterator[None]:
    """Train on each batch of the job, and yield after each step.

    Raises `ValueError` at the end if the loss is not finite.
    """
    keep_freed()  # as a training does
    torch.manual_seed(1)
    train = {"batch_pairs": job.batch, "precision": job.precision, "learning_rate": RATE}
    train |= {"steps": job.warm + job.steps, "warmup_steps": 0, "threads": torch.get_num_threads()}
    settings = job.settings.overridden(OURS[name] | {"train": train})
    system = System(settings, len(job.store.languages), job.pieces, job.precision)
    if settings.model.ngrams:
        system.encoder.table.ngrams.letters.copy_(letters_of(load_vocabulary(job.vocabulary)))
    system = system.to(job.device).train()
    if job.compiled:
        system.encoder.compile_layers("inductor" if job.device.type == "cuda" else "aot_eager")
    place = (job.folder, job.device, World(device=job.device.type))
    trainer = Trainer(system, settings.train, 1, job.store, *place)
    trainer.waits = False  # a CPU behaves like a GPU
    chosen = job.chosen
    trainer.store = SimpleNamespace(
        draw=lambda seed, step, *_: job.store.assemble(*job.located(chosen[step]))
    )
    for batch in trainer.batches(0):
        losses = trainer.step(batch)
        yield
    if not torch.isfinite(losses["total"]):
        raise ValueError(f"the loss of ours became {float(losses['total'])}")


# --- a plain padded loop


class Plain(nn.Module):
    """An encoder of the same sizes from PyTorch's own layers, padded and mean-pooled."""

    def __init__(self, model: EncoderSettings, out: int, pieces: int) -> None:
        super().__init__()
        width = model.width
        layer = nn.TransformerEncoderLayer(
            width,
            model.heads,
            model.feed_forward,
            model.dropout,
            nn.functional.silu,
            batch_first=True,
        )
        self.tokens = nn.Embedding(pieces, width)
        self.positions = nn.Embedding(model.max_tokens, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(model.dropout)
        self.layers = nn.TransformerEncoder(layer, model.layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, tokens: Tensor, real: Tensor) -> Tensor:
        """Embed padded tokens[B, L], of which real[B, L] are no padding: [B, k]."""
        states = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]  # (B, L, d)
        states = self.layers(self.dropout(self.norm(states)), src_key_padding_mask=~real)
        sums = (states * real[:, :, None]).sum(1)  # (B, d)
        return self.head(sums / real.sum(1, keepdim=True))


def padded(sentences: tuple[list[int], ...]) -> tuple[Tensor, Tensor]:
    rows = [torch.tensor(sentence) for sentence in sentences]
    tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (B, L)
    lengths = torch.tensor(list(map(len, rows)))
    return tokens, torch.arange(tokens.shape[1]) < lengths[:, None]


def plain(job: Job) -> float:
    """Return the seconds of the plain loop, with the contrastive loss only."""
    torch.manual_seed(1)
    contrastive = job.settings.objectives.contrastive
    model = Plain(job.settings.model, contrastive.width, job.pieces).to(job.device)
    if job.compiled:
        model.compile(dynamic=True)

    def collate(pairs: list[tuple[list[int], ...]]) -> list[tuple[Tensor, ...]]:
        return [padded(side) for side in zip(*pairs, strict=True)]

    def loss_of(sides: list[tuple[Tensor, ...]]) -> Tensor:
        with autocast(job):
            first, second = (model(*side) for side in sides)
        first, second = (nn.functional.normalize(side.float()) for side in (first, second))
        scores = first @ second.T / contrastive.temperature  # (B, B)
        true = torch.arange(len(scores), device=scores.device)
        return sum(nn.functional.cross_entropy(part, true) for part in (scores, scores.T))

    return loop(job, model, job.sentences(), collate, loss_of)


def loop(
    job: Job,
    model: nn.Module,
    pairs: list[Any],
    collate: Callable[[list[Any]], Any],
    loss_of: Callable[[Any], Tensor],
) -> float:
    """Return the seconds of a plain loop; on a GPU, processes collate batches in advance."""
    on_gpu = job.device.type == "cuda"
    workers = {"num_workers": WORKERS, "pin_memory": True} if on_gpu else {}
    loader = torch.utils.data.DataLoader(pairs, job.batch, collate_fn=collate, **workers)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
    scaler, clock = scaler_of(job), Clock(job)
    for batch in loader:
        loss = loss_of(moved(batch, job.device))
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        clock.step()
    return clock.seconds


def autocast(job: Job) -> torch.autocast:
    """Compute the matrix products of this block in the precision of the job."""
    half = torch.bfloat16 if job.precision == "bfloat16" else torch.float16
    return torch.autocast(job.device.type, half, job.precision != "float32")


def moved(batch: Any, device: torch.device) -> Any:
    """Copy the tensors of lists and dictionaries to a device."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {key: moved(value, device) for key, value in batch.items()}
    return [moved(part, device) for part in batch] if isinstance(batch, list | tuple) else batch


# --- sentence-transformers


BOTH = {  # our loss, without a margin; its default is a softmax over the second sides only
    "directions": ("query_to_doc", "doc_to_query"),
    "partition_mode": "per_direction",
}


def peer(job: Job, **options: Any) -> float:
    """Return the seconds of SentenceTransformerTrainer with MultipleNegativesRankingLoss."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    class Ticks(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.step()

    model = SentenceTransformer(modules=peer_modules(job), device=str(job.device))
    first, second = map(list, zip(*words_of(job), strict=True))
    arguments = Arguments(
        output_dir=str(job.folder / "peer"),
        max_steps=job.warm + job.steps,
        per_device_train_batch_size=job.batch,
        learning_rate=RATE,
        max_grad_norm=0.0,
        bf16=job.precision == "bfloat16",
        fp16=job.precision == "float16",
        use_cpu=job.device.type == "cpu",
        torch_compile=job.compiled,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    clock = Clock(job)
    SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict({"anchor": first, "positive": second}),
        loss=MultipleNegativesRankingLoss(model, **options),
        callbacks=[Ticks()],
    ).train()
    return clock.seconds


def peer_loop(job: Job) -> float:
    """Return the seconds of its encoder and loss in a plain loop, without its trainer.

    The trainer needs `datasets` (and so pyarrow, 47 MB) and does more than the step.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(modules=peer_modules(job), device=str(job.device)).train()
    loss = MultipleNegativesRankingLoss(model)

    def collate(pairs: list[tuple[str, str]]) -> list[dict[str, Tensor]]:
        return [dict(model.preprocess(list(side))) for side in zip(*pairs, strict=True)]

    def loss_of(sides: list[dict[str, Tensor]]) -> Tensor:
        with autocast(job):
            return loss(sides, None)

    return loop(job, model, words_of(job), collate, loss_of)


def words_of(job: Job) -> list[tuple[str, ...]]:
    """Return the token ids of both sides of every pair as words."""
    return [tuple(" ".join(map(str, side)) for side in pair) for pair in job.sentences()]


def peer_modules(job: Job) -> list[nn.Module]:
    """Build a BERT of the same shape with random weights, a tokeniser of ids, and mean pooling; or
    a StaticEmbedding.
    """
    from sentence_transformers.sentence_transformer.modules import (
        Pooling,
        StaticEmbedding,
        Transformer,
    )
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    model, folder = job.settings.model, str(job.folder / "bert")
    tokenizer = Tokenizer(models.WordLevel({str(i): i for i in range(job.pieces)}, unk_token="1"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if not model.layers:
        return [StaticEmbedding(tokenizer, embedding_dim=model.table)]
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="0",
        unk_token="1",
        model_max_length=model.max_tokens,
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=job.pieces,
        hidden_size=model.width,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        intermediate_size=model.feed_forward,
        hidden_dropout_prob=model.dropout,
        attention_probs_dropout_prob=model.attention_dropout,
        max_position_embeddings=model.max_tokens,
        hidden_act="silu",
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    body = Transformer(folder, model_kwargs={"add_pooling_layer": False})
    return [body, Pooling(model.width)]


TRAINERS: dict[str, Callable[[Job], float]] = {
    **{name: partial(ours, name=name) for name in OURS},
    "plain": plain,
    "st": peer,
    "st-both": partial(peer, **BOTH),
    "st-loop": peer_loop,
    "contrastive-compiled": lambda job: ours(replace(job, compiled=True), "contrastive"),
    "ems-compiled": lambda job: ours(replace(job, compiled=True), "ems"),
}
