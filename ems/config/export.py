"""The settings `export`: what the exported folder of a system has."""

from pydantic import Field

from ems.base.schema import Settings, listing


class ExportSettings(Settings):
    """What the exported folder of each system has."""

    systems: listing(str) = Field(
        [],
        description="The systems that the target `exports` (and so `dvc repro`) exports; any other "
        "one is a target of its own.",
    )
    onnx: bool = Field(False, description="Adds onnx/model.onnx.")
    int8: bool = Field(False, description="Adds onnx/model_qint8.onnx.")
    dimensions: int = Field(
        0,
        ge=0,
        le=65536,
        description="Keeps the first numbers of each embedding, one of "
        "`objectives.matryoshka.dimensions`; 0: all.",
    )
    without_segmenters: bool = Field(
        False,
        description="Exports a system whose segmenters no tokenizer.json can say, with the "
        "measured loss of P@1 on its card.",
    )
