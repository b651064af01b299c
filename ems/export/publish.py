"""`ems publish`: complete an exported folder for the Hugging Face hub, list it and upload it."""

from pathlib import Path
from shutil import copytree

import yaml

from ems.base.errors import EmsError
from ems.base.files import SUMS, read_text, write_text
from ems.base.texts import read_lines
from ems.export import write_sums

CARD, LICENCE = "README.md", "LICENSE"
LARGE, LARGEST = (".model", ".onnx", ".safetensors"), 10_000_000  # LFS by name; bytes without LFS
PLACE = 'SentenceTransformer("path/of/this/folder"'  # in the code of a card
REFUSED = {
    401: "the hub does not accept the token; set HF_TOKEN or run `hf auth login`",
    403: "the token may not write there; choose one with the right to write, or another --repo",
    409: "the repository exists; add --update to commit to it, or choose another --repo",
}


def complete(folder: Path, licence: str, results: Path | None, repo: str) -> None:
    """Add LICENSE (a file `licence`, or ours of this name on the hub) and MTEB's results to an
    exported folder; update its card and SHA256SUMS. Raises `EmsError` for others, and
    for results that are not in MTEB's layout.
    """
    from huggingface_hub import ModelCard

    try:
        card = ModelCard(read_text(folder / CARD))
    except (ValueError, yaml.YAMLError):
        raise EmsError(f"{CARD}: expected front matter in YAML at its top; correct it") from None
    name = licence or card.data.license or "none: the corpora imply none"
    text = Path(__file__).with_name(f"{Path(name).name}.txt")
    if text.is_file():
        card.data.license = name
    elif (text := Path(licence)).is_file():
        card.data.license, card.data.license_link = "other", LICENCE
        card.data.license_name = text.stem
    else:
        known = "cc-by-sa-4.0, cc-by-4.0, or a file with the text of another one"
        raise EmsError(f"--licence: expected {known}, found {name}")
    write_text(folder / LICENCE, read_text(text))
    card.text = card.text.replace(PLACE, f'SentenceTransformer("{repo}"') if repo else card.text
    write_text(folder / CARD, str(card))
    if results:
        if not any(results.glob("*/*/*.json")):
            raise EmsError(f"{results}: expected MTEB's results, <model>/<revision>/<task>.json")
        copytree(results, folder / "results", dirs_exist_ok=True)
    write_sums(folder)


def listing(folder: Path) -> str:
    """Return a line for each file: bytes, SHA-256 (of 12 digits), LFS or git, path."""
    lines = ""
    for sha256, _, name in (line.partition("  ") for line in read_lines(folder / SUMS)):
        size = (folder / name).stat().st_size
        kind = "LFS" if name.endswith(LARGE) or size > LARGEST else "git"
        lines += f"{size:>13,} bytes  {sha256[:12]}  {kind}  {name}\n"
    return lines


def upload(folder: Path, repo: str, private: bool, update: bool) -> str:
    """Commit a folder to a repository of the hub, a new one unless `update`; return its address."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HTTPError

    api, again = HfApi(), f"{folder} is complete; publish again, with --update if it exists"
    try:
        address = api.create_repo(repo, private=private or None, exist_ok=update)
        api.upload_folder(repo_id=repo, folder_path=folder, commit_message="Publish with EMS")
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        reason = REFUSED.get(status, f"{' '.join(str(error).split())[:200]}; {again}")
        raise EmsError(f"--repo {repo}: {reason}") from None
    return str(address)
