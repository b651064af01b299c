"""Writes schemas/*.json and docs/config.md, which are made from the settings."""

import json
from pathlib import Path

from ems.base.files import write_text
from ems.config.page.document import settings_page
from ems.config.page.schema import experiment_schema, site_schema


def generated() -> dict[str, str]:
    """Return the text of each file by its path in the project."""
    schemas = {"experiment": experiment_schema(), "site": site_schema()}
    texts = {
        f"schemas/{name}.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }
    return {**texts, "docs/config.md": settings_page()}


if __name__ == "__main__":
    for path, text in generated().items():
        write_text(Path(path), text)
