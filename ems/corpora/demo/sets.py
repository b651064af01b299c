"""The evaluation sets that the demo's mirror holds, each in its publisher's files and layout.

Notable choices:
- a set is drawn after the corpus and after the sets before it in this list: a new one goes to the
  end, so that the bytes of the others stay;
- `sources: {<set>: embedded}` of an experiment means its folder here, in place, Tatoeba apart, which
  is written with the corpus (`mirror`) and fetched from there.
"""

from collections.abc import Callable, Iterator

from ems.corpora.demo.build import Demo
from ems.corpora.demo.counterfactual import counterfactual
from ems.corpora.demo.material import Files, Material
from ems.corpora.demo.mining import bucc2018
from ems.corpora.demo.news import reuters
from ems.corpora.demo.pairs import pawsx, xnli
from ems.corpora.demo.parallel import europarl, flores200, ntrex, paracrawl, xsimpp
from ems.corpora.demo.reviews import cls, marc
from ems.corpora.demo.topics import sib200

FOLDERS = {  # set -> its folder below the mirror's
    "flores200": "flores200",
    "xsimpp": "xsimpp",
    "ntrex": "ntrex",
    "sib200": "sib200",
    "bucc2018": "bucc2018",
    "paracrawl": "paracrawl",
    "europarlxsr": "europarlxsr",
    "xnli": "xnli",
    "pawsx": "pawsx",
    "cls": "cls",
    "marc": "marc",
    "mldoc": "reuters",
    "rcv2": "reuters",
    "counterfactual": "counterfactual",
}
MAKERS: dict[str, Callable[[Material], Files]] = {  # folder -> its files
    "flores200": flores200,
    "xsimpp": xsimpp,
    "ntrex": ntrex,
    "sib200": sib200,
    "bucc2018": bucc2018,
    "paracrawl": paracrawl,
    "europarlxsr": europarl,
    "xnli": xnli,
    "pawsx": pawsx,
    "cls": cls,
    "marc": marc,
    "reuters": reuters,
    "counterfactual": counterfactual,
}


def made_sets(demo: Demo) -> Iterator[tuple[str, Files]]:
    """Return (folder, files) of each set, drawn one after the other."""
    material = Material(demo)
    for folder, make in MAKERS.items():
        yield folder, make(material)
