"""Sentence alignment: which sentences of two documents are translations of each other."""

from pydantic import Field

from ems.base.records import whole
from ems.base.schema import Settings, ShortName, listing


class Protocol(Settings):
    """The documents, and how to align them."""

    documents: listing(ShortName, least=1) = Field([f"test{number}" for number in range(7)])
    """Names of the documents: NAME.de, NAME.fr and NAME.defr."""
    largest: whole(ge=2, le=32) = 8
    """Largest number of sentences of an alignment, on both sides together."""
