"""Commands that make products of a trained encoder."""

from pathlib import Path
from typing import Annotated

from ems.base.outputs import Writes
from ems.commands import common
from ems.export import is_export

LOSS = "experiment whose data measure the loss without segmenters (default: the model's own)"


def export(
    model: common.ModelFolder,
    out: Annotated[Path, "folder to write", Writes("whole folder", ours=is_export)],
    onnx: Annotated[bool, "an ONNX graph besides"] = False,
    int8: Annotated[bool, "an ONNX graph of 8 bits besides"] = False,
    dimensions: common.Dimensions = 0,
    verify: Annotated[Path | None, "lines to check the folder on (default: a sample)"] = None,
    without_segmenters: Annotated[bool, "export of a model that needs segmenters"] = False,
    experiment: Annotated[str | None, LOSS, *common.OtherExperiment.__metadata__[1:]] = None,
) -> None:
    """Export a model for sentence-transformers, onnxruntime and the Hugging Face hub."""
    from ems.export import card, folder, tokenizer
    from ems.export.verify import Figures, as_rows, read_sample, sample
    from ems.model.folder import read_model

    description = read_model(model)
    tool = tokenizer.chosen(description.segmenters)
    lost, loss = tokenizer.lost(model, description.segmenters, tool), None
    if lost and (not without_segmenters or tokenizer.CHARACTERS in lost):
        raise tokenizer.refusal(model, lost)
    if lost:
        whole = common.experiment_of(experiment or description.experiment or None)
        data = Path(common.site_settings().data)
        loss = tokenizer.measured(model, description, tool, whole, data)
    exported = folder.Exported(model, tool, folder.Options(onnx, int8, dimensions))
    lines = read_sample(verify) if verify else sample(exported.ours.vocabulary)
    kept = card.Kept.beside(model)

    def made_card(figures: Figures) -> str:
        return card.card(exported, figures, kept, loss)

    figures = folder.export(exported, lines, made_card, out)
    for name, value in as_rows(figures):
        print(f"{name}={value}")
