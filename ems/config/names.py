"""The form of names, which are parts of paths and of commands (ems.settings has more patterns)."""

import re

from ems.errors import EmsError

NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
LABEL = rf"{NAME}(?:\+[a-z]+)?"  # of a corpus, with the part of one that is divided
CODE = "[A-Za-z][A-Za-z_]*"  # of a language


def check_name(key: str, name: str) -> None:
    """Raise `EmsError` unless a name has the form of one."""
    if not re.fullmatch(LABEL, name):
        raise EmsError(
            f"{key}: found {name!r}, expected letters, digits, `.`, `_` and `-`, starting with a "
            "letter or digit"
        )
