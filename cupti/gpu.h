/*
 * gpu.h: what the files of cupti/ share.
 *
 * For cupti/ alone. The layer is off until a CUDA function is called, then on, then, where something else
 * takes CUPTI or the process ends, off for good. CUPTI calls back from any thread at any time.
 */
#pragma once

#include <stdbool.h>

#include "cupti/cupti_types.h"
#include "preload/runtime.h"

enum gpu_state { GPU_IDLE, GPU_BUSY, GPU_ON, GPU_OFF };

struct gpu {
	uint32_t state;      /* enum gpu_state, changed atomically; BUSY: one thread changes it */
	uint32_t generation; /* tare_generation that it was started in */
	bool foreign;        /* something else has used CUPTI */
	void *subscriber;
#define FUNCTION(field, name, parameters) cupti_result(*field) parameters;
	CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

extern struct gpu gpu __attribute__((visibility("hidden")));

static inline bool gpu_is_on(void)
{
	return __atomic_load_n(&gpu.state, __ATOMIC_ACQUIRE) == GPU_ON;
}

/* Ends the layer: what CUPTI holds back is written, and CUPTI is as if we had never been there. */
void gpu_end(const char *why);

/* Callbacks for the calls that make a device do something. False: *failed_p tells which function failed. */
cupti_result gpu_calls_start(void);
void gpu_calls_forget(void);
cupti_callback gpu_call;

/* Buffers, and their way to the trace. */
bool gpu_records_start(void);
void gpu_records_forget(void);
cupti_requested gpu_buffer_requested;
cupti_completed gpu_buffer_completed;
cupti_clock gpu_clock;
void gpu_records_mark(enum trace_gpu_work what);
void gpu_records_dropped(void);
