# tare: see README.md; `make help` lists the targets.
#
#   DEBUG=1                 -O0 and assertions
#   SAN=address,undefined   sanitizers (any list that -fsanitize= takes)
#   CC=gcc or clang
#   V=1                     show the commands
#   PY=python               a Python with requirements.txt installed, instead of our own environment
#
# Sources are found by wildcard: a new file needs no line here. Each combination of compiler, DEBUG
# and SAN has an object tree of its own below build/.

MAKEFLAGS += --no-builtin-rules --no-builtin-variables --no-print-directory
SHELL     := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# Make's own defaults for these say nothing about what the user wants.
ifeq ($(filter-out default undefined,$(origin CC)),)
CC := gcc
endif
ifeq ($(filter-out default undefined,$(origin AR)),)
AR := ar
endif
DEBUG  ?=
SAN    ?=
V      ?=
PREFIX ?= /usr/local
Q      := $(if $(filter 1,$(V)),,@)
say     = $(if $(filter 1,$(V)),@:,@printf '  %-7s %s\n' '$(1)' '$(2)')

comma   := ,
empty   :=
space   := $(empty) $(empty)
variant := $(subst $(space),-,$(strip $(filter-out gcc cc,$(notdir $(firstword $(CC)))) \
		$(if $(filter 1,$(DEBUG)),debug) $(subst $(comma),-,$(SAN))))
BUILD   := build$(if $(variant),/$(variant))
OBJ     := $(BUILD)/obj

# Expanded at its first use only: `make all` needs no Python.
PY = $(eval PY := $$(or $$(shell scripts/venv.sh),$$(error no Python environment, see above)))$(PY)

# ---------------------------------------------------------------------------------- flags

CPPFLAGS_ALL := -I. -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_ALL   := -std=gnu17 -Wall -Wextra -Werror -g -fvisibility=hidden \
		-ffunction-sections -fdata-sections \
		$(if $(filter 1,$(DEBUG)),-O0 -fno-omit-frame-pointer -DTARE_DEBUG=1,-O2 -DNDEBUG) \
		$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(CFLAGS)
LDFLAGS_ALL  := -Wl,--gc-sections -Wl,-O1 $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

# Code that lives inside somebody else's process: position independent, thread state in initial-exec
# TLS, no helpers that abort, and unwind tables because C++ exceptions pass through it.
TRACEE        := -fPIC -ftls-model=initial-exec -fno-stack-protector -U_FORTIFY_SOURCE \
		 -fexceptions -fasynchronous-unwind-tables
CFLAGS_traces     := $(TRACEE)
CFLAGS_preload    := $(TRACEE)
CFLAGS_pyhooks    := $(TRACEE)
CFLAGS_torchhooks := $(TRACEE)
CFLAGS_cupti      := $(TRACEE)
CFLAGS_analyzer   := -fPIE

# ---------------------------------------------------------------------------------- what is built

CUDART_MAJORS := 11 12 13
SOURCES       := preload pyhooks torchhooks cupti

obj          = $(patsubst %.c,$(OBJ)/%.o,$(1))
TRACES_OBJ   := $(call obj,$(wildcard traces/*.c))
ANALYZER_OBJ := $(call obj,$(wildcard analyzer/*.c))
# The runtime's wrappers are compiled once for each runtime that they stand for.
LIBTARE_SRC  := $(wildcard $(SOURCES:=/*.c))
LIBTARE_OBJ  := $(call obj,$(filter-out preload/cuda_runtime.c,$(LIBTARE_SRC))) \
		$(if $(filter preload/cuda_runtime.c,$(LIBTARE_SRC)), \
			$(CUDART_MAJORS:%=$(OBJ)/preload/cuda_runtime.%.o))

TARE    := $(BUILD)/tare
LIBTARE := $(BUILD)/libtare.so
TRACES  := $(OBJ)/libtraces.a
MAP     := $(BUILD)/exports.map

# A sanitizer's runtime must come first in a process, which a preloaded library cannot arrange: with
# SAN only the command and the unit tests are built.
GOALS := $(if $(wildcard analyzer/*.c),$(TARE)) $(if $(SAN),,$(if $(wildcard preload/gen_exports.sh),$(LIBTARE)))

## all: build/libtare.so and build/tare
all: $(GOALS)

# Remembers a text, and changes only when the text does.
remember = mkdir -p $(@D); printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' > $@

$(BUILD)/.flags: FORCE
	@$(call remember,$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(TRACEE))
$(BUILD)/.links: FORCE
	@$(call remember,$(CC) $(LDFLAGS_ALL) $(TRACES_OBJ) $(ANALYZER_OBJ) $(LIBTARE_OBJ))

compile = $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CFLAGS_$(firstword $(subst /, ,$<))) -MMD -MP -c $< -o $@

$(OBJ)/%.o: %.c $(BUILD)/.flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(compile)

$(OBJ)/preload/cuda_runtime.%.o: preload/cuda_runtime.c $(BUILD)/.flags
	$(call say,CC,$< ($*))
	@mkdir -p $(@D)
	$(Q)$(compile) -DCUDART_MAJOR=$*

# The assembler puts the program's text into it.
$(OBJ)/analyzer/bench_program.o: analyzer/bench.py
$(OBJ)/analyzer/calibrate_program.o: analyzer/calibrate.py

$(TRACES): $(TRACES_OBJ) $(BUILD)/.links
	$(call say,AR,$@)
	$(Q)rm -f $@; $(AR) rcs $@ $(TRACES_OBJ)

$(MAP): preload/gen_exports.sh cupti/gpu_handover.c $(wildcard preload/*.def preload/*.in) $(BUILD)/.flags
	$(call say,GEN,$@)
	$(Q)preload/gen_exports.sh "$(CC)" > $@

$(LIBTARE): $(LIBTARE_OBJ) $(TRACES) $(MAP) $(BUILD)/.links
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) -Wl,-z,defs -Wl,--build-id=sha1 -Wl,-soname,libtare.so -Wl,--version-script=$(MAP) \
		-Wl,--exclude-libs,ALL $(LIBTARE_OBJ) $(TRACES) -l:libzstd.a -ldl -lpthread -o $@

$(TARE): $(ANALYZER_OBJ) $(TRACES) $(BUILD)/.links
	$(call say,LD,$@)
	$(Q)$(CC) -pie $(LDFLAGS_ALL) $(ANALYZER_OBJ) $(TRACES) -ljansson -ldw -l:libzstd.a -lm -ldl -lpthread -o $@

-include $(TRACES_OBJ:.o=.d) $(ANALYZER_OBJ:.o=.d) $(LIBTARE_OBJ:.o=.d)

# ---------------------------------------------------------------------------------- the rest

## deps: install what is missing (with apt, where that is allowed), or print how to
deps:
	@scripts/deps.sh

# Each of these adds targets and rules of its own: sim; check-unit, check-e2e; bench.
-include tests/sim/sim.mk
-include tests/tests.mk
-include $(firstword $(wildcard tests/bench/bench.mk bench/bench.mk))

## demo: trace a small training run and print the report
demo: deps
	+$(Q)$(MAKE) all $(if $(wildcard tests/sim/sim.mk),sim)
	+$(Q)BUILD=$(BUILD) PY='$(PY)' scripts/demo.sh

# pytest comes last, so that its summary ends the output.
## check: layers, C units, end-to-end tests (the quick ones)
check: deps
	+$(Q)$(MAKE) all $(if $(wildcard tests/sim/sim.mk),sim)
	+$(Q)$(MAKE) check-layers
	+$(Q)$(MAKE) check-unit
	+$(Q)$(MAKE) check-san
	+$(Q)$(MAKE) check-e2e

## check-slow: the end-to-end tests marked slow
check-slow: deps
	+$(Q)$(MAKE) all $(if $(wildcard tests/sim/sim.mk),sim12)
	+$(Q)$(MAKE) check-e2e MARK='slow and not gpu'

## check-gpu: the end-to-end tests that need an NVIDIA GPU
check-gpu: deps
	+$(Q)$(MAKE) all
	+$(Q)$(MAKE) check-e2e MARK='gpu'

## check-layers: prove which folder may include which
check-layers:
	$(Q)scripts/check-layers.sh

## lint: formatting, shell and Python syntax, generated tables
lint:
	$(Q)PY='$(PY)' scripts/lint.sh

## format: clang-format all C sources and headers, or FILES='...' alone
format:
	$(Q)scripts/lint.sh --format $(FILES)

## format-doc: the tables of traces/FORMAT.md, from schema.def and layout.h
format-doc:
	$(Q)scripts/format_doc.sh

## install: into PREFIX (default /usr/local): bin/tare, lib/tare/libtare.so
install: all
	$(call say,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/tare
	$(Q)install -m 755 $(TARE) $(DESTDIR)$(PREFIX)/bin/tare
	$(Q)install -m 644 $(LIBTARE) $(DESTDIR)$(PREFIX)/lib/tare/libtare.so

## clean: remove build/
clean:
	rm -rf build

## help: this list
help:
	@echo 'Targets (options: DEBUG=1  SAN=address,undefined  CC=clang  V=1  PY=python):'
	@sed -n 's/^## \([^:]*\): /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  %-14s %s\n", $$1, $$2 }'

list: help

FORCE:
.PHONY: all deps format-doc demo check check-slow check-gpu check-layers check-unit check-e2e bench fuzz lint \
	format install clean help list sim FORCE
