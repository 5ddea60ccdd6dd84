# make demo   build, and run the firewall over the bundled capture
# make test   every test; what is skipped is counted, with the reason
# make lint   formatting, clippy, shell
# make bench  the figures of docs/measurements/bench.md, as ratios in one run
# make docs   the book of docs/, in target/book
# make fuzz   every reader under a fuzzer, FUZZ_SECONDS each

export PATH := $(HOME)/.cargo/bin:$(PATH)
FUZZ_SECONDS ?= 60
.DEFAULT_GOAL := help
.PHONY: help demo test lint bench docs fuzz setup-run setup-test clean

help:
	@sed -n 's/^# make/make/p' Makefile

setup-run:
	@scripts/setup.sh run

setup-test:
	@scripts/setup.sh test

demo: setup-run
	@scripts/demo.sh

test: setup-test
	@scripts/test.sh

lint: setup-test
	@scripts/lint.sh

bench: setup-test
	@scripts/bench.sh

docs:
	@scripts/docs.sh

fuzz: setup-test
	@scripts/fuzz.sh $(FUZZ_SECONDS)

clean:
	cargo clean
	rm -rf out
