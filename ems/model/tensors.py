"""Write tensors to a file."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def save_tensors(
    tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors as safetensors. Raises `OSError`, as `atomic_path` expects (disk full).

    The file is readable like its folder; safetensors itself writes for its user alone.
    """
    whole = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    try:
        save_file(whole, path, metadata)
    except SafetensorError as error:
        raise OSError(None, str(error), str(path)) from error
    path.chmod(path.stat().st_mode | path.parent.stat().st_mode & 0o044)
