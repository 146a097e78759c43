# Needs Python 3.11 or newer and make; everything else goes into .venv.
#
#   make demo      judge the bundled examples with all four protocols and the embedded judge: no key, no network
#   make test      linters, type checker and tests
#   make integrations  the evaluators for LangChain, LlamaIndex, DSPy and Haystack, and Ray, with the real packages
#   make chaos     workers killed and the database crashed, for a long time
#   make fuzz      the generated tests with many more cases, other ones each time
#   make bench     how fast: Steelyard, a bare loop and ten peers, each in its own environment (bench/README.md)
#   make examples  record examples/replies.jsonl anew, after the examples, their labels or a protocol changed
#   make lock      choose the newest versions for development anew (packaging/dev.lock)
#   make docs      the documentation site, into site/
#   make coverage  how much of the core its own tests reach; fails below the floor in pyproject.toml
#   make release-check  build sdist and wheel, look into them, install and use them, write the SBOM (RELEASING.md)
#   make clean     remove what the others made

PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$name -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
STEELYARD := $(BIN)/steelyard
DEMO_STORE := .steelyard/demo.db
# What it cannot tell, such as the tone of an answer, the embedded judge leaves open.
SOME_UNJUDGED := 3
# A process per core; one that has nothing left takes tests from another.
PARALLEL := -n auto --dist worksteal
FRAMEWORKS := .venv-integrations
SITE := .venv-docs
RELEASE := .venv-release
LOCK := packaging/dev.lock
TAG ?=
CORE_TESTS := tests/test_protocol_*.py tests/test_rubric_file.py tests/test_rules.py tests/test_scoring.py tests/test_stats*.py \
	tests/test_transcripts_*.py tests/test_vocabulary.py
PIP := python -m pip install --quiet --quiet --disable-pip-version-check
DEMO := --store $(DEMO_STORE) --judge embedded --progress quiet

# Tests start hundreds of interpreters; where bytecode is not kept (as in many containers), each compiles the package anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test integrations chaos fuzz bench examples lock docs coverage release-check clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	@rm -f $(DEMO_STORE)*
	@echo
	@echo "Demo with the embedded judge: it works on this machine alone and needs no key."
	@for protocol in atomic grounded scorecard dialogue; do \
		file=examples/rag.jsonl; [ $$protocol = dialogue ] && file=examples/dialogue.jsonl; \
		echo; echo "\$$ steelyard run $$file -p $$protocol -j embedded"; \
		$(STEELYARD) run $$file -p $$protocol $(DEMO); code=$$?; \
		[ $$code -eq 0 ] || [ $$code -eq $(SOME_UNJUDGED) ] || exit $$code; \
	done
	@echo; echo "\$$ steelyard show 1 car-seat"
	@$(STEELYARD) show 1 car-seat --store $(DEMO_STORE)
	@echo
	@echo "That was the demo, with the embedded judge; a large model sees more (docs/judges.md)."
	@echo "Your own answers: $(STEELYARD) run --help"

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(PARALLEL)

# Without the fixtures of tests/: those need packages that are not there.
integrations: $(FRAMEWORKS)/.installed
	$(FRAMEWORKS)/bin/python -m pytest --confcutdir=tests/integrations tests/integrations

chaos: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m chaos

# What fails is printed with its case; that case goes into the test as an @example before anything is mended.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL) -m hypothesis --hypothesis-profile=fuzz

bench: $(VENV)/.installed-dev
	$(BIN)/python bench/run.py --write docs/benchmarks.md

examples: $(VENV)/.installed
	$(BIN)/python examples/make_replies.py

# Names, versions and hashes for every Python that is supported; no address, so any registry will do.
lock: $(RELEASE)/.installed
	$(RELEASE)/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade --quiet \
		--generate-hashes --no-annotate --no-header --output-file $(LOCK)

# The theme prints advertisements of its successor otherwise.
docs: $(SITE)/.installed
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --quiet
	$(SITE)/bin/python packaging/check_site.py site

coverage: $(VENV)/.installed-dev
	$(BIN)/$(PIP) --group coverage
	$(BIN)/python -m coverage run -m pytest $(CORE_TESTS)
	$(BIN)/python -m coverage report

release-check: $(RELEASE)/.installed
	$(RELEASE)/bin/python packaging/check_release.py $(TAG)

clean:
	rm -rf $(VENV) $(FRAMEWORKS) $(SITE) $(RELEASE) site dist .coverage .steelyard .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: no Python 3.11 or newer with venv was found; install one (on Debian: apt install python3-venv)," >&2; \
		echo "make: or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than Python 3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps are older than pyproject.toml when its dependencies may have changed.
$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/$(PIP) --editable .
	@touch $@

# Dependency groups need pip 25.1.
$(VENV)/.installed-dev: $(BIN)/python pyproject.toml $(LOCK)
	$(BIN)/$(PIP) --require-hashes --requirement $(LOCK)
	$(BIN)/$(PIP) --no-deps --editable .
	@touch $@ $(VENV)/.installed

$(FRAMEWORKS)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/$(PIP) --upgrade "pip>=25.1"
	$(FRAMEWORKS)/bin/$(PIP) --editable . --group integrations
	@touch $@

$(SITE)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m venv $(SITE)
	$(SITE)/bin/$(PIP) --upgrade "pip>=25.1"
	$(SITE)/bin/$(PIP) --editable . --group docs
	@touch $@

$(RELEASE)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m venv $(RELEASE)
	$(RELEASE)/bin/$(PIP) --upgrade "pip>=25.1"
	$(RELEASE)/bin/$(PIP) --group release
	@touch $@
