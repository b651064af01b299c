"""What the tests of the demo's data share."""

import unicodedata


def law(text: str) -> str:
    """NFKC, lower case, only letters, digits and combining marks; written apart from ems."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LNM")
