# The simulated CUDA device: $(BUILD)/sim/lib holds the core, the runtimes and the driver,
# $(BUILD)/sim/stubs-cuN the math libraries for the torch of $(PY). Included by the top Makefile;
# alone: make -f tests/sim/sim.mk sim PY=venv/bin/python

BUILD ?= build
PY ?= python3
CC ?= cc
V ?=

SIM := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
SIM_OUT := $(BUILD)/sim
SIM_SAY = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) '$(2)';)

# Asked of $(PY) once, and only where a recipe or prerequisite of the simulator needs it.
SIM_SITE = $(eval SIM_SITE := $$(shell $(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))'))$(SIM_SITE)

# The headers of each major version, from the pip wheels of the CUDA runtime.
SIM_CUDA13_INCLUDE ?= $(SIM_SITE)/nvidia/cu13/include
SIM_CUDA12_INCLUDE ?= $(SIM_SITE)/nvidia/cuda_runtime/include
SIM_MAJORS = $(foreach n,12 13,$(if $(wildcard $(SIM_CUDA$(n)_INCLUDE)/cuda_runtime_api.h),$(n)))
SIM_TORCH = $(wildcard $(SIM_SITE)/torch/version.py)
SIM_TORCH_CUDA = $(shell sed -n 's/^__version__ = .*+cu\([0-9][0-9]\).*/\1/p' $(SIM_TORCH))

SIM_CFLAGS = -std=gnu17 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fvisibility=hidden -pthread
SIM_LDFLAGS = -shared -Wl,-Bsymbolic,-z,defs,-z,now,-rpath,'$$ORIGIN'

# What every object depends on.
SIM_HEADERS := $(wildcard $(SIM)/*.h $(SIM)/*.def $(SIM)/include/crt/*.h) $(SIM)/sim.mk
SIM_CORE := $(wildcard $(SIM)/core_*.c)
SIM_RUNTIME := $(wildcard $(SIM)/cudart_*.c)
SIM_TWICE := copy launch stream
SIM_DRIVER := $(SIM)/driver.c $(SIM)/driver_names.c
# CUPTI: of both versions from the headers of the newer one, which have the records of the older.
SIM_CUPTI := $(wildcard $(SIM)/cupti_*.c)
SIM_CUPTI_MAJORS = $(if $(wildcard $(SIM_CUDA13_INCLUDE)/cupti.h),12 13)

# A make of its own: in parallel whatever -j is, and $(PY) is asked only when this target is made.
## sim: the simulated CUDA device, below $(BUILD)/sim
.PHONY: sim sim-all sim-clean
sim:
	+@$(MAKE) --no-print-directory -j$$(nproc) -f $(SIM)/sim.mk sim-all \
		BUILD='$(BUILD)' PY='$(PY)' CC='$(CC)' V='$(V)' SIM_INNER=1

## sim12: the same for a torch built for CUDA 12, of tests/requirements-cuda12.txt
.PHONY: sim12
sim12: sim
	+@$(MAKE) --no-print-directory -j$$(nproc) -f $(SIM)/sim.mk sim-all BUILD='$(BUILD)' CC='$(CC)' V='$(V)' \
		SIM_INNER=1 PY="$$(scripts/venv.sh tests/requirements-cuda12.txt)"

sim-clean:
	rm -rf $(SIM_OUT)

ifdef SIM_INNER

sim-all: $(SIM_OUT)/lib/libtaresim.so $(SIM_MAJORS:%=$(SIM_OUT)/lib/libcudart.so.%)
sim-all: $(if $(SIM_MAJORS),$(SIM_OUT)/lib/libcuda.so.1)
sim-all: $(SIM_CUPTI_MAJORS:%=$(SIM_OUT)/lib/libcupti.so.%)
sim-all: $(if $(SIM_TORCH),$(SIM_OUT)/stubs-cu$(SIM_TORCH_CUDA)/.stamp)

$(SIM_OUT)/lib $(SIM_OUT)/obj:
	@mkdir -p $@

# The core.
$(SIM_OUT)/obj/%.o: $(SIM)/%.c $(SIM_HEADERS) | $(SIM_OUT)/obj
	$(call SIM_SAY,CC,$<)$(CC) $(SIM_CFLAGS) -c $< -o $@

$(SIM_OUT)/lib/libtaresim.so: $(SIM_CORE:$(SIM)/%.c=$(SIM_OUT)/obj/%.o) $(SIM)/core.map | $(SIM_OUT)/lib
	$(call SIM_SAY,LINK,$@)$(CC) -pthread $(SIM_LDFLAGS) -Wl,-soname,libtaresim.so \
		-Wl,--version-script=$(SIM)/core.map $(filter %.o,$^) -o $@

# The runtimes, each from the same sources.
define SIM_RUNTIME_RULES
SIM_INCLUDE_$(1) := -isystem $(SIM_CUDA$(1)_INCLUDE) -idirafter $(SIM)/include
SIM_OBJECTS_$(1) := $(SIM_RUNTIME:$(SIM)/%.c=$(SIM_OUT)/obj/cu$(1)-%.o) \
	$(SIM_TWICE:%=$(SIM_OUT)/obj/cu$(1)-cudart_%-ptsz.o)

$(SIM_OUT)/obj/cu$(1)-%.o: $(SIM)/%.c $(SIM_HEADERS) | $(SIM_OUT)/obj
	$$(call SIM_SAY,CC,$$< [cu$(1)])$$(CC) $$(SIM_CFLAGS) -DSIM_CUDA_MAJOR=$(1) $$(SIM_INCLUDE_$(1)) -c $$< -o $$@

$(SIM_OUT)/obj/cu$(1)-%-ptsz.o: $(SIM)/%.c $(SIM_HEADERS) | $(SIM_OUT)/obj
	$$(call SIM_SAY,CC,$$< [cu$(1) ptsz])$$(CC) $$(SIM_CFLAGS) -DCUDA_API_PER_THREAD_DEFAULT_STREAM \
		$$(SIM_INCLUDE_$(1)) -c $$< -o $$@

$(SIM_OUT)/lib/libcudart.so.$(1): $$(SIM_OBJECTS_$(1)) | $(SIM_OUT)/lib/libtaresim.so
	@printf 'libcudart.so.$(1) { global: cuda*; __cuda*; local: *; };\n' > $(SIM_OUT)/obj/cudart$(1).map
	$$(call SIM_SAY,LINK,$$@)$$(CC) -pthread $$(SIM_LDFLAGS) -Wl,-soname,libcudart.so.$(1) \
		-Wl,--version-script=$(SIM_OUT)/obj/cudart$(1).map $$^ $$| -o $$@
endef
$(foreach n,$(SIM_MAJORS),$(eval $(call SIM_RUNTIME_RULES,$(n))))

# The driver: any version's cuda.h will do. Its names carry no version, as the real one's.
$(SIM_DRIVER:$(SIM)/%.c=$(SIM_OUT)/obj/%.o): $(SIM_OUT)/obj/%.o: $(SIM)/%.c $(SIM_HEADERS) | $(SIM_OUT)/obj
	$(call SIM_SAY,CC,$<)$(CC) $(SIM_CFLAGS) $(SIM_INCLUDE_$(lastword $(SIM_MAJORS))) -c $< -o $@

$(SIM_OUT)/lib/libcuda.so.1: $(SIM_DRIVER:$(SIM)/%.c=$(SIM_OUT)/obj/%.o) | $(SIM_OUT)/lib/libtaresim.so
	$(call SIM_SAY,LINK,$@)$(CC) -pthread $(SIM_LDFLAGS) -Wl,-soname,libcuda.so.1 $^ $| -o $@

.SECONDARY: $(SIM_OUT)/obj/cupti_runtime.names $(SIM_OUT)/obj/cupti_driver.names
# The lists of callbacks, from NVIDIA's enumerations.
$(SIM_OUT)/obj/cupti_%.names: $(SIM_CUDA13_INCLUDE)/cupti_%_cbid.h | $(SIM_OUT)/obj
	@sed -n 's/^ *CUPTI_[A-Z]*_TRACE_CBID_\([a-z_].*[^ ]\) *= *\([0-9]*\),.*/CBID(\2, "\1")/p' $< | \
		sed 's/ *")/")/' > $@

define SIM_CUPTI_RULES
$(SIM_OUT)/obj/cupti$(1)-%.o: $(SIM)/cupti_%.c $(SIM_HEADERS) \
		$(SIM_OUT)/obj/cupti_runtime.names $(SIM_OUT)/obj/cupti_driver.names | $(SIM_OUT)/obj
	$$(call SIM_SAY,CC,$$< [cu$(1)])$$(CC) $$(SIM_CFLAGS) -DSIM_CUDA_MAJOR=$(1) -I$(SIM_OUT)/obj \
		-isystem $(SIM_CUDA13_INCLUDE) -idirafter $(SIM)/include -c $$< -o $$@

$(SIM_OUT)/lib/libcupti.so.$(1): $(SIM_CUPTI:$(SIM)/cupti_%.c=$(SIM_OUT)/obj/cupti$(1)-%.o) | $(SIM_OUT)/lib/libtaresim.so
	@printf 'libcupti.so.$(1) { global: cupti*; local: *; };\n' > $(SIM_OUT)/obj/cupti$(1).map
	$$(call SIM_SAY,LINK,$$@)$$(CC) -pthread $$(SIM_LDFLAGS) -Wl,-soname,libcupti.so.$(1) \
		-Wl,--version-script=$(SIM_OUT)/obj/cupti$(1).map $$(filter %.o,$$^) $$| -o $$@
endef
$(foreach n,$(SIM_CUPTI_MAJORS),$(eval $(call SIM_CUPTI_RULES,$(n))))

# The math libraries: once for a torch version.
$(SIM_OUT)/stubs-cu$(SIM_TORCH_CUDA)/.stamp: $(SIM_TORCH) $(SIM)/gen_stubs.py $(wildcard $(SIM)/stub*.[ch]) \
		$(SIM)/sim.h $(SIM)/sim.mk | $(SIM_OUT)/lib/libtaresim.so
	$(call SIM_SAY,STUBS,$(@D))$(PY) $(SIM)/gen_stubs.py --torch $(SIM_SITE)/torch --out $(@D) \
		--cc '$(CC) $(SIM_CFLAGS)' \
		--link '-Wl,-Bsymbolic -Wl,-rpath,$$ORIGIN/../lib -L$(SIM_OUT)/lib -l:libtaresim.so'
	@touch $@

endif
