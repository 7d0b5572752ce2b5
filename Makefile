# Every task of a developer is a target here. They need a C compiler, make and Python 3.11 or newer with venv. A target that depends on $(VENV)/NAME installs the
# packages of tools/requirements-NAME.txt into build/venv.

PYTHON ?= python3
PREFIX ?= /usr/local
RUNS ?= 1000000
LEVELS ?= portable v2 v3 v4
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
VENV := build/venv
TESTING := build/venv/build build/venv/test
BIN := $(abspath $(VENV))/bin
export PATH := $(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE := 1
# With ccache, object files compiled in one checkout are used in another.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-skipped test-dev test-tsan test-levels test-builtin test-aarch64 test-package-asan test-package-debug test-package-tsan mutate wheel dev release tsan lint format fuzz accuracy bench coverage docs show where golden install clean

help: ## what each target does
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Building needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/%: tools/requirements-%.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Configures a preset that has not been configured.
build/%/build.ninja: $(VENV)/build CMakePresets.json
	$(BIN)/cmake --preset $* > build/configure-$*.log || { cat build/configure-$*.log; exit 1; }

demo: build/release/build.ninja ## build, then train a classifier on handwritten digits, in C and in Python
	$(BIN)/cmake --build --preset release --target digits -j $(JOBS)
	build/release/examples/c/digits examples/data/digits.csv
	@if grep -q '^build gradus_python: ' build/release/build.ninja; then \
	  $(BIN)/cmake --build --preset release --target gradus_python -j $(JOBS) && \
	  PYTHONPATH=build/release/python $(BIN)/python examples/python/digits.py; \
	else \
	  echo "The same in Python is left out, because Python's headers are missing: as root, apt-get install python3-dev"; \
	  rm build/release/build.ninja; \
	fi # so that the next make configures again and looks for the headers

release: build/release/build.ninja ## build the optimised library and examples
	$(BIN)/cmake --build --preset release -j $(JOBS)

dev: build/dev/build.ninja ## build with AddressSanitizer, UBSan and warnings as errors
	$(BIN)/cmake --build --preset dev -j $(JOBS)

tsan: build/tsan/build.ninja ## build with ThreadSanitizer
	$(BIN)/cmake --build --preset tsan -j $(JOBS)

test: $(TESTING) ## build and run every test; ends with how many passed, failed and were skipped
	@$(BIN)/python tools/test.py --all

test-skipped: $(TESTING) ## the tests that `make test` skipped, after what they need has been installed
	@$(BIN)/python tools/test.py --skipped

test-all: ## every check, within an hour: `make test`, each level, without OpenBLAS, all sanitizers over all tests, the wrong edits
	sh tools/install-packages.sh
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tools/requirements-oracle.txt
	$(MAKE) test lint test-levels test-builtin test-aarch64 test-dev test-tsan test-package-asan test-package-debug test-package-tsan mutate
	@$(BIN)/python tools/test.py --sum

test-dev: $(TESTING) ## the C tests under AddressSanitizer and UBSan
	@$(BIN)/python tools/test.py --preset dev

test-tsan: $(TESTING) ## the threaded C tests under ThreadSanitizer
	@$(BIN)/python tools/test.py --preset tsan --label threads

test-levels: $(TESTING) ## the C tests once per instruction-set level this machine has
	@for level in $(LEVELS); do GRADUS_ISA=$$level $(BIN)/python tools/test.py --preset release --label kernels || exit 1; done

test-builtin: $(TESTING) ## the C tests of a build without OpenBLAS
	@$(BIN)/python tools/test.py --preset builtin --label products

test-aarch64: $(TESTING) ## the C tests of a build for arm64, under QEMU; needs the packages of tools/install-packages.sh
	@$(BIN)/python tools/test.py --preset aarch64 --label emulated

test-package-asan: $(TESTING) ## the tests of the Python package under AddressSanitizer and UBSan
	@$(BIN)/python tools/test.py --preset dev --package --select "$(SELECT)"

test-package-debug: $(TESTING) ## the tests of the Python package with the interpreter's debugging allocator (SELECT="index or fuzz": some of them)
	@PYTHONMALLOC=debug $(BIN)/python tools/test.py --preset release --package --select "$(SELECT)"

test-package-tsan: $(TESTING) ## the tests of the Python package that use threads, under ThreadSanitizer
	@$(BIN)/python tools/test.py --preset tsan --package --label threads

mutate: $(TESTING) ## makes each wrong edit of test/mutants in a copy of the tree and fails if the tests pass (ONLY=autograd: some)
	@JOBS=$(JOBS) $(BIN)/python tools/mutate.py --only "$(ONLY)"

wheel: $(TESTING) ## a wheel in build/wheel
	$(BIN)/python -m pip wheel . --no-deps --no-build-isolation --disable-pip-version-check -w build/wheel

lint: release $(VENV)/lint ## floors, notes, exported symbols, formatting, generated code
	$(BIN)/python tools/lint.py

format: $(VENV)/lint ## includes of operators, and clang-format over the tree
	$(BIN)/python tools/includes.py
	$(BIN)/clang-format -i $$(git ls-files '*.c' '*.h' ':!test/golden')

fuzz: build/fuzz/build.ninja ## every fuzz target under libFuzzer, RUNS executions of each (Clang)
	$(BIN)/cmake --build --preset fuzz --target fuzz_targets -j $(JOBS)
	for target in build/fuzz/test/fuzz_*; do \
	  $$target -runs=$(RUNS) -max_len=256 -timeout=60 -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/ || exit 1; \
	done

accuracy: build/release/build.ninja ## compares float32 results of unary operators with float64 for all 2^32 floats, in half an hour (ONLY="exp log", GRADUS_ISA=v3)
	$(BIN)/cmake --build --preset release --target test_accuracy -j $(JOBS)
	build/release/test/test_accuracy --every 1 $(ONLY)

bench: build/release/build.ninja ## times as ratios to those of PyTorch (pip install torch first) and OpenBLAS
	$(BIN)/cmake --build --preset release -j $(JOBS)
	$(PYTHON) bench/bench.py
	for part in arrays linalg spectral fft convolution pooling normalization resample attention rnn optim programs; do $(PYTHON) bench/$$part.py || exit 1; done

coverage: $(TESTING) $(VENV)/lint ## line and branch coverage of the C tests; fails below 95 % of lines or 90 % of branches
	[ ! -d build/coverage ] || find build/coverage -name '*.gcda' -delete
	$(BIN)/python tools/test.py --preset coverage
	$(BIN)/gcovr --root . --filter 'src/(base|core|dispatch|autograd)/' --txt-summary --fail-under-line 95 --fail-under-branch 90 build/coverage

docs: release $(VENV)/docs ## the documentation as web pages that need no server and no network: build/docs/html/index.html
	$(BIN)/python docs/build.py

show: ## everything generated for one operator: make show OP=tanh
	@$(PYTHON) -m codegen --show $(OP)

where: ## path:line of every part of an operator: make where OP=tanh
	@$(PYTHON) tools/where.py $(OP)

golden: ## accept the generator's present output as its snapshots
	$(PYTHON) -m codegen.snapshots --write

install: build/release/build.ninja ## install library, headers, pkg-config file and CMake package to PREFIX
	$(BIN)/cmake --build --preset release --target library -j $(JOBS)
	$(BIN)/cmake --install build/release --prefix $(PREFIX)

clean: ## remove everything built
	rm -rf build
