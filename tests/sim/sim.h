/*
 * The simulated device, as its front ends see it: the stand-ins for libcudart, libcuda and the
 * math libraries all sit on one core, libtaresim.so, so that two CUDA runtimes in one process share
 * one device, one clock and one set of counters.
 *
 * Included by everything in tests/sim. It knows nothing of NVIDIA's headers: a front end turns its
 * own structures into these. Nothing here has a CUDA name, so a preloaded tracer that wraps CUDA
 * functions never sees the simulator at work.
 *
 * Errors are CUDA's numbers, 0 is success. Times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef TARE_SIM_H
#define TARE_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_API __attribute__((visibility("default")))

/* The errors that the core itself returns. They are equal in the runtime and the driver API. */
enum sim_error {
	SIM_OK = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_INVALID_DEVICE = 101,
	SIM_INVALID_HANDLE = 400,
	SIM_ILLEGAL_STATE = 401,
	SIM_NOT_READY = 600,
	SIM_HOST_ALREADY_REGISTERED = 712,
	SIM_HOST_NOT_REGISTERED = 713,
	SIM_NOT_SUPPORTED = 801,
	SIM_CAPTURE_UNSUPPORTED = 900,
	SIM_CAPTURE_INVALIDATED = 901,
	SIM_CAPTURE_UNMATCHED = 903,
	SIM_CAPTURE_WRONG_THREAD = 908,
};

/*
 * Knobs, each an environment variable TARE_SIM_<name>, read once when the core is loaded.
 * KNOB(name, field, default, meaning); the tables of text are parsed where they are used.
 */
#define SIM_KNOBS(KNOB)                                                                            \
	KNOB("KERNEL_US", kernel_us, 0.5, "device time of a kernel that KERNELS does not name")    \
	KNOB("COPY_US", copy_us, 1.0, "fixed device time of a copy or a set")                      \
	KNOB("COPY_GBPS", copy_gbps, 20.0, "rate between host and device, GB/s")                   \
	KNOB("DEVICE_GBPS", device_gbps, 1000.0, "rate within a device, GB/s")                     \
	KNOB("LIBRARY_US", library_us, 2.0, "device time of a cuBLAS, cuDNN, NCCL... call")        \
	KNOB("QUEUE", queue, 1024, "operations a stream holds before a launch blocks")             \
	KNOB("DEVICES", devices, 1, "number of devices")                                           \
	KNOB("MEMORY_GB", memory_gb, 80, "memory of each device, GB")                              \
	KNOB("CC", cc, 9.0, "compute capability, major.minor")

struct sim_config {
#define KNOB(name, field, value, meaning) double field;
	SIM_KNOBS(KNOB)
#undef KNOB
	int device_count; /* DEVICES under CUDA_VISIBLE_DEVICES */
	bool blocking;    /* CUDA_LAUNCH_BLOCKING=1 */
};

SIM_API const struct sim_config *sim_config(void);

/* ---- counters ---- */

/* Column 0 counts calls that are no copies, 1 + kind those of that cudaMemcpyKind. */
enum { SIM_PLAIN = 0, SIM_H2H, SIM_H2D, SIM_D2H, SIM_D2D, SIM_DEFAULT, SIM_COLUMNS };

/* What a profiler takes calls of a library for. */
enum sim_api { SIM_NO_API, SIM_RUNTIME_API, SIM_DRIVER_API };

/* One per front end, registered by its constructor. */
struct sim_library {
	const char *soname;
	enum sim_api api;
	const char *const *functions;
	unsigned count;
	unsigned base;   /* the core's: row of function 0 */
	double *host_us; /* the core's: TARE_SIM_HOST_US by function, or NULL */
	struct sim_library *next;
};

SIM_API void sim_library_add(struct sim_library *lib);

/*
 * Counts a call; while a `struct sim_timed` made before it is in scope, also the time until then:
 * TIMED first thing in a function. SIM_NOT_INITIALIZED in a process that was forked off a CUDA user. */
SIM_API int sim_call(struct sim_library *lib, unsigned function, int column, size_t bytes);

/* A call in progress, for who observes the device. */
struct sim_scope {
	enum sim_api api;
	const char *function;
	uint32_t correlation; /* 0: nobody observes */
	uint32_t around;      /* correlation of the call that this one is made in */
	uint64_t start, kept; /* the observer's */
};

/* sim_call, for a function whose end is known too: sim_leave, by __attribute__((cleanup)). */
SIM_API int sim_enter(struct sim_scope *scope, struct sim_library *lib, unsigned function,
		      int column, size_t bytes);
/* A call that a library makes through a pointer of its own: not counted, only observed. */
SIM_API void sim_enter_private(struct sim_scope *scope, enum sim_api api, const char *function);
SIM_API void sim_leave(struct sim_scope *scope);

struct sim_timed {
	uint64_t start;
};
SIM_API struct sim_timed sim_timed_begin(void);
SIM_API void sim_timed_end(const struct sim_timed *timed);

#define TIMED                                                                                      \
	struct sim_timed sim_timed                                                                 \
		__attribute__((cleanup(sim_timed_end), unused)) = sim_timed_begin()

/* A function without a body was called: says its name on stderr, once. Returns 801. */
SIM_API int sim_missing(struct sim_library *lib, unsigned function);

/* ---- devices, streams, events ---- */

struct sim_stream;
struct sim_event;
struct sim_graph;
struct sim_exec;

SIM_API int sim_device(void); /* the calling thread's */
SIM_API int sim_device_set(int device);
SIM_API int sim_device_synchronize(void);
SIM_API int sim_device_reset(void);
/* An attribute by its number in cudaDeviceAttr. */
SIM_API int sim_attribute(int attribute, int device, int *value);
SIM_API int sim_blocks_per_sm(int threads, size_t shared);

/* What a program may pass for "the default stream". */
enum sim_default { SIM_LEGACY, SIM_PER_THREAD };

SIM_API struct sim_stream *sim_stream_create(bool nonblocking, int priority);
SIM_API int sim_stream_destroy(void *handle);
/* NULL, 1 and 2 stand for default streams; NULL when handle is no stream. */
SIM_API struct sim_stream *sim_stream(void *handle, enum sim_default none);
SIM_API int sim_stream_synchronize(struct sim_stream *s);
SIM_API int sim_stream_query(struct sim_stream *s);
SIM_API int sim_stream_wait_event(struct sim_stream *s, struct sim_event *e);

struct sim_stream_info {
	unsigned long long id;
	int device, priority;
	bool nonblocking;
};
SIM_API void sim_stream_info(const struct sim_stream *s, struct sim_stream_info *info);

SIM_API struct sim_event *sim_event_create(bool timing);
SIM_API int sim_event_destroy(struct sim_event *e);
SIM_API int sim_event_record(struct sim_event *e, struct sim_stream *s);
SIM_API int sim_event_query(struct sim_event *e);
SIM_API int sim_event_synchronize(struct sim_event *e);
SIM_API int sim_event_elapsed(struct sim_event *from, struct sim_event *to, float *ms);

/* ---- memory ---- */

enum sim_memory { SIM_MEM_NONE, SIM_MEM_HOST, SIM_MEM_DEVICE, SIM_MEM_MANAGED };

struct sim_region {
	uintptr_t base;
	size_t size;
	enum sim_memory type;
	int device;
	unsigned flags;
	bool registered; /* the program's own memory, not ours to unmap */
};

SIM_API int sim_alloc(enum sim_memory type, size_t size, unsigned flags, void **out);
/* wait: until the device is idle, as cudaFree does and cudaFreeAsync does not. */
SIM_API int sim_free(enum sim_memory type, void *p, bool wait);
SIM_API int sim_host_register(void *p, size_t size, unsigned flags);
SIM_API int sim_host_unregister(void *p);
SIM_API bool sim_region_find(const void *p, struct sim_region *out);
SIM_API void sim_memory_info(size_t *free, size_t *total);

/* ---- work ---- */

/* The device memory that a kernel may have written to. */
enum { SIM_MAX_TOUCHED = 64 };

struct sim_touched {
	unsigned count;
	bool everything;
	uintptr_t at[SIM_MAX_TOUCHED];
};

/* Adds a pointer, if it is one to device memory. */
SIM_API void sim_touch(struct sim_touched *t, uintptr_t p);
/* Which parameter of a kernel points to its output, or SIM_OUTPUT_UNKNOWN. */
enum { SIM_OUTPUT_UNKNOWN = -1 };
SIM_API int sim_output_of(const char *name);
/* By a launch's arguments, as its caller passed them. */
SIM_API void sim_touched_by(void **args, int output, struct sim_touched *t);

enum sim_work_kind { SIM_KERNEL, SIM_COPY, SIM_SET, SIM_HOST };

struct sim_copy {
	char *dst;
	const char *src;
	size_t width, height, depth; /* bytes, rows, slices */
	size_t dst_pitch, src_pitch; /* from row to row */
	size_t dst_slice, src_slice; /* from slice to slice */
	int column;                  /* SIM_H2H ... SIM_DEFAULT */
	enum sim_memory from, to;    /* the core's */
	bool async;                  /* the core's */
};

struct sim_set {
	char *dst;
	size_t width, height, depth, pitch, slice;
	unsigned value;
	unsigned size;      /* of the value: 1, 2 or 4 bytes */
	enum sim_memory to; /* the core's */
};

struct sim_work {
	enum sim_work_kind kind;
	uint64_t ns;      /* device time */
	const char *name; /* of a kernel; lives as long as the process */
	union {
		const struct sim_touched *touched; /* NULL: not known, so everything */
		struct sim_copy copy;
		struct sim_set set;
		struct {
			void (*call)(void *);
			void *arg;
		} host;
	};
};

/* Puts work on a stream, or into the graph that the stream is capturing. */
SIM_API int sim_submit(struct sim_stream *s, const struct sim_work *work);
SIM_API int sim_launch(struct sim_stream *s, const char *name, uint64_t ns,
		       const struct sim_touched *touched);
SIM_API int sim_copy(struct sim_stream *s, const struct sim_copy *copy, bool async);
SIM_API int sim_set(struct sim_stream *s, const struct sim_set *set);
SIM_API uint64_t sim_kernel_ns(const char *name);
SIM_API uint64_t sim_library_ns(const char *name);

/* ---- capture and graphs ---- */

/* As cudaStreamCaptureMode. */
enum sim_mode { SIM_GLOBAL, SIM_THREAD_LOCAL, SIM_RELAXED };
/* As cudaStreamCaptureStatus. */
enum sim_capture_status { SIM_CAPTURE_NONE, SIM_CAPTURE_ACTIVE, SIM_CAPTURE_BROKEN };

SIM_API int sim_capture_begin(struct sim_stream *s, enum sim_mode mode, struct sim_graph *into);
SIM_API int sim_capture_end(struct sim_stream *s, struct sim_graph **graph);
SIM_API enum sim_capture_status sim_capture_info(struct sim_stream *s, unsigned long long *id,
						 struct sim_graph **graph);
SIM_API enum sim_mode sim_capture_exchange_mode(enum sim_mode mode);
/* Calls that a capture forbids ask this first; it breaks the captures that forbid them. */
SIM_API int sim_capture_check(void);

SIM_API struct sim_graph *sim_graph_create(void);
SIM_API void sim_graph_destroy(struct sim_graph *g);
SIM_API size_t sim_graph_nodes(const struct sim_graph *g, void **nodes, size_t room);
SIM_API void sim_graph_keep(struct sim_graph *g, void (*drop)(void *), void *object);
SIM_API struct sim_exec *sim_graph_instantiate(struct sim_graph *g);
SIM_API void sim_exec_destroy(struct sim_exec *x);
SIM_API int sim_exec_update(struct sim_exec *x, struct sim_graph *g);
SIM_API int sim_exec_launch(struct sim_exec *x, struct sim_stream *s);

/* ---- who observes the device: the stand-in for CUPTI ---- */

enum sim_activity_kind {
	SIM_ACTIVITY_KERNEL,
	SIM_ACTIVITY_COPY,
	SIM_ACTIVITY_SET,
	SIM_ACTIVITY_GRAPH,
	SIM_ACTIVITY_SYNC,
};

/* As CUpti_ActivitySynchronizationType. */
enum sim_sync { SIM_SYNC_EVENT = 1, SIM_SYNC_STREAM_WAITS, SIM_SYNC_STREAM, SIM_SYNC_CONTEXT };

struct sim_activity {
	enum sim_activity_kind kind;
	uint64_t start, end; /* may lie ahead */
	int device;
	uint32_t stream, correlation;
	const char *name; /* of a kernel */
	uint64_t bytes;
	int column;               /* of a copy */
	enum sim_memory from, to; /* of a copy; a set: to */
	bool async;
	unsigned value; /* of a set */
	uint32_t graph; /* number of the graph that was launched; 0: no graph */
	uint64_t node;  /* in it */
	enum sim_sync sync;
};

struct sim_observer {
	void (*enter)(struct sim_scope *scope); /* has a correlation */
	void (*leave)(struct sim_scope *scope);
	void (*activity)(const struct sim_activity *activity); /* with the core's lock held */
};

/* From now on: an activity has the correlation of the call in progress on its thread. */
SIM_API void sim_observe(const struct sim_observer *observer);
SIM_API uint64_t sim_now(void);
SIM_API bool sim_forked(void);

#endif
