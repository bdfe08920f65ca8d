# A thin front of Meson: each target is a line or two that can be typed by hand.
# What is built lands under build/; see CONTRIBUTING.md for running one test.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
HOURS   ?= 1
MESON   ?= meson
# Debian's packages (NumPy among them) are for Debian's Python.
PYTHON  ?= /usr/bin/python3
export PYTHON

FUZZ_OPTIONS = -Dbuildtype=debugoptimized -Dfuzz=true \
    -Db_sanitize=address,undefined -Db_lundef=false

# Configure build folder $(1) with options $(2), unless it is there already.
configure = [ -f $(1)/build.ninja ] || $(MESON) setup $(1) $(2)

.PHONY: all demo demo-ceph test bench bench-quick bench-compare soak install \
    clean format help
all:
	@tools/install-deps.sh --check build
	@$(call configure,$(BUILD),--prefix=$(PREFIX))
	@$(MESON) compile -C $(BUILD)

demo:
	@tools/install-deps.sh build
	@$(MAKE) --no-print-directory all
	@tools/demo.sh $(BUILD)

demo-ceph:
	@tools/install-deps.sh ceph
	@$(call configure,$(BUILD),--prefix=$(PREFIX))
	@$(MESON) configure $(BUILD) -Drados=enabled -Dobjclass=enabled
	@$(MESON) compile -C $(BUILD)
	@tools/demo-ceph.sh $(BUILD)

test:
	@tools/install-deps.sh test
	@tools/test-all.sh

# ONLY='dicing boxes' runs some cases; bench/bench.py list names them all.
bench bench-quick:
	@tools/install-deps.sh bench || tools/install-deps.sh build
	@bench/peers/install.sh build/peers
	@$(call configure,build/bench,-Dbench=true)
	@$(MESON) setup --reconfigure build/bench >build/bench/configure.log # peers may be new
	@$(MESON) compile -C build/bench
	@$(PYTHON) bench/bench.py run build/bench $(if $(filter %-quick,$@),--quick) \
	    $(if $(ONLY),--only $(ONLY))

bench-compare:
	@$(PYTHON) bench/bench.py compare $(OLD) $(NEW)

soak:
	@tools/install-deps.sh test
	@$(call configure,build/soak,-Dbuildtype=debugoptimized -Dfaults=true)
	@$(MESON) compile -C build/soak
	@CC=clang; export CC; $(call configure,build/fuzz,$(FUZZ_OPTIONS))
	@$(MESON) compile -C build/fuzz fuzzers
	@BUILD=build/soak FUZZ=build/fuzz tests/soak.sh $(HOURS)

# The loader's cache is told only of what went into the running system.
install: all
	@$(MESON) configure $(BUILD) -Dprefix=$(PREFIX)
	@$(MESON) install -C $(BUILD) $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then PATH=$$PATH:/sbin ldconfig; fi

clean:
	rm -rf build

# Public headers and the macros of the test harness are set by hand, like
# tables, and left alone.
format:
	find src cli tests bench examples -path tests/support -prune \
	    -o -name '*.[ch]' -print | xargs clang-format -i

help:
	@echo 'make                 build into $(BUILD)/'
	@echo 'make demo            build, then show what Pyramid does'
	@echo 'make demo-ceph       the same on a small Ceph cluster'
	@echo 'make test            all tests, also under the sanitizers'
	@echo 'make bench           measure, beside the alternatives; renews docs/benchmarks.md'
	@echo 'make bench-quick     a subset of it, a few minutes; both take ONLY="CASE ..."'
	@echo 'make bench-compare   OLD=results.jsonl NEW=results.jsonl'
	@echo 'make soak HOURS=1    random work and faults for hours'
	@echo 'make install         [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make clean           remove build/'
	@echo 'make format          clang-format all but the public headers'
	@echo 'demo, demo-ceph, test, bench and soak first install the Debian packages they lack.'
