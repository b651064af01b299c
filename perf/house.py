"""Print the sizes of the rooms in a few lines, and how each changed: `make house`.

It compares the working tree with the last tag, or with the commit in `--since`. It asserts nothing:
docs/architecture.md says how large each room should be and why. It needs only Python's standard
library.
"""

import argparse
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ["ems", "rules", "Snakefile", "tests", "perf", "pyproject.toml", "docs/architecture.md"]
PLUG_INS = {"benchmarks", "objectives", "segmenters"}
LONG = 60  # lines; a shorter file needs a reason
FOLLOWED = ("step", "pair", "score")  # docs/architecture.md lists the files to read for each


def of_working_tree() -> dict[str, str]:
    """Return path -> text of the files that git tracks or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PARTS]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = {name: ROOT / name for name in names.split("\0") if counts(name)}
    return {name: path.read_text("utf-8") for name, path in paths.items() if path.is_file()}


def of_commit(commit: str) -> dict[str, str]:
    """Return path -> text of the files of a commit."""
    tree = subprocess.run(
        ["git", "ls-tree", "--name-only", commit, *PARTS],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    packed = subprocess.run(
        ["git", "archive", commit, *tree], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        members = [member for member in tar if member.isfile() and counts(member.name)]
        return {each.name: tar.extractfile(each).read().decode("utf-8") for each in members}


def counts(name: str) -> bool:
    return (
        name.endswith((".py", ".smk", ".toml", ".md", ".tsv", ".txt", ".yaml"))
        or name == "Snakefile"
    )


def last_tag() -> str:
    """Return the name of the last tag before the working tree; '' if there is none."""
    command = ["git", "describe", "--tags", "--abbrev=0"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def sizes(texts: dict[str, str]) -> dict[str, list[int]]:
    """Return label -> numbers for each line of the table."""
    lines = {name: text.count("\n") for name, text in texts.items()}
    ours = [name for name in texts if name.startswith("ems/") and name.endswith(".py")]
    plain = [name for name in ours if not PLUG_INS & set(name.split("/"))]
    plain = [name for name in plain if not name.endswith("__init__.py")]
    rooms = {"/".join(name.split("/")[:-1]) for name in ours} - {"ems"}
    rules = [name for name in texts if name.endswith(".smk") or name == "Snakefile"]
    named = {
        word: [
            name
            for name in texts
            if name.startswith("ems/") and word in texts[name] and f"/{word}/" not in name
        ]
        for word in ("counterfactual", "sib200")
    }
    tests = [name for name in texts if name.startswith("tests/")]
    tested = [name for name in tests if name.endswith(".py")]
    house = texts.get("docs/architecture.md", "")
    ignored = re.search(r"ignore_imports = \[(.*?)\n\]", texts.get("pyproject.toml", ""), re.S)
    return {
        "ems/: lines, files, outside plug-ins, of these short": [
            sum(lines[name] for name in ours),
            len(ours),
            len(plain),
            sum(lines[name] < LONG for name in plain),
        ],
        "ems/: files at the top, rooms, folders": [
            sum(name.count("/") == 1 for name in ours),
            len({name.split("/")[1] for name in ours if name.count("/") > 1}),
            len(rooms),
        ],
        "imports upwards (exceptions of import-linter)": [
            ignored[1].count(" -> ") if ignored else 0
        ],
        "rules and Snakefile, Snakefile, common.smk": [
            sum(lines[name] for name in rules),
            lines.get("Snakefile", 0),
            lines.get("rules/common.smk", 0),
        ],
        "dict[str, Any] in ems/": [sum(texts[name].count("dict[str, Any]") for name in ours)],
        "files that name counterfactual, sib200 elsewhere": [len(each) for each in named.values()],
        "files to read for a step, a pair, a score": [files_of(house, word) for word in FOLLOWED],
        "tests/: lines and files of Python, of data": [
            *(sum(lines[name] for name in tested), len(tested)),
            *(sum(lines[name] for name in tests if name not in tested), len(tests) - len(tested)),
        ],
        "perf/: lines, files": [
            sum(lines[name] for name in texts if name.startswith("perf/")),
            sum(name.startswith("perf/") for name in texts),
        ],
    }


def files_of(page: str, word: str) -> int:
    """Return the number of items in a page's list "Follow a <word>"."""
    _, _, after = page.partition(f"Follow a {word}")
    return len(re.findall(r"^\d+\. ", after.partition("\n#")[0], re.M))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", default=last_tag(), help="commit or tag (default: the last tag)")
    since = parser.parse_args(arguments).since
    now = sizes(of_working_tree())
    before = sizes(of_commit(since)) if since else {}
    print(f"{'':50} {'now':>26}   since {since or '(no tag yet: --since COMMIT)'}")
    for name, values in now.items():
        change = [new - old for new, old in zip(values, before.get(name, values), strict=True)]
        shown = ", ".join(f"{value:,}" for value in values)
        print(f"{name:50} {shown:>26}   {', '.join(f'{value:+,}' for value in change)}")


if __name__ == "__main__":
    main(sys.argv[1:])
