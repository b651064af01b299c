"""Laws of every command, whatever it is given: it ends in time, with right output or with one line
that says what was expected or found, and writes nothing but what it was asked to.

`make fuzz` tries new cases for an hour; here are the same few each time.
"""

import pytest
from fuzz.campaign import Campaign, rebuilt
from fuzz.cases import ENDLESS, subcommands, wrong_cases
from fuzz.forks import FAULTS
from fuzz.world import COMMANDS, RESUMED

from ems.commands import COMMANDS as EVERY_COMMAND

pytestmark = pytest.mark.slow
CASES = {
    "commands": 40,
    "files": 40,
    "configs": 40,
    "models": 40,
    "trainings": 4,
    "plans": 3,
    "workflows": 1,
}
PASSING = {
    "commands": 0.2,
    "files": 0.2,
    "configs": 0.1,
    "models": 0.1,
    "trainings": 0.2,
}  # with status 0
ENCODE = next(words for words in COMMANDS if words[1] == "encode")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    campaign = Campaign()
    yield campaign
    campaign.forks.close()


def case(words=ENCODE, **more):
    return {"kind": "commands", "edits": [], "words": words, **more}


@pytest.mark.parametrize("words", [*COMMANDS, RESUMED], ids=lambda words: " ".join(words[1:5]))
def test_a_good_command_keeps_the_law_and_writes_the_same_again(campaign, words):
    timed = words[1] in ("costs", "timed", "figure")
    assert campaign.run(case(words, same=not timed)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_the_campaign_notices_a_planted_fault(campaign, fault):
    seconds = 2 if fault == "hang" else 60
    assert campaign.run(case(seconds=seconds), fault)


def test_every_subcommand_has_a_good_command_to_start_from():
    absent = {"demo-mirror", "import-released", "pdf"}
    assert set(EVERY_COMMAND) > ENDLESS
    assert set(subcommands()) - absent == {words[1] for words in COMMANDS}


@pytest.mark.parametrize("kind", CASES)
def test_no_case_breaks_the_law(campaign, kind):
    campaign.forget()
    campaign.batch(kind, number=1, count=CASES[kind])
    assert not campaign.failures, campaign.table()
    assert campaign.cases[kind] >= CASES[kind]
    assert campaign.passed[kind] >= PASSING.get(kind, 0) * campaign.cases[kind]


def test_a_wrong_value_of_any_flag_of_any_command_is_one_line(campaign):
    campaign.forget()
    for wrong in wrong_cases(COMMANDS, most=1):
        campaign.check(wrong)
    assert not campaign.failures, campaign.table()
    assert campaign.passed["wrong"] < 0.5 * campaign.cases["wrong"]


def test_a_failure_says_how_to_run_its_case_again():
    assert "ems encode --language de" in rebuilt(case())
    assert '"words": ["ems", "encode"' in rebuilt(case())
