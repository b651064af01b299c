"""Write tensors to a file, so that a full disk is the error of the operating system."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def save_tensors(
    tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write tensors as safetensors. Raises `OSError`, as `atomic_path` expects (disk full)."""
    own = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    try:
        save_file(own, path, metadata)
    except SafetensorError as error:
        raise OSError(None, str(error), str(path)) from error
