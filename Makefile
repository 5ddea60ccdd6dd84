# make demo   build, and run the firewall over the bundled capture
# make test   every test; what is skipped is counted, with the reason
# make test-long   the same, and of tests that take turns by the day all
# make lint   formatting, clippy, shell
# make build  the command, in target/release
# make install   command, functions, headers, manual, completions and the systemd unit below PREFIX (/usr/local)
# make deb    the same as a package for Debian, in target
# make bench  the figures of docs/measurements/bench.md, as ratios in one run
# make docs   the book of docs/, in target/book
# make fuzz   every reader under a fuzzer, FUZZ_SECONDS each

export PATH := $(HOME)/.cargo/bin:$(PATH)
FUZZ_SECONDS ?= 60
.DEFAULT_GOAL := help
# Of `make install` and `make deb`: where to, in front of all paths, and the profile of the build (dev, release).
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
PROFILE ?= release
.PHONY: help demo test test-long lint build install deb bench docs fuzz setup-run setup-deb setup-test clean

help:
	@sed -n 's/^# make/make/p' Makefile

setup-run:
	@scripts/setup.sh run

setup-deb:
	@scripts/setup.sh deb

setup-test:
	@scripts/setup.sh test

demo: setup-run
	@scripts/demo.sh

test: setup-test
	@scripts/test.sh

test-long: setup-test
	@MILLRACE_LONG=1 scripts/test.sh

lint: setup-test
	@scripts/lint.sh

build: setup-run
	@cargo build --profile $(PROFILE) -p millrace-cli

# Under sudo nothing is built: what the user has built is installed.
install: $(if $(SUDO_USER),,build)
	@PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' DESTDIR='$(DESTDIR)' PROFILE='$(PROFILE)' scripts/install.sh

deb: setup-deb build
	@PROFILE='$(PROFILE)' scripts/deb.sh

bench: setup-test
	@scripts/bench.sh

docs:
	@scripts/docs.sh

fuzz: setup-test
	@scripts/fuzz.sh $(FUZZ_SECONDS)

clean:
	cargo clean
	rm -rf out
