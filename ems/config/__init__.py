"""The typed view of an experiment: configs/<name>.yaml and the site settings of config.yaml.

Notable choices:
- an experiment file is complete: nothing of another one can leak in, because each process reads
  just this one file, by name (Snakemake's own config holds only `experiment` and the site's
  settings);
- a system is the experiment's base plus overrides, merged here once;
- `settings.stage_settings` is the one list of which settings a stage reads.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ems.config.composed import experiment_schema, site_schema
from ems.config.experiment import EMBEDDED, SHARED, UNSEEN, Corpus, EvalSet, Experiment, Split
from ems.config.opus import pair_name
from ems.config.resolve import build
from ems.config.schema import check, load_yaml, merge, with_defaults
from ems.config.settings import stage_hash, stage_settings
from ems.config.sweep import swept
from ems.config.systems import expand
from ems.errors import EmsError

__all__ = [
    "EMBEDDED",
    "OPUSTOOLS",
    "RESERVED",
    "SHARED",
    "UNSEEN",
    "Corpus",
    "EvalSet",
    "Experiment",
    "Split",
    "load_experiment",
    "load_site",
    "pair_name",
    "stage_hash",
    "stage_settings",
]

RESERVED = {"tables", "figures"}  # folders of results/ that hold the selected experiment's
OPUSTOOLS = "opustools"  # the source that means: through the package of that name


def load_site(path: Path, schemas: Path, overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """config.yaml with `overrides` (from `--config`) and the defaults filled in."""
    schema = site_schema(schemas)
    value = merge(load_yaml(path), _with_booleans(overrides or {}))
    check(value, schema, path)
    _check_folder(f"{path}: data", path.parent / value["data"])
    return with_defaults(value, schema, {})


def _check_folder(key: str, folder: Path) -> None:
    """Raise `EmsError` when a folder is something else, or cannot be made."""
    try:
        os.scandir(folder).close()
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or folder.is_symlink():
            raise EmsError(
                f"{key}: found {str(folder)!r}, expected a folder or a name that is free "
                f"({error.strerror})"
            ) from None


def _with_booleans(overrides: dict[str, Any]) -> dict[str, Any]:
    """Overrides in which `true` is what it is in YAML; Snakemake reads only `True` as that."""
    words = {"true": True, "false": False}
    return {
        key: words.get(value, value) if isinstance(value, str) else value
        for key, value in overrides.items()
    }


def load_experiment(
    name: str,
    site: dict[str, Any],
    configs: Path = Path("configs"),
    schemas: Path = Path("schemas"),
) -> Experiment:
    """Read and check configs/`name`.yaml. Raises `EmsError`, one line that names the key."""
    path = configs / f"{name}.yaml"
    if name in RESERVED:
        raise EmsError(f"experiment: {name} is a folder of results/; give {path} another name")
    if not path.is_file():
        known = ", ".join(sorted(item.stem for item in configs.glob("*.yaml"))) or "none"
        raise EmsError(f"experiment: {path} does not exist; the experiments here: {known}")
    schema = experiment_schema(schemas)
    value = load_yaml(path)
    check(value, schema, path)
    value = with_defaults(value, schema, schema["$defs"])
    try:
        entries = expand(value["systems"], value["vocabularies"])
        systems = {key: _system(value, overrides) for key, overrides in entries.items()}
        sweep, added = swept(value, systems, schema)
        return replace(build(name, value, site, {**systems, **added}), sweep=sweep)
    except EmsError as error:
        raise EmsError(f"{path}: {error}") from None


def _system(value: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    base = {key: value[key] for key in ("model", "objectives", "train")}
    return merge({"kind": "encoder", **base}, overrides)
