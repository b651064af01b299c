"""The settings of an entry of `evalsets`."""

from typing import Literal

from pydantic import Field

from ems.base.schema import Json, Place, Settings, ShortName, by_type, listing


class EvalsetEntry(Settings):
    """A benchmark's data, or a set that only decontamination looks at."""

    version: ShortName = Field(description="The version of the data.")
    languages: by_type(Literal["experiment", "all"], listing(str)) = Field(
        "experiment",
        description="The languages of the experiment that the benchmark has, all that it has, or "
        "a list.",
    )
    without: list[str] = Field([], description="Languages that are left out.")
    part: str = Field(
        "", description="ntrex: the part that is the benchmark, as `splits` divides it."
    )
    path: Place | None = Field(
        None, description="The folder of a copy of your own, which is used in place."
    )
    dev: bool = Field(
        False, description="flores200: adds the dev part, which only the official archive has."
    )
    protocol: Json | None = Field(
        None, description="How the set is scored, where a benchmark leaves a choice."
    )
