# The front door. Needs a C compiler, make and Python 3.11 or newer; everything else goes into build/venv.

PYTHON ?= python3
PREFIX ?= /usr/local
RUNS ?= 1000000
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
VENV := build/venv
BIN := $(abspath $(VENV))/bin
export PATH := $(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE := 1
# Objects of one checkout serve another, where ccache is installed.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-dev test-tsan test-levels test-builtin test-package-asan test-package-debug test-package-tsan wheel dev release tsan lint format fuzz bench coverage show golden install clean

help: ## what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/ready: tools/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r tools/requirements.txt
	touch $@

# One rule for every preset: configure when there is nothing yet, then build.
build/%/build.ninja: $(VENV)/ready CMakePresets.json
	$(BIN)/cmake --preset $* > build/configure-$*.log || { cat build/configure-$*.log; exit 1; }

demo: build/release/build.ninja ## build, then train a classifier on handwritten digits, in C and in Python
	$(BIN)/cmake --build --preset release --target digits -j $(JOBS)
	build/release/examples/c/digits examples/data/digits.csv
	@if [ -d build/release/python ]; then \
	  $(BIN)/cmake --build --preset release --target gradus_python -j $(JOBS) && \
	  PYTHONPATH=build/release/python $(BIN)/python examples/python/digits.py; \
	else echo "Python's headers are missing (python3-dev): the same in Python is left out"; fi

release: build/release/build.ninja ## build the optimised library and examples
	$(BIN)/cmake --build --preset release -j $(JOBS)

dev: build/dev/build.ninja ## build with AddressSanitizer, UBSan and warnings as errors
	$(BIN)/cmake --build --preset dev -j $(JOBS)

tsan: build/tsan/build.ninja ## build with ThreadSanitizer
	$(BIN)/cmake --build --preset tsan -j $(JOBS)

test: $(VENV)/ready ## build and run every test; ends with how many passed and failed
	@$(BIN)/python tools/test.py --preset release --all

test-dev: $(VENV)/ready ## the C tests under AddressSanitizer and UBSan
	@$(BIN)/python tools/test.py --preset dev

test-tsan: $(VENV)/ready ## the threaded C tests under ThreadSanitizer
	@$(BIN)/python tools/test.py --preset tsan --label threads

test-levels: $(VENV)/ready ## the C tests once per instruction-set level this machine has
	@for level in portable v2 v3 v4; do GRADUS_ISA=$$level $(BIN)/python tools/test.py --preset release --label kernels || exit 1; done

test-builtin: $(VENV)/ready ## the C tests of a build without OpenBLAS
	@$(BIN)/python tools/test.py --preset builtin --label products

test-package-asan: $(VENV)/ready ## the tests of the Python package under AddressSanitizer and UBSan
	@$(BIN)/python tools/test.py --preset dev --package --select "$(SELECT)"

test-package-debug: $(VENV)/ready ## the same with the interpreter's debugging allocator (SELECT="index or fuzz": some of them)
	@PYTHONMALLOC=debug $(BIN)/python tools/test.py --preset release --package --select "$(SELECT)"

test-package-tsan: $(VENV)/ready ## those with threads under ThreadSanitizer
	@$(BIN)/python tools/test.py --preset tsan --package --label threads

wheel: $(VENV)/ready ## a wheel in build/wheel
	$(BIN)/pip wheel . --no-deps --no-build-isolation --disable-pip-version-check -w build/wheel

lint: release ## floors, notes, exported symbols, formatting, generated code
	$(BIN)/python tools/lint.py

format: $(VENV)/ready ## clang-format over the tree
	$(BIN)/clang-format -i $$(git ls-files '*.c' '*.h' ':!test/golden')

fuzz: build/fuzz/build.ninja ## every fuzz target under libFuzzer, RUNS executions of each (Clang)
	$(BIN)/cmake --build --preset fuzz --target fuzz_targets -j $(JOBS)
	for target in build/fuzz/test/fuzz_*; do \
	  $$target -runs=$(RUNS) -max_len=256 -timeout=60 -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/ || exit 1; \
	done

bench: build/release/build.ninja ## times beside PyTorch's (pip install torch first) and OpenBLAS's, as ratios
	$(BIN)/cmake --build --preset release -j $(JOBS)
	$(PYTHON) bench/bench.py

coverage: build/coverage/build.ninja ## line and branch coverage of the C tests; fails below 95 % of lines or 90 % of branches
	find build/coverage -name '*.gcda' -delete
	$(BIN)/python tools/test.py --preset coverage
	$(BIN)/gcovr --root . --filter 'src/(base|core|dispatch|autograd)/' --txt-summary --fail-under-line 95 --fail-under-branch 90 build/coverage

show: ## everything generated for one operator: make show OP=tanh
	@$(PYTHON) -m codegen --show $(OP)

golden: ## accept what codegen writes now as its snapshots
	$(PYTHON) -m codegen.snapshots --write

install: release ## install library, headers, pkg-config file and CMake package to PREFIX
	$(BIN)/cmake --install build/release --prefix $(PREFIX)

clean: ## remove everything built
	rm -rf build
