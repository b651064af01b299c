"""Laws of the table of costs: every job counts once, stages stand in the order of the pipeline."""

import pytest
from made.experiments import REAL, Settings, edited
from made.tables import SUFFIXES, csv_rows, write_cost

from ems.base.errors import EmsError
from ems.tables.logs import STAGES, write_costs_table
from ems.workflow.plan import has_job


def cost_rows(tmp_path):
    write_costs_table(tmp_path / "costs", tmp_path / "table.tex")
    return csv_rows(tmp_path / "table.tex")


def test_a_stage_is_the_sum_of_its_jobs_and_the_largest_of_them(tmp_path):
    folder = tmp_path / "costs"
    write_cost(folder, "clean/a", "clean", 1.25, 1.0, 50.4)
    write_cost(folder, "clean/b", "clean", 1234.0, 2.5, 80.6)
    write_cost(folder, "vocabulary", "vocabulary", 10.0, 20.0, 70.0)
    rows = cost_rows(tmp_path)
    assert list(rows["clean"].values()) == ["clean", "2", "1235.3", "1234.0", "3.5", "81"]
    assert list(rows["Total"].values()) == ["Total", "3", "1245.3", "", "23.5", "81"]
    assert "clean & 2 & 1,235.3 & 1,234.0 & 3.5 & 81" in (tmp_path / "table.tex").read_text()
    (folder / "clean/killed.json").touch()
    assert cost_rows(tmp_path) == rows


def test_trainings_and_benchmarks_are_counted_by_system(tmp_path):
    folder = tmp_path / "costs"
    systems = ("ems", "ems-no-xtr")
    for system in systems:
        write_cost(folder, f"train/{system}", "train")
        for benchmark in ("ntrex", "tatoeba"):
            write_cost(folder, f"bench/{system}/{benchmark}", "bench")
    (folder / "train/ems.times.jsonl").write_text('{"step": 0}\n')  # which are no costs of a job
    jobs = {name: row["Jobs"] for name, row in cost_rows(tmp_path).items()}
    of_ems, of_other = ({f"train {name}": "1", f"bench {name}": "2"} for name in systems)
    assert jobs == {**of_ems, **of_other, "Total": "6"}


def test_stages_stand_in_the_order_of_the_pipeline_and_unknown_ones_after_them(tmp_path):
    folder = tmp_path / "costs"
    for stage in ("zip", "bench", "encode", "fetch", "train", "sample", "demo-mirror"):
        write_cost(folder, f"{stage}/x", stage)
    names = ["demo-mirror", "fetch", "sample", "train x", "bench x", "encode", "zip", "Total"]
    assert list(cost_rows(tmp_path)) == names
    assert len(set(STAGES)) == len(STAGES)


def test_the_same_costs_give_the_same_bytes_wherever_they_lie(tmp_path):
    written = []
    for folder in (tmp_path / "one", tmp_path / "two" / "deeper"):
        for name, stage in (("train/ems", "train"), ("clean/b", "clean"), ("clean/a", "clean")):
            write_cost(folder / "costs", name, stage, 1.25, 2.25, 3.25)
        write_costs_table(folder / "costs", folder / "t.tex")
        written.append([(folder / f"t{suffix}").read_bytes() for suffix in SUFFIXES])
    assert written[0] == written[1]
    assert str(tmp_path).encode() not in b"".join(written[0])


def test_jobs_that_the_experiment_no_longer_has_are_told_and_not_counted(tmp_path):
    folder = tmp_path / "costs"
    write_cost(folder, "train/new", "train", 5.0)
    write_cost(folder, "train/old", "train", 1200.0)
    write_cost(folder, "bench/old/tatoeba", "bench", 34.5)
    table = tmp_path / "table.tex"
    write_costs_table(folder, table, lambda job: "old" not in job)
    assert list(csv_rows(table)) == ["train new", "Total"]
    assert csv_rows(table)["Total"]["Jobs"] == "1"
    assert "Not counted: 2 jobs (1,234.5 seconds)" in table.read_text()
    with pytest.raises(EmsError, match="jobs that the experiment no longer has"):
        write_costs_table(folder, table, lambda job: False)


THERE = """
data/demo-mirror data/fetch/Tatoeba-v2021-08-07-de-en data/fetch/NTREX-v1-en-ja
data/fetch-evalset/tatoeba-deu text/evalkeys text/clean/NTREX-v1-de-en text/sample/shared
text/vocabulary/shared text/shards/shared/NTREX-v1-de-en train/a bench/ngram/tatoeba summary/other
"""
GONE = """
data/fetch/Tatoeba-v2021-08-07-en-fr data/fetch/Tatoeba-v1-de-en
data/fetch-evalset/flores200-deu_Latn text/vocabulary/gone text/shards/shared/NTREX-v1-en-fr
text/shards/gone/NTREX-v1-de-en train/c bench/a/ntrex bench/c/tatoeba
"""


def test_an_experiment_has_the_jobs_of_its_corpora_systems_and_benchmarks(tmp_path):
    real = edited(REAL, "benchmarks", ["tatoeba"])
    experiment = Settings(tmp_path, real).load(real)
    for jobs, there in ((THERE, True), (GONE, False)):
        for job in jobs.split():
            assert has_job(experiment, tuple(job.split("/"))) == there, job


def test_an_experiment_has_the_jobs_of_its_documents(tmp_path):
    of = {"kind": "documents", "languages": ["de"]}
    own = {"name": "Own", "version": "v1", "source": "x"} | of
    wikipedia = {"name": "Wikipedia", "version": "20260101"} | of
    value = REAL | {"corpora": [own, wikipedia, *REAL["corpora"]]}
    experiment = Settings(tmp_path, value).load(value)
    there = "data/fetch/Own-v1-de-text data/fetch/Own-v1-de-text.gz text/clean/Own-v1-de"
    there += " data/fetch/Wikipedia-20260101-de-dump data/wikipedia/20260101-de"
    gone = "data/fetch/Own-v1-en-text text/clean/Own-v1-en data/wikipedia/20250101-de"
    for jobs, known in ((there, True), (gone, False)):
        for job in jobs.split():
            assert has_job(experiment, tuple(job.split("/"))) == known, job


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage": None}, "under `stage`"),
        ({"seconds": None}, "at least 0 under `seconds`, found nothing"),
        ({"cpu_seconds": "1"}, "under `cpu_seconds`"),
        ({"cpu_seconds": True}, "under `cpu_seconds`"),
        ({"max_rss_mb": -1}, "under `max_rss_mb`"),
        ({"seconds": float("nan")}, "not valid JSON"),
        ({"stage": "train"}, "the costs of train in a file train/<system>"),
    ],
)
def test_no_costs_and_malformed_ones_are_an_error_that_names_the_file(tmp_path, changes, message):
    with pytest.raises(EmsError, match=f"{tmp_path / 'costs'}.*no costs|no costs.*{tmp_path}"):
        cost_rows(tmp_path)
    path = write_cost(tmp_path / "costs", "clean", "clean", **changes)
    with pytest.raises(EmsError, match=message) as error:
        cost_rows(tmp_path)
    assert str(path) in str(error.value)
