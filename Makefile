# Everything starts here: `make demo` and `make test` need Python 3.11 and pip, nothing else.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
HOURS ?= 0
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install demo test check docs format benchmark chaos clean

help:
	@echo "make demo       compare GCN with GCN+FOG on two generated tasks, write demo/report/index.html"
	@echo "make test       ruff, mypy and the whole default test suite"
	@echo "make docs       the documentation, in site/"
	@echo "make benchmark  ratios of time and memory (about ten minutes)"
	@echo "make chaos      kills, full disks, broken and hostile files (some minutes; HOURS=2 for more)"
	@echo "make format     let ruff format the code"
	@echo "make clean      remove .venv and everything that was built"

$(VENV)/for-demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[train]"
	@touch $@

$(VENV)/installed: $(VENV)/for-demo
	$(PIP) -e ".[train,chem,cluster,docs,dev]"
	@touch $@

install: $(VENV)/installed

demo: $(VENV)/for-demo
	$(BIN)/python examples/demo.py

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A process a core, each with one thread: threads of several processes would wait for each other.
test: check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: install
	$(BIN)/python benchmarks/layers.py
	$(BIN)/python benchmarks/loader.py
	$(BIN)/python benchmarks/few_shot.py

chaos: install
	rm -rf chaos
	$(BIN)/python tests/chaos/campaign.py --hours $(HOURS)

clean:
	rm -rf $(VENV) build dist demo site chaos *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
