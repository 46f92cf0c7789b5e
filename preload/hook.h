/*
 * hook.h: what the wrapper of a library function calls around the real one.
 *
 * For the wrappers in preload/ (cuda_runtime.c). A wrapper looks at hook_on(), forwards, and does
 * nothing else by itself: everything that is written is written here, once for all wrappers, which
 * keeps each of those some hundred bytes short.
 */
#pragma once

#include "preload/runtime.h"

/* An INFO record: "libcudart.so.13 /path/to/it, ...". */
struct hook_info {
	const char *key;
	char text[1024];
};

extern struct hook_info hook_runtimes, hook_libraries;

struct hook_library {
	const char *soname; /* also the version node of its symbols */
	bool unversioned;   /* these have none */
	bool told;          /* its path is in the trace */
	struct hook_info *info;
};

typedef void hook_function(void);

struct hook {
	uint32_t generation; /* tare_generation of the trace that `function` is defined in */
	uint32_t function;   /* id of the FUNCTION record */
	hook_function *real; /* starts as `first`, which finds the real one and replaces itself */
	hook_function *first;
	const char *name;
	struct hook_library *library;
	enum trace_category category;
};

/* Until its first use in a process a hook belongs to no trace. */
#define HOOK_UNDEFINED UINT32_MAX

/* Whether a wrapper has more to do than to call the real function. */
static inline bool hook_on(void)
{
	return tare_likely(tare_process.layers & TARE_LAYER_CUDA) &&
	       tare_likely(tare_tls.state <= TARE_ON);
}

static inline hook_function *hook_real(const struct hook *hook)
{
	return __atomic_load_n(&hook->real, __ATOMIC_RELAXED);
}

/* Finds the real function, if that has not been done. False: there is none. */
bool hook_resolve(struct hook *hook);

/*
 * The real function of a call from `caller`, a return address. For libraries without versions, which a
 * process may have several of: one of its own, and one linked into another's code.
 */
hook_function *hook_real_for(struct hook *hook, const void *caller);

/*
 * The span's enter: one function for each event. `frame`: __builtin_frame_address(0) of the
 * wrapper. Returns what hook_leave wants, or 0 where nothing was written.
 */
uint64_t hook_enter_CALL(struct hook *hook, const void *frame);
uint64_t hook_enter_LAUNCH(struct hook *hook, const void *frame, const void *stream);
uint64_t hook_enter_COPY(struct hook *hook, const void *frame, const void *stream, unsigned kind,
			 uint64_t bytes, const void *destination, const void *source);
uint64_t hook_enter_SET(struct hook *hook, const void *frame, const void *stream, uint64_t bytes,
			const void *pointer);
uint64_t hook_enter_MEMORY(struct hook *hook, const void *frame, const void *pointer,
			   uint64_t bytes);
uint64_t hook_enter_SYNC(struct hook *hook, const void *frame, const void *handle);

#define HOOK_NO_VALUE UINT64_MAX

/* The span's leave; `value` becomes a RESULT before it. */
void hook_leave(uint64_t span, int result, uint64_t value);

/* The same of a call that may have waited: with its native stack, where that is wanted. `frame`: as above. */
void hook_leave_waited(uint64_t span, const void *frame, int result, uint64_t value);

/* The thread's current device, kept also while nothing is recorded. Told before its next event. */
extern __thread int hook_device __attribute__((tls_model("initial-exec"), visibility("hidden")));
