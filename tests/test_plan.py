"""Laws of the plan: what is missing is said before any job starts, unless no job needs it here."""

import pytest
from experiments_made import REAL, Settings, edited

from ems.errors import EmsError
from ems.plan import plan, segments_elsewhere
from ems.text.segment import check_available


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """An experiment that needs Juman++, on a machine where PATH has nothing."""
    settings = Settings(tmp_path, edited(REAL, "segmenters.ja", "jumanpp"))
    monkeypatch.setenv("PATH", str(tmp_path))
    check_available.cache_clear()
    yield tmp_path
    check_available.cache_clear()
    assert settings


@pytest.mark.parametrize(
    "words",
    [
        ["snakemake", "-n", "all"],
        ["snakemake", "-np"],
        ["snakemake", "-qn"],
        ["snakemake", "--dry-run", "--config", "experiment=ems62"],
        ["snakemake", "--dag"],
        ["snakemake", "--touch", "all"],
        ["snakemake", "--profile", "slurm", "all"],
        ["snakemake", "--profile=slurm"],
        ["snakemake", "all", "slurm"],  # of the environment: SNAKEMAKE_PROFILE
        ["snakemake", "--executor", "slurm"],
    ],
)
def test_no_text_is_segmented_here_in_a_dry_run_or_with_a_cluster(words):
    assert segments_elsewhere(words)


@pytest.mark.parametrize(
    "words",
    [
        ["snakemake"],
        ["snakemake", "--cores", "2", "all"],
        ["snakemake", "--nolock", "all"],
        ["snakemake", "-sSnakefile", "-j2"],
        ["snakemake", "--profile", "default", "--config", "experiment=n"],
    ],
)
def test_text_is_segmented_here_in_every_other_run(words):
    assert not segments_elsewhere(words)


def test_a_segmenter_that_is_missing_where_it_runs_is_an_error(bare):
    with pytest.raises(EmsError, match="segmenter jumanpp: the program `jumanpp` is not on PATH"):
        plan(root=bare)


def test_one_that_runs_elsewhere_is_in_the_plan(bare):
    (line,) = plan(root=bare, elsewhere=True).missing
    assert "segmenter jumanpp: the program `jumanpp` is not on PATH" in line


def test_what_is_wrong_with_the_settings_is_an_error_everywhere(bare):
    (bare / "configs/mine.yaml").write_text("seed: x\n")
    with pytest.raises(EmsError, match=r"mine\.yaml"):
        plan(root=bare, elsewhere=True)
