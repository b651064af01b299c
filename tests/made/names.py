"""A name that a shell, a flag parser or a format string could take for their own."""

import json

NASTY = "-a '\"$(touch pwned);touch pwned;`touch pwned`|&>#*?[a]\\%s%j ü"
ON_SLURM = "a;touch pwned;|&>#*?[a]~! ü"  # what the executor can hand to Slurm


def quoted(text: object) -> str:
    """A text as YAML."""
    return json.dumps(str(text), ensure_ascii=False)
