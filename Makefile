# Two commands set everything up: `make all` runs the experiment that config.yaml names (the embedded demo,
# offline), `make test` runs the tests. Neither needs root or a system package beyond python, git and make.
SHELL := bash
PATH := $(CURDIR)/.venv/bin:$(PATH)
export PATH
# Images of containers often set it; each of hundreds of jobs would then compile the source of EMS again.
unexport PYTHONDONTWRITEBYTECODE
# Python 3.11 or 3.12 with venv; the first that answers. Say PYTHON=... for another one.
FITS = -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))'
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do $$p $(FITS) 2>/dev/null && echo $$p && break; done)

.PHONY: all test quick golden fuzz gpu house setup interop remotes release report docs demo-page pages lint words pull lock clean

all: setup
	ems run

# Three at a time, also on two cores: many wait for Slurm, servers or sleeps. A file stays together, so that a run which
# its tests share is made once.
test: setup
	python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# Before a commit: the tests that take seconds, and one tiny experiment from end to end.
quick: setup
	python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow"

# Write tests/golden/ again, from the tests that compare with it; review the diff.
golden: setup
	EMS_GOLDEN=1 python -m pytest -q $$(grep -l "golden" tests/test_*.py)

# Damaged files, odd command lines and settings, new ones each time; SEED=n for the same ones again.
fuzz: MINUTES ?= 60
fuzz: setup
	PYTHONPATH=tests python -m fuzz.campaign --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Checks and measures EMS on a GPU (docs/cluster.md). DEVICE=cpu is the same in small; PARTS=laws,throughput and SIZES=ems are
# some of it.
DEVICE ?= cuda
gpu: MINUTES ?= 8
gpu: setup
	python perf/gpu.py --device $(DEVICE) --minutes $(MINUTES) $(if $(PARTS),--parts $(PARTS)) $(if $(SIZES),--sizes $(SIZES))

# -e: the sources are used in place; --no-deps: the lock has said it all. With CPU=1 uv first gets PyTorch's build
# for CPUs from PyTorch's own index, whose address it knows; PyPI has only the CUDA build for Linux. The pip that comes
# with Python 3.11 takes twice as long as today's; two thirds of what it would compile are never imported.
setup: .venv/installed
.venv/installed: .venv/pip pyproject.toml
	$(if $(CPU),python -m pip install --quiet uv && \
	  uv pip install --python .venv --no-deps --torch-backend cpu "$$(grep '^torch==' envs/requirements.lock)")
	python -m pip install --quiet --no-compile -r envs/requirements.lock
	python -m pip install -qq --no-deps -e .
	touch $@
.venv/pip: envs/requirements.lock
	@test -n "$(PYTHON)" || { echo "EMS needs Python 3.11 or 3.12 with venv; on Debian: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	python -m pip install --quiet "$$(grep '^pip==' envs/requirements.lock)"
	touch $@

# Tools that use EMS, for the tests of docs/export.md, and an S3 server for the tests of remotes, each in an environment
# of its own. OpusFilter loads EMS, so it sees the packages of .venv.
interop: .interop/opuscleaner/installed .interop/opusfilter/installed .interop/moto/installed
.interop/opusfilter/installed: .venv/installed
.interop/%/installed: envs/%.txt .venv/pip
	python -m venv --without-pip $(@D)
	if [ $* = opusfilter ]; then \
	  cd $(@D)/lib/python*/site-packages && \
	  python -c 'import sysconfig as s; print("import site; site.addsitedir(%r)" % s.get_path("purelib"))' > ems.pth; \
	fi
	python -m pip --python $(@D)/bin/python install --quiet --no-compile -r $< # most of it is never imported
	touch $@

# DVC with remotes over SSH and S3, as .interop/remotes/bin/dvc: docs/running.md.
remotes: .interop/remotes/installed

# The encoder that comes with EMS (models/ems-62), made again from its text; compares the scores. About an hour.
release: setup
	python models/release.py

report: setup
	snakemake --report results/workflow.html

# The documentation as a site, opened at site/index.html; links that lead nowhere are errors. The gallery shows
# results/demo, if it is finished.
docs: setup
	python docs/gallery.py
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict

# The picture of the page of `ems serve` in README, taken in a browser; MODEL=<folder> for another model.
demo-page: setup
	python docs/demo_page.py $(if $(MODEL),--model $(MODEL))

# The pages and schemas that are made from the settings and from the flags of commands.
pages: setup
	python docs/settings.py
	python docs/commands.py

lint: setup
	ruff check .
	ruff format --check .
	lint-imports
	snakefmt --check .
	snakemake --lint

# Misspelt words, and phrases that must be read twice.
words: setup
	codespell $$(git ls-files '*.md' 'ems/*.py' 'docs/*.py' 'perf/*.py' '*.yaml' '*.smk' Snakefile Makefile)
	python docs/words.py

# The sizes of the house, and how they changed since the last tag, or since SINCE=<commit>.
house:
	@python3 perf/house.py $(if $(SINCE),--since $(SINCE))

# DVC gives files new times; --touch tells Snakemake that all of them are up to date.
pull: setup
	$(firstword $(wildcard .interop/remotes/bin/dvc) dvc) pull
	snakemake --touch all

# Remake the lock. torch's own metadata brings the CUDA packages where they apply, so they stay out of it.
lock: setup
	python -m pip install --quiet uv
	uv lock --quiet
	{ sed -n '/^#/p;/^[^#]/q' envs/requirements.lock; uv export --quiet --frozen --no-hashes --no-emit-project \
	  --no-annotate --no-header --all-extras --no-extra bench --no-extra mteb $$(sed -nE 's/^name = "((nvidia|cuda|triton).*)"/--no-emit-package \1/p' uv.lock); \
	} > envs/requirements.lock.new
	mv envs/requirements.lock.new envs/requirements.lock
	rm uv.lock

clean:
	rm -rf results data .snakemake
