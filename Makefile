# Every command a newcomer needs; `make help` lists them. Needs Python 3.10 or newer, and Go 1.25 or newer for the
# collector of `make test` unless `otelcol-contrib` is on PATH.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test components jaeger lint bench clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

install: $(STAMP) ## make .venv with the package, litellm and the development tools

# Not `$(VENV)` as a target: a folder's time changes with its contents. The stamp is written last, so an interrupted
# install is repeated. `--group` needs pip 25.1; the pip a fresh venv starts with may be older.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[litellm]' --group dev
	@touch $(STAMP)

demo: install ## score simulated agent sessions, live (ARGS="--otlp URL" sends them to a collector)
	$(BIN)/otel-evals demo $(ARGS)

test: install components ## run all tests (ARGS="-k name" for some of them)
	$(BIN)/pytest -n 2 --dist loadgroup -rs $(ARGS)

components: ## find or build the collector and Prometheus that the tests start
	@for get in collector-config/get-collector.sh tests/components/get-prometheus.sh; do \
	  if path=$$($$get); then echo "$$get: $$path"; \
	  elif [ "$$CI" = true ]; then exit 1; \
	  else echo "$$get: none, the tests that need it will be skipped"; fi; \
	done

jaeger: ## build the Jaeger that the tests of traces in a store start (4 minutes, once)
	@tests/components/get-jaeger.sh

lint: install ## ruff, mypy --strict and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install ## measure what it costs and holds, side by side (JSON, last line of each)
	@for name in hot_path import_cost assembly judge_cost judge_throughput tau_bench sampling; do \
	  echo "== $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; \
	done

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis collector-output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
