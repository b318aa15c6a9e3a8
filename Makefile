# The front door: each target is a preset of CMakePresets.json or a script; docs/hacking.md walks through them.
# Packages that are missing are installed first (packages/debian.txt), as root or with sudo.
JOBS ?= $(shell nproc)
SECONDS ?= 60
BENCH ?= --synthetic clustered --rows 250000
FOLDERS ?= (src|tests)/
SOURCES = $(shell find include kernels src tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null)
SCRIPTS = .ci/run examples/demo.sh examples/python/make_stubs.sh packages/install tests/fuzz/run.sh

.DEFAULT_GOAL := help
.PHONY: help build demo test bench asan tsan fuzz mutants format format-check tidy clean

help:           ## print this list
	@sed -n 's/^\([a-z -]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

build:          ## build/bin/simile, optimised
	@packages/install build
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile

demo:           ## build, serve the films, ask, print the answers, stop
	@packages/install build test
	@$(MAKE) --no-print-directory build
	examples/demo.sh

test:           ## build everything, run every test
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)
	ctest --test-dir build --parallel $(JOBS) --output-on-failure --no-tests=error --output-junit tests.xml

bench:          ## the engines against the memory's bandwidth; BENCH="--vectors F.npy --queries Q.npy" for data of yours
	@packages/install build
	cmake --preset bench
	cmake --build --preset bench --parallel $(JOBS) --target scan_bench engine_bench kernel_peak
	build/bin/engine_bench --backend scan --backend auto --quick --ceilings $(BENCH)

asan tsan:      ## unit tests under AddressSanitizer and UBSan, or ThreadSanitizer
	@packages/install build test
	cmake --preset $@
	cmake --build --preset $@ --parallel $(JOBS) --target unit_tests
	ctest --test-dir build/$@ --parallel $(JOBS) --label-regex unit --output-on-failure --no-tests=error --output-junit tests.xml

fuzz:           ## every loader against its corpus and mutations of it, SECONDS=60 each
	@packages/install build check
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS) --target fuzz_targets
	tests/fuzz/run.sh $(SECONDS)

mutants:        ## the CUDA kernels without a barrier or a guard, one at a time: tests must notice
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target gpu_test gpu_conformance_test
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS) --target gpu_test gpu_conformance_test
	python3 -B tests/backend/cuda/mutate.py --build build --sanitized build/asan --jobs $(JOBS)

format:         ## lay out the sources
	@packages/install check
	clang-format -i $(SOURCES)

format-check:   ## fail where make format would change something
	@packages/install check
	clang-format --dry-run -Werror $(SOURCES)

tidy:           ## lint, layering and scripts; FOLDERS=src/data for a part
	@packages/install build check
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile_services
	python3 -B tests/tidy/check_layers.py
	shellcheck $(SCRIPTS)
	run-clang-tidy -quiet -p build -j $(JOBS) '^$(CURDIR)/$(FOLDERS)'

clean:          ## forget everything built
	rm -rf build
