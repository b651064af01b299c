"""The settings of the objectives, and the checks of which may be combined."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar, Literal

from pydantic import Field

from ems.base.errors import check
from ems.base.records import number, whole
from ems.base.schema import Settings, Steps, by_type, listing, with_fields
from ems.config.model import EncoderSettings, HeadSettings
from ems.config.sizes import WIDEST, WidthOrNone
from ems.config.train import Pairs, TrainSettings

OBJECTIVES = "ems.model.objectives"  # the package, with a file for each objective
Weight = number(ge=0, le=1_000_000)  # squares of the gradients stay far inside float32
Neighbourhood = whole(ge=1, le=100)  # sentences before and after one
PairCount = whole(ge=1, le=1_000_000_000)  # as the lines of a corpus


class Weighted(Settings):
    """The settings that every objective has."""

    DOCUMENTS: ClassVar = False  # True for one that learns from documents instead of pairs
    weight: Weight = 0
    """Weight of the loss in the sum; 0: off."""


class XtrSettings(Weighted):
    """Predicts the tokens of the translation (EMS v2 Eq. 6-7)."""

    LATER: ClassVar = frozenset({"share"})
    weight: Weight = 1
    target: Literal["counts", "distinct"] = "counts"
    """Label of a word w of the translation S. `counts`: N_w / |S|; `distinct`: 1 / |S| for each
    distinct token, as in the authors' code."""
    sampled: whole(ge=0, le=65535) = 0  # at most as vocabulary.size
    """Number of pieces in the softmax of a training step, in addition to the labels of the batch;
    0: all. Cheaper, but biased low; validation always uses all pieces."""
    share: number(ge=0.01, le=1) = 1
    """Share of the sentences that predict in a training step, one in 1 / share, with other
    sentences in the next step. Their loss stands for the loss of all, at a share of the cost."""


class UgtSettings(Weighted):
    """XTR and SMLM in one label (Lightweight Eq. 3-4)."""

    target: Literal["counts", "distinct"] = "counts"
    """`counts`: labels as in the paper; `distinct`: labels as in the authors' code."""


class SmlmSettings(Weighted):
    """Predicts one masked token from both sides of a sentence pair (Lightweight Eq. 1)."""


class MlmSettings(Weighted):
    """Predicts 15 % of the tokens from their own states (BERT)."""


class ContrastiveSettings(Weighted):
    """Distinguishes the translation from the other sentences of the batch (EMS v2 Eq. 8-11)."""

    LATER: ClassVar = frozenset({"similarity"})
    weight: Weight = 1
    width: WidthOrNone = 128
    """Output width of the MLP; 0: no MLP."""
    similarity: Literal["cosine", "dot"] = "cosine"
    """Similarity of two sentences: the cosine, as in the paper, or the inner product (`dot`), an
    option of the authors' code."""
    temperature: number(ge=0.001, le=100) = 0.1  # CLIP stops at 0.01; at 100 all are alike
    """Divisor of the similarities."""
    margin: number(ge=0, le=2) = 0  # cosines differ by at most 2
    """Margin subtracted from the similarity of the true pair (LaBSE)."""
    margin_warmup_steps: Steps = 0
    """Number of steps over which the margin rises linearly from 0."""
    negatives: by_type(Literal["batch"], Pairs) = "batch"
    """Negatives of a sentence pair: all other pairs of the batch, or the pairs of its group of this
    size (152 per GPU in the paper)."""
    both_sides: bool = False
    """Uses other sentences of an anchor's own side as negatives too."""
    mask_duplicates: bool = False
    """Excludes pairs that share a sentence from each other's negatives."""


class AlignSettings(Weighted):
    """Distinguishes the translation from the rest of the batch by inner product (Lightweight 5)."""


class SimilaritySettings(Weighted):
    """Makes the similarities within both sides equal (Lightweight Eq. 6)."""

    LATER: ClassVar = frozenset({"reduction"})
    reduction: Literal["mean", "sum"] = "mean"
    """`mean`: the sum over all pairs of pairs is divided by the number of pairs in the batch, as in
    the other losses; `sum`: it is not divided, as in the authors' code."""


class MatryoshkaSettings(Weighted):
    """Applies the contrastive loss to prefixes of the sentence embedding."""

    dimensions: listing(whole(ge=1, le=WIDEST)) = Field([])
    """Lengths of the prefixes, at most the width of the embedding."""


class ContextSettings(Weighted):
    """Distinguishes a sentence in its context from another in its place (CCL 2019, section 3.1)."""

    DOCUMENTS = True
    k: Neighbourhood = 1
    """Number of context sentences on each side."""
    loss: Literal["cross-entropy", "printed"] = "cross-entropy"
    """`cross-entropy`: -log p of the true sentence; `printed`: 1 - p, as the paper prints L_ml."""


class MiningSettings(Settings):
    """Mining of similar sentences in two languages (CCL 2019, section 3.2)."""

    sample: whole(ge=1, le=1_000_000) = 10_000  # the most takes a day of a GPU for each round
    """Most sentences of each language that a round samples and compares, m in the paper."""
    keep: PairCount = 1_000
    """Maximum number of pairs that a round keeps, the best ones."""
    pairs: PairCount = 100_000
    """Number of pairs at which no further round starts."""
    neighbours: whole(ge=0, le=1_000) = 10
    """Number of neighbours in CSLS, 10 as in its paper; 0: the cosine alone."""


class CoherenceSettings(Weighted):
    """Predicts the similarity of two sentences from one of them in the context of the other (CCL
    2019, section 3.2). The system in `train.start_from` finds the sentences.
    """

    DOCUMENTS = True
    k: Neighbourhood = 1
    """Number of context sentences on each side."""
    target: Literal["cosine", "csls"] = "cosine"
    """Similarity to predict, measured by the system in `train.start_from`."""
    mining: MiningSettings = Field(default_factory=MiningSettings)


class Objectives(Settings):
    """The training objectives and the head that some of them share."""

    LATER: ClassVar = frozenset({"context", "coherence"})
    head: HeadSettings = Field(default_factory=HeadSettings)
    """Generative head of xtr, ugt, smlm and mlm (EMS v2 Eq. 2-5)."""
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
        """The names of the objectives with a weight above 0."""
        return [name for name, part in self if getattr(part, "weight", 0)]

    @property
    def documents(self) -> bool:
        """True if the active objectives learn from documents instead of pairs."""
        return any(getattr(self, name).DOCUMENTS for name in self.active)


@cache
def objectives_model() -> type[Objectives]:
    package = import_module(OBJECTIVES)  # at run time: the objectives import these settings
    names = [module.name for module in iter_modules(package.__path__[1:])]
    own = {name: import_module(f"{OBJECTIVES}.{name}").Settings for name in names}
    return with_fields(Objectives, "Objectives", **own) if own else Objectives


def check_objectives(
    key: str, objectives: Objectives, model: EncoderSettings, train: TrainSettings
) -> None:
    """Raise `EmsError` if the objectives of the system at `key` contradict each other."""
    active, dimensions = objectives.active, objectives.matryoshka.dimensions
    on_pairs = [name for name in active if not getattr(objectives, name).DOCUMENTS]
    mlm, coherence = "mlm" in active, objectives.coherence.weight
    masks_one = [name for name in ("ugt", "smlm") if name in active]
    masks_one += ["train.input_mask: one"] if train.input_mask == "one" else []
    group = objectives.contrastive.negatives
    prefixes = dimensions if "matryoshka" in active else []
    too_long = next((size for size in prefixes if size > model.pooled_width), 0)
    mistakes = {
        "no objective": not active,
        "documents and pairs": objectives.documents and on_pairs,
        "context and coherence": coherence and objectives.context.weight,
        "coherence without a start": coherence and not train.start_from,
        "mlm with mean-max": mlm and model.pooling == "mean-max",
        "shared output of a table": objectives.head.output == "shared" and not model.attends,
        "mlm with a table": mlm and model.table,
        "two masks": mlm and masks_one,
        "groups of negatives": group != "batch" and train.batch_pairs % group,
        "mlm with grad_cache": mlm and train.grad_cache,
        "no prefixes": "matryoshka" in active and not dimensions,
        "long prefix": too_long,
    }
    names = {"on_pairs": " and ".join(on_pairs), "masks_one": " and ".join(masks_one)}
    names["on_documents"] = ", ".join(name for name in active if name not in on_pairs)
    numbers = {"group": group, "size": too_long, "width": model.pooled_width}
    check(mistakes, key=key, pairs=train.batch_pairs, **numbers, **names)
