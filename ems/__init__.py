"""EMS: one sentence encoder for many languages, trained from parallel text (Mao et al., EMS v2)."""

import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for some takes 20 ms

__version__ = "0.1.0"
