# `make up` runs Lamina on this machine, `make test` runs its tests; both set themselves up first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: up test test-long test-servers check install format schema docs hashes clean

up: install ## Start everything, load the sample conversation, search it, and serve.
	$(BIN)/lamina up --config configs/local.yaml --sample

# Each worker has servers of its own, and a gigabyte of the model; tests that need Ray share one worker.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS)

test: install ## Run all tests; real stores, the real model and a real Ray included.
	$(PYTEST)

test-long: install ## Run all tests with five times the generated examples, and every kill and turn of a crash.
	LAMINA_TEST_LONG=1 $(PYTEST)

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

check: install ## What every commit must pass beside the tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

install: $(STAMP) ## Make .venv with pinned versions.

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Lamina needs Python 3.11 to 3.13; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable '.[all]'
	touch $(STAMP)

format: install ## Format and sort.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: install ## Write schema.sql anew from the migrations.
	$(BIN)/python -m tests.support.schema

docs: install ## Write docs/configuration.md anew from the settings, docs/access.md from the routes.
	$(BIN)/python -m tests.support.configuration
	$(BIN)/python -m tests.support.access

# What the image installs (Containerfile): these extras, and what builds Lamina itself.
IMAGE_EXTRAS := model documents serve archive neo4j qdrant meilisearch llm
TORCH ?=

hashes: install ## Write requirements.txt anew: constraints.txt with the hash of every file, for the image.
	$(BIN)/python -m pip install --quiet uv
	printf 'hatchling\neditables\n' | $(BIN)/uv pip compile pyproject.toml - --quiet --universal --python-version 3.11 \
	  --constraint constraints.txt --only-binary :all: --generate-hashes --no-annotate $(if $(TORCH),--torch-backend $(TORCH)) \
	  $(IMAGE_EXTRAS:%=--extra %) --custom-compile-command 'make hashes' --output-file requirements.txt

clean: ## Remove what make made; the data in .lamina stay.
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
