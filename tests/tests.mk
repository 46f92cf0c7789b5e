# The tests' targets, included by the top Makefile.
#
#   tests/unit/test_*.c   one cmocka program each, linked with the traces library and with the
#                         analyzer's objects but main's
#   tests/gen/*.c         programs that make traces for tests and benchmarks, built as $(BUILD)/tests/NAME
#   tests/fuzz/*.c        one libFuzzer target each (LLVMFuzzerTestOneInput); check-unit runs them over
#                         tests/golden and tests/fuzz/corpus
#   tests/**/test_*.py    pytest; markers: slow (make check-slow), gpu (make check-gpu)

UNIT_BIN  := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
UNIT_LIB  := $(OBJ)/libanalyzer.a
FUZZ_BIN  := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZ_TIME ?= 30
REPLAY_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/replay/%,$(wildcard tests/fuzz/*.c))

# An archive, so that a unit test pulls in only what it calls.
$(UNIT_LIB): $(filter-out %/main.o,$(ANALYZER_OBJ)) $(BUILD)/.links
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/unit/%: $(OBJ)/tests/unit/%.o $(UNIT_LIB) $(TRACES)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie $(LDFLAGS_ALL) $< $(UNIT_LIB) $(TRACES) -lcmocka -ljansson -ldw -l:libzstd.a -lm -ldl \
		-lpthread -o $@

$(BUILD)/tests/%: $(OBJ)/tests/gen/%.o $(TRACES)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie $(LDFLAGS_ALL) $< $(TRACES) -l:libzstd.a -lm -ldl -lpthread -o $@

# A fuzz target without libFuzzer: runs over files.
$(BUILD)/replay/%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/replay/replay.o $(UNIT_LIB) $(TRACES)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie $(LDFLAGS_ALL) $(filter %.o,$^) $(UNIT_LIB) $(TRACES) -ljansson -ldw -l:libzstd.a -lm -ldl \
		-lpthread -o $@

CFLAGS_tests := -fPIE -UNDEBUG
.SECONDARY: $(call obj,$(wildcard tests/unit/test_*.c tests/gen/*.c tests/fuzz/*.c tests/fuzz/*/*.c))
-include $(wildcard $(OBJ)/tests/*/*.d $(OBJ)/tests/fuzz/*/*.d)

unit: $(UNIT_BIN)
tools: $(patsubst tests/gen/%.c,$(BUILD)/tests/%,$(wildcard tests/gen/*.c))

## check-unit: the C units alone
check-unit: $(UNIT_BIN) $(REPLAY_BIN)
	$(Q)for t in $(UNIT_BIN); do echo "  UNIT    $$t"; TARE_BUILD=$(BUILD) "$$t" || exit 1; done
	$(Q)for t in $(REPLAY_BIN); do echo "  REPLAY  $$t"; "$$t" tests/golden tests/fuzz/corpus || exit 1; done

## check-san: the C units under the address and undefined-behaviour sanitizers
check-san:
	+$(Q)$(MAKE) SAN=address,undefined all check-unit

# PYTEST: more arguments, such as PYTEST='-x -k fork'. PYTEST_JOBS: how many at once.
MARK        ?= not slow and not gpu
PYTEST      ?=
E2E         ?= tests
PYTEST_JOBS ?= $(shell nproc)

## check-e2e: pytest alone (PYTEST='-k name' chooses)
check-e2e: tools
	$(Q)TARE_BUILD=$(abspath $(BUILD)) TARE_SIM=$(abspath $(BUILD)/sim) PYTHONDONTWRITEBYTECODE=1 \
		$(PY) -m pytest -q -ra -c tests/pytest.ini --rootdir=. -p no:cacheprovider \
		-n $(PYTEST_JOBS) -m '$(MARK)' $(E2E) $(PYTEST)

MATRIX_TESTS := $(wildcard tests/test_fidelity*.py) tests/test_processes.py tests/test_frames.py tests/test_cuda_calls.py

## fidelity: docs/fidelity.md, from runs of all the programs in it, bare and traced (a quarter of an hour)
fidelity: deps
	+$(Q)$(MAKE) all sim tools
	$(Q)rm -f $(BUILD)/fidelity.json
	+$(Q)$(MAKE) check-e2e MARK='not gpu' E2E='$(MATRIX_TESTS)' \
		PYTEST='--matrix $(abspath $(BUILD))/fidelity.json --deselect tests/test_fidelity.py::test_table'
	$(Q)$(PY) tests/matrix.py $(BUILD)/fidelity.json >$(BUILD)/fidelity.md
	$(Q)cp $(BUILD)/fidelity.md docs/fidelity.md

## suite-doc: docs/cpython-suite.md and package-suites.md, from what test_*_suite*.py left in the build folder
suite-doc:
	$(Q)TARE_BUILD=$(abspath $(BUILD)) PYTHONDONTWRITEBYTECODE=1 $(PY) tests/suite_doc.py

# With libFuzzer: clang's, in an object tree of its own.
FUZZ_MAKE := $(MAKE) CC=clang SAN=fuzzer-no-link,address,undefined

$(BUILD)/fuzz/%: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/libfuzzer/mutate.o $(UNIT_LIB) $(TRACES)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -pie $(LDFLAGS_ALL) -fsanitize=fuzzer $(filter %.o,$^) $(UNIT_LIB) $(TRACES) -ljansson -ldw \
		-l:libzstd.a -lm -ldl -lpthread -o $@

## fuzz: run each fuzzer for FUZZ_TIME seconds (default 30), see tests/fuzz/README.md
fuzz:
	+$(Q)$(FUZZ_MAKE) fuzz-targets
	+$(Q)$(FUZZ_MAKE) fuzz-run

fuzz-targets: $(FUZZ_BIN)

FUZZ_CORPUS := build/fuzz-corpus
fuzz-run:
	$(Q)for f in $(FUZZ_BIN); do \
		n=$$(basename $$f); mkdir -p $(FUZZ_CORPUS)/$$n; echo "  FUZZ    $$n"; \
		$$f -max_total_time=$(FUZZ_TIME) -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
			-print_final_stats=1 -artifact_prefix=$(FUZZ_CORPUS)/ $(FUZZ_CORPUS)/$$n \
			tests/fuzz/corpus tests/golden/v1 tests/golden/bad || exit 1; done

.PHONY: unit tools check-san suite-doc fuzz-targets fuzz-run fidelity
