# All build, test and install commands of this tree; `make help` lists them. On a fresh Debian 12 or
# 13: apt-get update && apt-get install -y git make, clone, make run.

BUILD   ?= build
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
CONFIG  ?=
LISTEN  ?=
ARGS    ?=
# Seconds of processor time for each fuzzer of `make record`.
FUZZ_SECONDS ?= 900
# Seconds of `make soak`.
SOAK_SECONDS ?= 600
# Folder of external benchmark tools (with run.mjs); empty: the micro-benchmarks of this tree.
BENCH_TOOLS ?=
BENCH_ONLY  ?= ours,relay,direct,nginx,haproxy,socat
BENCH_ARGS  ?=

# Other clones of this tree, and CI, reuse compiled files from the cache.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help deps configure build relay run test test-deps test-full soak record bench install clean format lint

help:  ## List these targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps:  ## Install the Debian packages for building (quick if installed)
	@scripts/install-packages.sh build

configure: deps
	@scripts/configure.sh '$(BUILD)'

build: configure  ## Build build/bin/bulkhead and its plugins
	@umask 022; cmake --build $(BUILD) -j $(JOBS) --target bulkhead_all

relay: configure  ## Build build/bin/bulkhead-relay, the small static program for guests
	@umask 022; cmake --build $(BUILD) -j $(JOBS) --target bulkhead_relay
	@stat -c '%n: %s bytes' $(BUILD)/bin/bulkhead-relay

run: build  ## Start the gateway on http://127.0.0.1:8808/mcp  [CONFIG=mcp.json] [LISTEN=127.0.0.1:PORT]
	@exec $(BUILD)/bin/bulkhead serve $(if $(CONFIG),--config '$(patsubst ~/%,$(HOME)/%,$(CONFIG))') $(if $(LISTEN),--listen '$(LISTEN)') $(ARGS)

test-deps:
	@scripts/install-packages.sh build test
	@if [ -x tests/npm/install.sh ]; then tests/npm/install.sh; fi
	@scripts/install-packages.sh guest || echo 'SKIP guest: its packages cannot be installed'

test: test-deps configure  ## Build, then run unit and end-to-end tests, like CI
	@umask 022; cmake --build $(BUILD) -j $(JOBS)
	@scripts/kernel-features.sh
	@# Some tests mostly wait, so one more test runs than there are processors.
	@ctest --test-dir $(BUILD) -j $$(($(JOBS) + 1)) --output-on-failure

test-full: test  ## Run make test, clang -Werror, ASan+UBSan, TSan, clang-tidy, the long drills
	@scripts/test-full.sh

soak: test-deps build  ## Run calls, restarts and reconnects; fail if resources grow  [SOAK_SECONDS=600]
	@umask 022; cmake --build $(BUILD) -j $(JOBS) --target fake_mcp
	@BULKHEAD_BUILD='$(abspath $(BUILD))' SOAK_SECONDS=$(SOAK_SECONDS) tests/soak/soak.sh

record: build  ## Run fuzzers (FUZZ_SECONDS=900 each), soak, fresh Debian 12 and 13, benchmarks: hours
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/record.sh
	@$(MAKE) --no-print-directory bench

bench: build  ## Run benchmarks  [BENCH_TOOLS=DIR with run.mjs] [BENCH_ONLY=ours,relay,...]
	@BUILD=$(BUILD) BENCH_TOOLS='$(BENCH_TOOLS)' BENCH_ONLY='$(BENCH_ONLY)' scripts/bench.sh $(BENCH_ARGS)

install: build  ## Install under PREFIX (default /usr/local); DESTDIR is honoured
	@DESTDIR='$(DESTDIR)' cmake --install $(BUILD) --prefix '$(PREFIX)'

clean:  ## Remove the build folders
	@rm -rf $(BUILD) build-asan build-tsan build-clang build-fuzz build-bench

format:  ## Format the tree with clang-format
	@scripts/install-packages.sh lint
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs -r clang-format-19 -i

lint:  ## Check format, shell scripts and the rules of HACKING.md
	@scripts/install-packages.sh lint
	@scripts/lint.sh
