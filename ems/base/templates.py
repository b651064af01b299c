"""Fill in templates of Jinja: reports, an experiment, a model card. HTML is escaped."""

from pathlib import Path
from typing import Any


def rendered(template: Path, **values: Any) -> str:
    """Return the text of a template. A value that it lacks is an error, not an empty text."""
    from jinja2 import Environment, StrictUndefined  # imported late: not every command needs it

    environment = Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=".html" in template.suffixes,
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)
