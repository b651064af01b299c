"""EMS: one sentence encoder for many languages, trained from parallel text (Mao et al., EMS v2)."""

__version__ = "0.1.0"
