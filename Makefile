# Every target makes what it needs. `make help` lists them.
#
# PYTHON   which interpreter .venv is made from (3.11 or newer)
# CUDA     13, 12 or empty: which CUDA packages to install; found from the driver
# PORT     where `make serve` listens
# ARCH     what `check` and `compile-cuda` compile for: ci (all for sm_90, a part for each other), all, sm_90, …
# NAME     folder below docs/reports that `make reports` writes to
# WORKERS  processes that `make test` spreads the tests over; each has servers of its own
# ROUNDS   how often `make fuzz` draws other examples
# SEED     where it begins; the seed that a failure names draws the same examples again
# BIN      set it to use an environment of your own instead of .venv, e.g. BIN="$$(dirname $$(which python3))/"

PYTHON ?= $(firstword $(foreach p,python3.12 python3.11 python3.13 python3.14 python3,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
CUDA   ?= $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\(1[23]\).*/\1/p')
LOCK   := requirements$(if $(CUDA),-cuda$(CUDA)).lock
PORT   ?= 8080
NAME   ?= here
ARCH   ?= ci
# Twice the cores of a small machine: many tests wait for processes, and the waits of one are the work of another.
WORKERS ?= 4
ROUNDS  ?= 1
# Bytecode is kept, even where an image says otherwise: else each of a hundred processes would make that of all modules.
export PYTHONDONTWRITEBYTECODE :=
ifndef SEED
SEED := $(shell od -An -N3 -tu4 /dev/urandom | tr -d ' ')
endif

ifndef BIN
BIN := .venv/bin/
RUN := .venv/.run-$(LOCK)
DEV := .venv/.dev
endif

.PHONY: help demo serve test fuzz check check-types check-sources format lock migrate compile-cuda gpu-test bench reports docs try-images \
	pin-images release-images audit licences clean
.DEFAULT_GOAL := help

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# --- environments: a stamp a lock file, so that a changed lock is installed and an unchanged one costs nothing

.venv/bin/python:
	$(if $(PYTHON),,$(error Warpfold needs Python 3.11 or newer on PATH; name one with PYTHON=/path/to/python3))
	$(PYTHON) -m venv .venv

# Bytecode is made by all cores afterwards: pip would take half a minute of one. Packages hold some files of older Pythons,
# which do not compile.
define install
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile -r $(1)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	-.venv/bin/python -m compileall -qq -j 0 .venv/lib
	touch $@
endef

.venv/.run-%: % pyproject.toml | .venv/bin/python
	$(call install,$*)

.venv/.dev: requirements-dev.lock $(LOCK) pyproject.toml | .venv/bin/python
	$(call install,requirements-dev.lock $(if $(filter 13,$(CUDA)),-r $(LOCK)))

# --- use

demo: $(RUN) ## Start everything on embedded servers, run real jobs, check every answer
	$(BIN)python -m warpfold.client.demo

serve: $(RUN) ## The service on this machine, at http://127.0.0.1:8080, or another PORT
	$(BIN)python -m warpfold serve --port $(PORT)

migrate: $(RUN) ## Bring the schema of WARPFOLD_DATABASE_URL up to date
	$(BIN)python -m warpfold migrate

# --- work on it

test: $(DEV) ## All tests but those that need a GPU; ends with the slowest
	$(BIN)python -m pytest -n $(WORKERS) --dist loadfile --durations 20

fuzz: $(DEV) ## The tests that draw examples, with other examples each time; ROUNDS=10 for more, SEED=… for the same again
	@for seed in $$(seq $(SEED) $$(($(SEED) + $(ROUNDS) - 1))); do \
		echo "make fuzz SEED=$$seed"; \
		$(BIN)python -m pytest -n $(WORKERS) --dist loadfile -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $$seed || exit 1; \
	done

check: $(DEV) ## Style, types, import rules, CUDA sources for every architecture
	@$(MAKE) --no-print-directory --jobs=2 check-types check-sources

# mypy takes most of a minute of one core, so the other cores do the rest meanwhile.
check-types: $(DEV)
	$(BIN)python -m mypy

check-sources: $(DEV)
	$(BIN)python -m ruff check .
	$(BIN)python -m ruff format --check .
	$(BIN)lint-imports
	$(BIN)python -m warpfold.kernels.cuda --arch $(ARCH) --quiet

format: $(DEV) ## Rewrite the sources in the house style
	$(BIN)python -m ruff check --fix .
	$(BIN)python -m ruff format .

compile-cuda: $(DEV) ## Compile the CUDA sources without a GPU, and say what each kernel takes; ARCH=all for all of them
	$(BIN)python -m warpfold.kernels.cuda --arch $(ARCH)

gpu-test: $(DEV) ## The tests that need a GPU
	$(BIN)python -m pytest tests/gpu

bench: $(DEV) ## The tables of the docs, measured on this machine
	$(BIN)python -m benchmarks

reports: $(DEV) ## Every preset on this machine, published figures beside measured ones, into docs/reports/NAME
	$(BIN)python -m benchmarks.presets --to docs/reports/$(NAME)

docs: $(DEV) ## The documentation's site, into build/site; needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)python -m mkdocs build --strict

# --- ship it

try-images: $(DEV) ## Both images built and everything in them started, without Docker: as root, with buildah and debootstrap
	$(BIN)python -m tests.support.images

pin-images: ## The digests of the images of others, from their registries, into deploy/images.lock; needs skopeo or crane
	deploy/pin-images.sh

release-images: ## Both images for a release, WARPFOLD_VERSION; refused while any image of others has no digest
	deploy/check-images.sh
	docker compose --env-file deploy/images.lock build --pull

audit: .venv-audit/.installed ## An SBOM (CycloneDX) of each lock into build/sbom, and each lock held to the published advisories
	.venv-audit/bin/python deploy/audit.py

.venv-audit/.installed: requirements-audit.lock
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-audit.lock
	touch $@

licences: $(DEV) ## docs/operations/licences.md from the packages of requirements-cuda13.lock; downloads a gigabyte
	$(PYTHON) -m venv --clear build/licences
	build/licences/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-cuda13.lock
	$(BIN)python deploy/licences.py --path build/licences/lib/python3*/site-packages

COMPILE = $(BIN)uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header pyproject.toml

# The generators of clients that a test tries (tests/docs/test_generated_clients.py installs them by these rules). They want
# other versions than ours.
GENERATORS := tests/support/generators
.venv-generators/.python: $(GENERATORS)/requirements.lock | $(DEV)
	$(PYTHON) -m venv --without-pip .venv-generators
	$(BIN)python -m pip --python .venv-generators/bin/python install --quiet --disable-pip-version-check --retries 1 \
		--no-compile --require-hashes -r $<
	touch $@

.venv-generators/.typescript: $(GENERATORS)/package-lock.json $(GENERATORS)/package.json
	mkdir -p .venv-generators
	cp $^ .venv-generators
	npm ci --prefix .venv-generators --ignore-scripts --no-audit --no-fund --fetch-retries 1 --loglevel error
	touch $@

lock: $(DEV) ## Resolve the pinned dependencies anew
	$(COMPILE) --extra dev --output-file requirements-dev.lock
	$(COMPILE) --extra build --extra embedded --extra tracing --extra oidc --extra tables --extra arrays --extra places --extra cluster -c requirements-dev.lock --output-file requirements.lock
	$(COMPILE) --extra build --extra embedded --extra tracing --extra oidc --extra tables --extra arrays --extra places --extra cluster --extra cuda13 -c requirements-dev.lock --output-file requirements-cuda13.lock
	$(COMPILE) --extra build --extra embedded --extra tracing --extra oidc --extra tables --extra arrays --extra places --extra cluster --extra cuda12 --output-file requirements-cuda12.lock
	$(filter-out pyproject.toml,$(COMPILE)) --group audit --output-file requirements-audit.lock
	$(filter-out pyproject.toml,$(COMPILE)) --group generators --output-file $(GENERATORS)/requirements.lock

clean: ## Forget the environment and every cache
	rm -rf .venv .venv-audit .venv-generators .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
