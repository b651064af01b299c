"""The typed view of an experiment: configs/<name>.yaml and the site settings of config.yaml.

An experiment file is complete: nothing of another one can leak in, because each process reads just
this one file, by name (Snakemake's own config holds only `experiment` and the site's settings).
"""

import os
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.schema import Json, checked, merge, plain
from ems.config.experiment import Experiment
from ems.config.file import experiment_model
from ems.config.resolve import build
from ems.config.site import Site, site_model
from ems.config.yaml import load_yaml

RESERVED = {"tables", "figures"}  # folders of results/ that hold the selected experiment's
OPUSTOOLS = "opustools"  # the source that means: through the package of that name


def load_site(path: Path, overrides: Json | None = None) -> Site:
    """config.yaml with `overrides` (from `--config`) and the defaults filled in."""
    value = merge(load_yaml(path), _with_booleans(overrides or {}))
    site = checked(site_model(), value, path)
    _check_folder(f"{path}: data", path.parent / site.data)
    return site


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


def _with_booleans(overrides: Json) -> Json:
    """Return overrides where `true` is what it is in YAML; Snakemake reads only `True` so."""
    words = {"true": True, "false": False}
    return {
        key: words.get(value, value) if isinstance(value, str) else value
        for key, value in overrides.items()
    }


def load_experiment(name: str, site: Site, configs: Path = Path("configs")) -> Experiment:
    """Read and check configs/`name`.yaml. Raises `EmsError`, one line that names the key."""
    path = configs / f"{name}.yaml"
    if name in RESERVED:
        raise EmsError(f"experiment: {name} is a folder of results/; give {path} another name")
    if not path.is_file():
        known = ", ".join(sorted(item.stem for item in configs.glob("*.yaml"))) or "none"
        raise EmsError(f"experiment: {path} does not exist; the experiments here: {known}")
    value = load_yaml(path)
    file = checked(experiment_model(), value, path)
    try:
        return build(name, file, plain(site.sources), value["systems"])
    except EmsError as error:
        raise EmsError(f"{path}: {error}") from None
