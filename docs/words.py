"""List phrases that must be read twice, in prose, docstrings and comments: `make words`.

Each finding is `file:line: phrase: what to write instead`; the exit status is 1 if there is any.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PLACES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", ".github/*.md"]
PLACES += ["ems/*.py", "ems/*.yaml", "ems/*.md", "ems/*.jinja", "ems/*.html", "ems/*headings.tsv"]
PLACES += ["rules/*", "Snakefile", "configs/*", "config.yaml", "Makefile"]
PHRASES = {  # regular expression: what to write instead
    r"\bthose (of|that|which|who)\b": "repeat the noun",
    r"\b(that|which) of (the|a|an|its|their|each)\b": "repeat the noun",
    r"\bbeside\b": "next to, in the same folder as, with, as well as",
    r"\bthat which\b|\bwhat is (made|mined|written|read) (of|from|in)\b": "a noun",
    r"\bwho(so)?ever\b|\bwhich?soever\b": "any user, anyone who",
    r"\bbut for\b": "except",
    r"\b(is|are) told\b": "is given, reads",
    r"\bfrom which on\b|\bas (they are|it is)(?=[.,;:)])": "say which: unchanged, raw, from ... on",
    r"\bnobody\b": "say what happens instead of who does not do it",
    r"\bso (much|many) (as|of)\b": "a number or a noun",
    r"\bnone of (its|the|their) own\b": "a positive statement",
    r"\bwhat (it|they) (is|are|has|have) (of|from)\b": "a noun",
}
NOT_VERBS = (
    r"A|All|An|Any|At|Both|Each|Every|From|How|In|Its?|More|No|None|Of|On|One|Some|That|The|These|"
    r"They|Those|Two|Three|Four|To|What|When|Where|Whether|Which|Who|Whose|With"
)
FILLERS = r"\b(a|all|an|and|as|by|for|from|in|is|its?|of|on|or|return|the|this|to|with)\b"


def phrases(path: Path) -> Iterator[str]:
    """Yield the findings of PHRASES in a file, which may break a phrase over two lines."""
    text = path.read_text(encoding="utf-8")
    for phrase, better in PHRASES.items():
        for match in re.finditer(phrase.replace(" ", r"\s+(?:#\s*)?"), text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: {' '.join(match[0].split())}: {better}"


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of functions that lack a verb or only repeat the signature."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef) or not (text := ast.get_docstring(node)):
            continue
        if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue  # an attribute for its user: a noun
        first, place = text.split()[0], f"{path}:{node.lineno}: {node.name}"
        if re.fullmatch(NOT_VERBS, first) or not re.fullmatch(r"[A-Z][a-z-]+[,.]?", first):
            yield f"{place}: {text.splitlines()[0]}: begin with a verb"
        said = f"{node.name} {ast.unparse(node.args)} {ast.unparse(node.returns or node.args)}"
        known = {_stem(word) for word in re.findall(r"[a-z]+", said.lower())}
        words = {_stem(word) for word in re.findall("[a-z]+", re.sub(FILLERS, "", text.lower()))}
        if words <= known:
            yield f"{place}: {text}: delete what the signature says"


def _stem(word: str) -> str:
    return re.sub(r"(ies|es|s|ed|ing|y|e)$", "", word) or word


def main() -> int:
    """Print the findings in the files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", *PLACES], capture_output=True, text=True, check=True
    )
    paths = [Path(line) for line in listed.stdout.splitlines()]
    findings = [line for path in paths for line in phrases(path)]
    findings += [line for path in paths if path.suffix == ".py" for line in docstrings(path)]
    print("\n".join([*findings, f"{len(findings)} findings in {len(paths)} files"]))
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
