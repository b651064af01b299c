"""The settings of the objectives, and which of them go together."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from ems.base.errors import EmsError
from ems.base.schema import Settings, Steps, by_type, listing, number, whole, with_fields
from ems.config.model import WIDEST, EncoderSettings, HeadSettings, WidthOrNone

if TYPE_CHECKING:
    from ems.config.train import TrainSettings

OBJECTIVES = "ems.model.objectives"  # the package, with a file for each objective
Weight = number(ge=0, le=1_000_000)  # squares of the gradients stay far inside float32
Pairs = whole(ge=2, le=1_048_576)  # SigLIP's largest contrastive batch
Neighbourhood = whole(ge=1, le=100)  # sentences before and after one
PairCount = whole(ge=1, le=1_000_000_000)  # as the lines of a corpus


class Weighted(Settings):
    """The settings that each objective has."""

    DOCUMENTS: ClassVar = False  # True for one that learns from documents instead of pairs
    weight: Weight = 0
    """The weight of the loss in the sum; 0 is off."""


class XtrSettings(Weighted):
    """Predicts the tokens of the translation (EMS v2 Eq. 6-7)."""

    LATER: ClassVar = frozenset({"share"})
    weight: Weight = 1
    target: Literal["counts", "distinct"] = "counts"
    """The labels. counts: N_w / |S|; distinct: 1 / |S| for each distinct token, as the authors'
    code does."""
    sampled: whole(ge=0, le=65535) = 0  # at most as vocabulary.size
    """The number of pieces in the softmax of a training step, besides the labels of the batch; 0:
    all. Cheaper, and biased low; validation always has all pieces."""
    share: number(ge=0.01, le=1) = 1
    """The share of the sentences that predict in a training step, one in 1 / share: other ones in
    the next. Their loss stands for that of all, at a share of the cost."""


class UgtSettings(Weighted):
    """XTR and SMLM in one label (Lightweight Eq. 3-4)."""

    target: Literal["counts", "distinct"] = "counts"
    """counts: the paper's labels; distinct: those of the authors' code."""


class SmlmSettings(Weighted):
    """Both sides of a pair predict one masked token (Lightweight Eq. 1)."""


class MlmSettings(Weighted):
    """Predicts 15 % of the tokens from their own states (BERT)."""


class ContrastiveSettings(Weighted):
    """Tells the translation from the other sentences of the batch (EMS v2 Eq. 8-11)."""

    LATER: ClassVar = frozenset({"similarity"})
    weight: Weight = 1
    width: WidthOrNone = 128
    """The output width of the MLP; 0: no MLP."""
    similarity: Literal["cosine", "dot"] = "cosine"
    """How two sentences are compared. cosine: as the paper; dot: by the inner product, an option of
    the authors' code."""
    temperature: number(ge=0.001, le=100) = 0.1  # CLIP stops at 0.01; at 100 all are alike
    """Similarities are divided by it."""
    margin: number(ge=0, le=2) = 0  # cosines differ by at most 2
    """Taken off the similarity of the true pair (LaBSE)."""
    margin_warmup_steps: Steps = 0
    """The margin rises linearly from 0 over so many steps."""
    negatives: by_type(Literal["batch"], Pairs) = "batch"
    """The negatives of a pair: all other pairs of the batch, or those of a group of so many pairs
    (152 per GPU in the paper)."""
    both_sides: bool = False
    """Other sentences of an anchor's own side are negatives too."""
    mask_duplicates: bool = False
    """Pairs that share a sentence are no negatives of one another."""


class AlignSettings(Weighted):
    """Tells the translation from the batch by inner product (Lightweight Eq. 5)."""


class SimilaritySettings(Weighted):
    """Makes the similarities within both sides the same (Lightweight Eq. 6)."""

    LATER: ClassVar = frozenset({"reduction"})
    reduction: Literal["mean", "sum"] = "mean"
    """mean: the sum over all pairs of pairs is divided by the pairs of the batch, as in the other
    losses; sum: it is not, as in the authors' code."""


class MatryoshkaSettings(Weighted):
    """The contrastive loss of prefixes of the sentence embedding."""

    dimensions: listing(whole(ge=1, le=WIDEST)) = Field([])
    """The lengths of the prefixes, at most that of the embedding."""


class ContextSettings(Weighted):
    """Tells a sentence in its context from another one there (CCL 2019, section 3.1)."""

    DOCUMENTS = True
    k: Neighbourhood = 1
    """Sentences of the context on each side of the sentence."""
    loss: Literal["cross-entropy", "printed"] = "cross-entropy"
    """cross-entropy: -log p of the truth; printed: 1 - p, as L_ml in the paper, which has no
    log."""


class MiningSettings(Settings):
    """How pairs of similar sentences of two languages are mined (CCL 2019, section 3.2)."""

    sample: whole(ge=1, le=1_000_000) = 10_000  # the most takes a day of a GPU for each round
    """m, the sentences of each language that a round draws and compares, or all."""
    keep: PairCount = 1_000
    """The best pairs of a round that are kept, at most."""
    pairs: PairCount = 100_000
    """Rounds are repeated until there are so many pairs."""
    neighbours: whole(ge=0, le=1_000) = 10
    """The neighbours in CSLS, 10 as its authors have them; 0: the cosine alone."""


class CoherenceSettings(Weighted):
    """Predicts how similar two sentences are from one in the context of the other (CCL 2019,
    section 3.2). `train.start_from` is the system that finds the sentences.
    """

    DOCUMENTS = True
    k: Neighbourhood = 1
    """Sentences of the context on each side of the sentence."""
    target: Literal["cosine", "csls"] = "cosine"
    """The similarity that is predicted, of the system in `train.start_from`."""
    mining: MiningSettings = Field(default_factory=MiningSettings)


class Objectives(Settings):
    """The training objectives and the head that some of them share."""

    LATER: ClassVar = frozenset({"context", "coherence"})
    head: HeadSettings = Field(default_factory=HeadSettings)
    """The generative head of xtr, ugt, smlm and mlm (EMS v2 Eq. 2-5)."""
    xtr: XtrSettings = Field(default_factory=XtrSettings)
    ugt: UgtSettings = Field(default_factory=UgtSettings)
    smlm: SmlmSettings = Field(default_factory=SmlmSettings)
    mlm: MlmSettings = Field(default_factory=MlmSettings)
    contrastive: ContrastiveSettings = Field(default_factory=ContrastiveSettings)
    align: AlignSettings = Field(default_factory=AlignSettings)
    similarity: SimilaritySettings = Field(default_factory=SimilaritySettings)
    matryoshka: MatryoshkaSettings = Field(default_factory=MatryoshkaSettings)
    context: ContextSettings = Field(default_factory=ContextSettings)
    coherence: CoherenceSettings = Field(default_factory=CoherenceSettings)

    @property
    def active(self) -> list[str]:
        """The names of the objectives that have a weight."""
        return [name for name, part in self if getattr(part, "weight", 0)]

    @property
    def documents(self) -> bool:
        """True if the active objectives learn from documents instead of pairs."""
        return any(getattr(self, name).DOCUMENTS for name in self.active)


@cache
def objectives_model() -> type[Objectives]:
    """Return the settings of all objectives, with the `Settings` of those in project folders."""
    package = import_module(OBJECTIVES)  # at run time: the objectives import these settings
    own = {
        module.name: import_module(f"{OBJECTIVES}.{module.name}").Settings
        for module in iter_modules(package.__path__[1:])
    }
    return with_fields(Objectives, "Objectives", **own) if own else Objectives


def check_objectives(
    key: str, objectives: Objectives, model: EncoderSettings, train: "TrainSettings"
) -> None:
    """Raise `EmsError` when the objectives of the system at `key` contradict one another."""
    active = objectives.active
    if not active:
        raise EmsError(f"{key}: every objective has weight 0; nothing would be learnt")
    of_pairs = [name for name in active if not getattr(objectives, name).DOCUMENTS]
    if objectives.documents and of_pairs:
        of_documents = ", ".join(name for name in active if name not in of_pairs)
        raise EmsError(
            f"{key}: objectives.{of_documents} learns from documents of single languages, but "
            f"{' and '.join(of_pairs)} from pairs; set the weight of one kind to 0"
        )
    if objectives.coherence.weight and objectives.context.weight:
        raise EmsError(
            f"{key}: objectives.context learns from random sentences in a context, "
            "objectives.coherence from similar ones; set the weight of one of them to 0"
        )
    if objectives.coherence.weight and not train.start_from:
        raise EmsError(
            f"{key}: train.start_from: this key is missing; objectives.coherence learns from the "
            "sentences that another system finds similar, so name that one"
        )
    if "mlm" in active and model.pooling == "mean-max":
        raise EmsError(
            f"{key}: mlm predicts from the states of tokens, which are half as wide as embeddings "
            "by model.pooling: mean-max; say mean, or leave mlm out"
        )
    if objectives.head.output == "shared" and not model.attends:
        raise EmsError(
            f"{key}: objectives.head.output: shared takes the embeddings of the layers' input, and "
            "a table alone has none; say own"
        )
    if "mlm" in active and model.table:
        raise EmsError(
            f"{key}: mlm predicts from the states of tokens, which model.table leaves out of the "
            "embedding; leave one of them out"
        )
    others = [name for name in ("ugt", "smlm") if name in active]
    if train.input_mask == "one":
        others.append("train.input_mask: one")
    if "mlm" in active and others:
        raise EmsError(
            f"{key}: mlm masks 15 % of the tokens, {' and '.join(others)} one of each pair, and "
            "all objectives see the same input; choose one of them"
        )
    group, pairs = objectives.contrastive.negatives, train.batch_pairs
    if group != "batch" and pairs % group:
        raise EmsError(
            f"{key}: objectives.contrastive.negatives: {group} pairs a group do not divide "
            f"train.batch_pairs, {pairs}; say `batch` or a divisor of it"
        )
    if "mlm" in active and train.grad_cache:
        raise EmsError(
            f"{key}: train.grad_cache keeps only the embeddings of sentences, and mlm needs the "
            "states of their tokens; leave one of them out"
        )
    dimensions = objectives.matryoshka.dimensions
    if "matryoshka" in active and not dimensions:
        raise EmsError(
            f"{key}: objectives.matryoshka.dimensions: this list is empty; name some, like [32, 64]"
        )
    for size in dimensions if "matryoshka" in active else ():
        if size > model.pooled_width:
            raise EmsError(
                f"{key}: objectives.matryoshka.dimensions: {size} is more than the embedding has, "
                f"{model.pooled_width}"
            )
