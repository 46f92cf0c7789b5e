# The benchmarks: `make bench`, BENCH='--only events --sets 2' chooses.

BENCH ?=

$(BUILD)/bench/cuda_calls: tests/bench/cuda_calls.c | sim
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -O2 $< $(BUILD)/sim/lib/libcudart.so.13 -Wl,-rpath,'$$ORIGIN/../sim/lib' -o $@

## bench: every budget with its figure, beside torch.profiler, VizTracer and cProfile
bench: deps
	+$(Q)$(MAKE) all sim $(BUILD)/bench/cuda_calls $(BUILD)/tests/tare_gen
	$(Q)TARE_BUILD=$(abspath $(BUILD)) $(PY) tests/bench/bench.py $(BENCH)
