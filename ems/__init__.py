"""EMS: one sentence encoder for many languages, trained from parallel text (Mao et al., EMS v2).

    from ems import Encoder, align, mine, score

These names are imported from `ems.use` on first use, so that the command line starts quickly. A
static model needs numpy, safetensors and sentencepiece, one with layers PyTorch as well.
"""

import os
from importlib import import_module
from typing import Any

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # searching for plug-ins takes 20 ms

__version__ = "0.1.0"
_PLACES = dict.fromkeys(("Encoder", "mine", "score"), "ems.use.encoder") | {
    "align": "ems.use.align"
}


def __getattr__(name: str) -> Any:
    """Import a name of the public interface. Raises `AttributeError` for any other name."""
    if name not in _PLACES:
        raise AttributeError(f"module 'ems' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
