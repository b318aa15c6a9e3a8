# Each target is a preset of CMakePresets.json or a script; docs/hacking.md walks through them. Missing packages
# (packages/debian.txt) are installed first, as root or with sudo. Variables that the tests read:
#   TEST_ROTATION=N|all           which part of the slow test families runs; 0 when unset, `all` for every part
#   TEST_REQUIRED_ISAS=avx2,avx512vnni fails when one of these instruction sets was not tested
JOBS ?= $(shell nproc)
SECONDS ?= 60
BENCH ?= --synthetic clustered --rows 250000
FOLDERS ?= (src|tests)/
SOURCES = $(shell find include kernels src tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null)
SCRIPTS = .ci/run cmake/cuda12/fetch examples/demo.sh examples/python/make_stubs.sh packages/deb/build packages/deb/postinst packages/deb/postrm packages/deb/prerm packages/install \
          tests/bench/gpu/fake_program.sh tests/fuzz/run.sh

# So that the compiler's cache also serves another clone of the same sources.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= true

.DEFAULT_GOAL := help
.PHONY: help build all demo test gpu-test bench bench-build cuda12 aarch64 asan tsan asan-build tsan-build fuzz fuzz-build faults simulate mutants gpu-dry-run probes image wheel deb package-test python-docs python-versions docker-test monitoring-test reliability-build cycles soak promises format format-check scripts wire-test tidy check clean

help:           ## print this list
	@sed -n 's/^\([a-z0-9 -]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

build:          ## build/bin/simile, optimised, and beside it what it is made of, simile.spdx.json
	@packages/install build
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile sbom

all:            ## build everything, the tests too
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS)

cuda12:         ## build/cuda12/bin/libsimile_cuda12.so, the GPU plug-in for drivers from 525 on, with its test; without nvcc
	@packages/install build cuda12
	cmake/cuda12/fetch build/cuda12/toolkit
	cmake --preset cuda12 $(if $(ARCHITECTURES),-D "SIMILE_CUDA_ARCHITECTURES=$(ARCHITECTURES)")
	cmake --build --preset cuda12 --parallel $(JOBS) --target simile_cuda cuda_plugin_test
	build/cuda12/tests/cuda_plugin_test

# Twice: with every extension that QEMU knows, and on a processor without dot product, which must take the portable kernel.
aarch64:        ## the CPU engine and its tests for ARM, by a cross compiler, run under QEMU; CTEST_FLAGS for a part
	@packages/install build aarch64
	cmake --preset aarch64
	cmake --build --preset aarch64 --parallel $(JOBS)
	ctest --test-dir build/aarch64 --parallel $(JOBS) $(CTEST_FLAGS) --output-on-failure --no-tests=error --output-junit tests.xml
	TEST_REQUIRED_ISAS=neondot,neon,portable qemu-aarch64 build/aarch64/tests/instruction_sets
	TEST_REQUIRED_ISAS=neon,portable QEMU_CPU=cortex-a57 qemu-aarch64 build/aarch64/tests/instruction_sets

demo:           ## build, serve the films, query them, print the answers, stop
	@packages/install build test
	@$(MAKE) --no-print-directory build
	examples/demo.sh

# Ends with a line per instruction set: tested, or why not.
test: all       ## build everything, run the tests; slow families take turns (TEST_ROTATION), `make check` runs all
	@code=0; \
	ctest --test-dir build --parallel $(JOBS) --output-on-failure --no-tests=error --test-output-size-passed 65536 \
	  --output-junit tests.xml || code=1; \
	build/tests/instruction_sets >build/instruction_sets.txt || code=1; \
	cat build/instruction_sets.txt; \
	! ls /dev/nvidia[0-9]* >/dev/null 2>&1 || echo "This machine has an NVIDIA card: make gpu-test runs the GPU engine on it."; \
	exit $$code

# build/gpu-test has the figures, and the output of each step. From a pack, without a build: tests/bench/gpu/pack.py.
gpu-test:       ## on a machine with a card: build the plug-in, every strategy on the card against the oracle, memcheck; needs nvcc
	@ls /dev/nvidia[0-9]* >/dev/null 2>&1 || nvidia-smi -L >/dev/null 2>&1 || \
	  { echo "error: this machine has no NVIDIA card that can be seen; make gpu-dry-run needs none" >&2; exit 2; }
	@packages/install build test
	cmake --preset bench -D SIMILE_CUDA=ON -D SIMILE_CUDA_CARDS=here
	cmake --build --preset bench --parallel $(JOBS) --target gpu_bench_all simile
	python3 -B tests/bench/gpu/run.py --list truth --out build/gpu-test

bench-build:    ## every bench, of the GPU too where nvcc is
	@packages/install build test
	cmake --preset bench -D SIMILE_CUDA_CARDS=here
	cmake --build --preset bench --parallel $(JOBS) --target benches

bench:          ## the engines against memory bandwidth; BENCH="--vectors F.npy --queries Q.npy" for your own data
	@packages/install build
	cmake --preset bench
	cmake --build --preset bench --parallel $(JOBS) --target scan_bench engine_bench kernel_peak
	build/bin/engine_bench --backend scan --backend auto --quick --ceilings $(BENCH)

# SUITE=integration for the tests of whole servers; SUITE=unit_engine, unit_gpu, unit_service, unit_cli, integration_service or
# integration_cli for a group of either; PROGRAMS="net_test observe_test" for these alone; CTEST_FLAGS for more.
SUITE ?= unit
PROGRAMS ?= $(SUITE)_tests
asan-build tsan-build:
	@packages/install build test
	cmake --preset $(@:-build=)
	cmake --build --preset $(@:-build=) --parallel $(JOBS) --target $(PROGRAMS)

# Some tests preload a library of theirs, before AddressSanitizer's.
asan: export ASAN_OPTIONS = verify_asan_link_order=0
tsan: export TSAN_OPTIONS = suppressions=$(CURDIR)/tests/thread_sanitizer.supp
# These make calls by gRPC's client, whose library is not built for ThreadSanitizer.
tsan: UNSEEN = |^(ProgramTest|StoredRowsTest)\.
# Without the tests in Python: a sanitizer sees nothing of them, and `make test` runs them.
asan tsan: %: %-build ## unit tests under AddressSanitizer and UBSan, or ThreadSanitizer; SUITE=integration
	ctest --test-dir build/$@ --parallel $(JOBS) --label-regex '^$(SUITE)(_[a-z]+)?$$' --exclude-regex '^[a-z_.]+$$$(UNSEEN)' $(CTEST_FLAGS) \
	  --output-on-failure --no-tests=error --output-junit $(SUITE)-tests.xml

fuzz-build:
	@packages/install build check
	cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS) --target fuzz_targets

fuzz: fuzz-build ## every loader with its corpus and mutations of it, SECONDS=60 each; then requests of every method
	tests/fuzz/run.sh $(SECONDS)
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS) --target request_mutations_test
	TEST_SECONDS=$(SECONDS) build/asan/tests/request_mutations_test

# What this and the long runs below print is kept as JSON in build/, and in docs/benchmarks when RECORD=docs/benchmarks.
RECORD ?= build
faults:         ## each allocation, read, open, write and thread of a whole server fails in turn; 1,000 reloads, 100 of them bad
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target faults_test
	/usr/bin/python3 -B tests/reliability/faults.py build/tests/faults_test --json $(RECORD)/faults.json

SEED ?= 1
simulate:       ## the engine's threads in simulated orders for SECONDS=60, then planted races; SEED=1 for other orders
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simulate
	build/tests/simulate --seconds $(SECONDS) --seed $(SEED)

mutants:        ## removes each barrier and guard of the CUDA kernels in turn: a test must fail
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target gpu_test gpu_conformance_test
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS) --target gpu_test gpu_conformance_test
	python3 -B tests/backend/cuda/mutate.py --build build --sanitized build/asan --jobs $(JOBS)

gpu-dry-run:    ## the bench of the GPU engine on the emulated device, each step also killed: what a card would run
	@packages/install build test
	cmake --preset bench
	cmake --build --preset bench --parallel $(JOBS) --target gpu_dry_run_programs simile
	python3 -B tests/bench/gpu/gpu_dry_run.py --bin build/tests/gpu_dry_run --simile build/bin/simile

# TARGET=gpu for the image with the GPU plug-in; of another CUDA: IMAGE=simile:gpu-cuda13 CUDA=..., for some cards alone:
# ARCHITECTURES="75-real;86-real" (docker/Dockerfile).
TARGET ?= cpu
IMAGE ?= simile:$(TARGET)
wheel:          ## build/packages: the wheels simile-search, the client, and simile-server, the program with its libraries
	@packages/install build package
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile python_client
	packages/wheel/build.py

deb:            ## build/packages: the Debian package, with the GPU plug-in where it was built
	@packages/install build package
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile documentation
	packages/deb/build

python-versions: ## the Python client's tests under the oldest and newest protobuf and grpcio, and beside other clients; needs PyPI
	@packages/install build test package
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile python_client
	/usr/bin/python3 -B clients/python/tests/versions.py build/clients/python build/bin/simile . build/python-versions

python-docs: ## the Python client's documentation from its docstrings, as HTML in build/python-docs; needs PyPI
	@packages/install build package
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target python_client
	python3 -m venv build/python-docs-venv
	build/python-docs-venv/bin/pip install --quiet pdoc grpcio protobuf numpy
	PYTHONPATH=build/clients/python build/python-docs-venv/bin/pdoc simile_search '!simile_search.messages' \
	  --template-directory clients/python/pages --no-show-source --no-search --output-directory build/python-docs

package-test: wheel deb ## both in bare roots of Debian 12 and 13: install, serve, ask, remove; needs root and PyPI
	@packages/install deploy
	/usr/bin/python3 -B tests/packages/packages_test.py build/packages

image:          ## the container image simile:cpu; TARGET=gpu for simile:gpu
	docker build --file docker/Dockerfile --target $(TARGET) --tag $(IMAGE) $(if $(CUDA),--build-arg CUDA=$(CUDA)) \
	  $(if $(ARCHITECTURES),--build-arg "ARCHITECTURES=$(ARCHITECTURES)") \
	  --build-arg VERSION=$$(awk '/^project.simile VERSION/ {print $$3}' CMakeLists.txt) \
	  --build-arg REVISION=$$(git rev-parse HEAD) .

# ARCHITECTURES="75-real;80-virtual" for a GPU image of few cards; BASE, CUDA for images to pull (tests/docker/images.py).
docker-test:    ## the images, the GPU image too, and the compose files on an engine of its own; it takes what ccache has
	@packages/install deploy
	/usr/bin/python3 -B tests/docker/docker_test.py build/docker

monitoring-test: ## the dashboard's queries and the alerts, asked of a live Prometheus that scrapes servers under load
	@packages/install build test monitoring
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile fake_cuda_driver fake_nvml fake_working
	/usr/bin/python3 -B tests/monitoring/live.py build/bin/simile build/tests/fakes $(if $(PLOT),--plot $(PLOT))

probes:         ## the probes of deploy/kubernetes in real time: a load of a minute, a drain, a hung GPU
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target probes_real_time

RELIABILITY = build/bin/simile examples/films build/generated/python
reliability-build:
	@packages/install build test
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) --target simile python_stubs fake_cuda_driver fake_nvml fake_working

cycles: reliability-build ## 200 stops by SIGTERM and 500 kills by SIGKILL, under load; STOPS, KILLS for other numbers
	/usr/bin/python3 -B tests/reliability/sigterm_cycles.py $(RELIABILITY) --cycles $(or $(STOPS),200) --json $(RECORD)/sigterm-cycles.json
	/usr/bin/python3 -B tests/reliability/sigkill_cycles.py $(RELIABILITY) build/tests/fakes --cycles $(or $(KILLS),500) \
	  --json $(RECORD)/sigkill-cycles.json

soak: reliability-build ## mixed calls, reloads and dying clients for MINUTES=30; fails when anything grows, draws a plot
	/usr/bin/python3 -m venv --system-site-packages build/soak-python
	build/soak-python/bin/pip install --quiet --requirement tests/reliability/requirements.txt
	build/soak-python/bin/python -B tests/reliability/soak.py $(RELIABILITY) --minutes $(or $(MINUTES),30) --json $(RECORD)/soak.json \
	  --plot $(RECORD)/soak.png

promises:       ## renew the table of docs/reliability.md from the last `make test` and docs/benchmarks
	/usr/bin/python3 -B tests/reliability/promises.py --write

format:         ## lay out the sources
	@packages/install check
	@clang-format -i $(SOURCES)

format-check:   ## fail where make format would change something
	@packages/install check
	@clang-format --dry-run -Werror $(SOURCES)

scripts:        ## lint of the shell scripts
	@packages/install check
	shellcheck $(SCRIPTS)

wire-test:      ## proto/ by buf's rules: its lint, and nothing that breaks a client of a released version; needs PyPI once
	@packages/install check
	/usr/bin/python3 -B tests/wire_contract/buf_test.py

tidy: scripts   ## clang-tidy, layers, words, scripts; FOLDERS=src/data for a part
	@packages/install build check
	python3 -B tests/tidy/check_layers.py
	cmake --preset release -B build/tidy -D SIMILE_UNITY=OFF
	cmake --build build/tidy --parallel $(JOBS) --target simile_services
	run-clang-tidy -quiet -p build/tidy -j $(JOBS) '^$(CURDIR)/$(FOLDERS)'

check:          ## everything, every part of the slow test families and tsan too: before an issue is closed
	JOBS=$(JOBS) .ci/run all

clean:          ## remove everything built
	rm -rf build
