/*
 * tare_gen.c: writes a trace of an invented training program with the real writer, for tests and
 * benchmarks, and prints as JSON what it wrote.
 *
 *     tare_gen FILE --spans N [--threads T] [--seed S] [--max-bytes N] [--pass N]
 *              [--lost N] [--pause S] [--unfinished] [--plain] [--stacks] [--calibrated] [--gpu]
 *
 * --pass: about so many events a pass (1500). --lost: says that so many were lost. --pause: sleeps so many
 * seconds after each pass.
 * One pass of the program is a fixed list of steps for each thread (forward, backward, workers), made
 * from the seed; times vary around each step's own. All threads are played by one, in turns. Time is
 * invented too: the writer asks clock_gettime, which is ours. So the same arguments give the same events.
 * --unfinished stops in the middle of a pass and leaves the last blocks live, as SIGKILL does.
 * --plain leaves out what happens in a few passes only (ranges, exceptions, callbacks, ...).
 * --stacks: synchronises have a native stack. --calibrated: what tare costs is known.
 * --gpu: a device runs what is launched, and more.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "traces/writer.h"

#define CODES       96u
#define THREADS_MAX 256u
#define STEPS_MAX   8192u
#define DEPTH_MAX   64u
#define START_NS    1000000000000u
#define RARE_EVERY  100u /* passes */

struct name {
	const char *name;
	unsigned category;
	const char *library;
};

enum { LAUNCH_KERNEL, MEMCPY_ASYNC, MEMSET_ASYNC, MALLOC, FREE, STREAM_SYNC, GET_DEVICE, GEMM };

static const struct name functions[] = {
	[LAUNCH_KERNEL] = { "cudaLaunchKernel", TRACE_CATEGORY_LAUNCH, "libcudart.so.12" },
	[MEMCPY_ASYNC] = { "cudaMemcpyAsync", TRACE_CATEGORY_COPY, "libcudart.so.12" },
	[MEMSET_ASYNC] = { "cudaMemsetAsync", TRACE_CATEGORY_COPY, "libcudart.so.12" },
	[MALLOC] = { "cudaMalloc", TRACE_CATEGORY_ALLOC_DEVICE, "libcudart.so.12" },
	[FREE] = { "cudaFree", TRACE_CATEGORY_FREE, "libcudart.so.12" },
	[STREAM_SYNC] = { "cudaStreamSynchronize", TRACE_CATEGORY_SYNC, "libcudart.so.12" },
	[GET_DEVICE] = { "cudaGetDevice", TRACE_CATEGORY_OTHER, "libcudart.so.12" },
	[GEMM] = { "cublasGemmEx", TRACE_CATEGORY_LIBRARY, "libcublas.so.12" },
};

static const struct name ops[] = {
	{ "_ZN2at4_ops6linear4callERKNS_6TensorES4_RKSt8optionalIS2_E", 0, NULL },
	{ "_ZN2at4_ops5addmm4callERKNS_6TensorES4_S4_RKN3c106ScalarES8_", 0, NULL },
	{ "_ZN2at4_ops10layer_norm4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEERKSt8optionalIS2_ESB_db",
	  0, NULL },
	{ "_ZN2at4_ops17native_layer_norm4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEERKSt8optionalIS2_ESB_d",
	  0, NULL },
	{ "_ZN2at4_ops4gelu4callERKNS_6TensorEN3c1017basic_string_viewIcEE", 0, NULL },
	{ "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", 0, NULL },
	{ "_ZN2at4_ops10mul_Tensor4callERKNS_6TensorES4_", 0, NULL },
	{ "_ZN2at4_ops4view4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEE", 0, NULL },
	{ "_ZN2at4_ops13transpose_int4callERKNS_6TensorEll", 0, NULL },
	{ "_ZN2at4_ops10empty_like4callERKNS_6TensorESt8optionalIN3c1010ScalarTypeEE", 0, NULL },
	{ "_ZN2at4_ops12_foreach_add5call_EN3c108ArrayRefINS_6TensorEEERKNS2_6ScalarE", 0, NULL },
	{ "aten::item", 0, NULL },
	{ "aten::_local_scalar_dense", 0, NULL },
	{ "mylib::fused_step", 0, NULL },
};

static const struct name node_types[] = {
	{ "N5torch8autograd9generated13AddmmBackward0E", 0, NULL },
	{ "N5torch8autograd9generated12GeluBackward0E", 0, NULL },
	{ "N5torch8autograd9generated23NativeLayerNormBackward0E", 0, NULL },
	{ "N5torch8autograd14AccumulateGradE", 0, NULL },
};

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof(*(array))))

/* One event of a pass. */
struct step {
	uint64_t fields[TRACE_FIELDS_MAX];
	uint32_t ns; /* since the step before, usually */
	uint8_t code;
	bool rare; /* in every RARE_EVERY-th pass only */
};

struct thread {
	struct trace_buffer *buffer;
	struct step *steps;
	uint32_t step_count, next, made; /* made: nodes a pass */
	uint32_t depths[DEPTH_MAX], open;
	uint64_t time, pass, spans, events;
	char name[16];
};

static struct trace_file file;
static struct thread threads[THREADS_MAX];
static unsigned thread_count = 1;
static struct thread *running; /* whose time it is */
static bool plain, stacks, calibrated;
static struct trace_buffer *gpu; /* NULL: none */
static uint32_t pass_steps = 1500;
static uint64_t pause_ns;
static uint64_t random_state;

/* What was written, by id. */
static uint64_t frame_counts[CODES], op_counts[COUNT(ops)], function_counts[COUNT(functions)],
	node_counts[COUNT(node_types)], kind_counts[TRACE_EVENT_CODES];
static bool code_defined[CODES], op_defined[COUNT(ops)], function_defined[COUNT(functions)],
	node_defined[COUNT(node_types)], string_defined;

/* Takes the place of libc's: every look at the clock takes 4 us, which makes a block's flush 20 us. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns = START_NS;

	if (running)
		ns = running->time += 4000;
	if (clock == CLOCK_REALTIME)
		ns += 1700000000000000000u;
	now->tv_sec = (time_t)(ns / 1000000000u);
	now->tv_nsec = (long)(ns % 1000000000u);
	return 0;
}

static uint32_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16);
}

static uint32_t random_below(uint32_t limit)
{
	return random_next() % limit;
}

/* ---------------------------------------------------------------- the program of one pass */

static bool rare_now;

static struct step *step_add(struct thread *thread, unsigned code, uint32_t ns)
{
	struct step *step = &thread->steps[thread->step_count++];

	if (thread->step_count == STEPS_MAX) {
		fprintf(stderr, "tare_gen: the program is too long\n");
		exit(2);
	}
	*step = (struct step){ .code = (uint8_t)code, .ns = ns, .rare = rare_now };
	return step;
}

#define STEP(thread, NAME, ns, ...)                                                                \
	do {                                                                                       \
		const uint64_t fields_[] = { __VA_ARGS__ };                                        \
		_Static_assert(sizeof(fields_) / sizeof(*fields_) == TRACE_FIELDS_##NAME, #NAME);  \
		memcpy(step_add(thread, TRACE_##NAME, ns)->fields, fields_, sizeof(fields_));      \
	} while (0)

static void add_leave(struct thread *thread, uint32_t ns, uint64_t result)
{
	STEP(thread, LEAVE, ns, result);
}

static void add_launch(struct thread *thread, uint64_t site, uint64_t stream)
{
	STEP(thread, LAUNCH, 150 + random_below(300), LAUNCH_KERNEL + 1, site, stream);
	add_leave(thread, 1500 + random_below(3000), 0);
}

/* What a native call does: nested operators, launches, perhaps by way of a library. */
static void add_operators(struct thread *thread, uint64_t site)
{
	uint32_t op = random_below(COUNT(ops) - 3), nested = random_below(3), open = 1;

	STEP(thread, OP, 200 + random_below(500), op + 1, 0, site);
	for (uint32_t i = 0; i < nested; i++) {
		/* Either inside the one before, or after it. */
		uint32_t over = i && random_below(2);

		STEP(thread, OP, 100 + random_below(300), random_below(COUNT(ops) - 3) + 1, over,
		     0);
		open += !over;
	}
	if (random_below(8) == 0) {
		STEP(thread, CALL, 200, GEMM + 1, 0);
		add_launch(thread, 0, 7);
		add_leave(thread, 300, 0);
	} else if (random_below(3)) {
		add_launch(thread, 0, 7);
	}
	if (random_below(2))
		STEP(thread, OP_OVER, 100 + random_below(200), open);
}

static void add_section(struct thread *thread, uint64_t site)
{
	STEP(thread, SECTION, 100 + random_below(800), site);
	add_operators(thread, 0);
	if (thread == threads) {
		STEP(thread, MADE, 50, 1, thread->made++);
	}
	add_leave(thread, 100 + random_below(300), 0);
}

/* A copy to the host and the wait for it: loss.item(). */
static void add_item(struct thread *thread, uint64_t site)
{
	STEP(thread, SECTION, 400, site);
	STEP(thread, OP, 300, COUNT(ops) - 2, 0, 0);
	STEP(thread, OP, 200, COUNT(ops) - 1, 0, 0);
	STEP(thread, COPY, 400, MEMCPY_ASYNC + 1, 0, 7, 2, 4, 0x7f0012345680u, 0x7fa400000200u);
	add_leave(thread, 6000, 0);
	STEP(thread, SYNC, 150, STREAM_SYNC + 1, 0, 7);
	if (stacks)
		STEP(thread, STACK, 250000, 1);
	add_leave(thread, stacks ? 0 : 250000, 0);
	add_leave(thread, 300, 0);
}

/* One of everything that most passes do not have. */
static void add_rare(struct thread *thread)
{
	rare_now = true;
	STEP(thread, DEVICE, 100, 0);
	STEP(thread, RANGE_BEGIN, 200, 1);
	STEP(thread, AT, 100, 3);
	STEP(thread, MEMORY, 500, MALLOC + 1, 12, 0, 2u << 20);
	STEP(thread, RESULT, 90000, 0x7fa400000000u);
	add_leave(thread, 50, 0);
	STEP(thread, SET, 500, MEMSET_ASYNC + 1, 13, 7, 1024, 0x7fa400000000u);
	add_leave(thread, 2000, 0);
	STEP(thread, COPY, 500, MEMCPY_ASYNC + 1, 14, 7, 1, 1u << 20, 0x7fa400000000u,
	     0x560000001000u);
	add_leave(thread, 9000, 0);
	STEP(thread, OP_SPAN, 500, COUNT(ops), 15);
	STEP(thread, CALLBACK, 300, 0);
	STEP(thread, FRAME, 300, 5, 0, 12 << 1);
	add_leave(thread, 2000, 1);
	add_leave(thread, 100, 0);
	STEP(thread, GIL, 100, 0);
	add_leave(thread, 30000, 0);
	add_leave(thread, 300, 0);
	STEP(thread, FRAME, 300, 6, 17, 12 << 1 | 1);
	STEP(thread, FRAME, 300, 7, 3, 20 << 1);
	STEP(thread, LEAVE_TO, 4000, 0);
	STEP(thread, MEMORY, 500, FREE + 1, 19, 0x7fa400000000u, 0);
	add_leave(thread, 40000, 700);
	STEP(thread, RANGE_END, 200, 0);
	rare_now = false;
}

static void add_frame(struct thread *thread, uint32_t depth, uint64_t site)
{
	uint32_t children = depth < 7 ? 1 + random_below(5) : 0;
	uint64_t inner = 3 + random_below(5);

	STEP(thread, FRAME, 80 + random_below(300), random_below(CODES - 1) + 2, site,
	     (12 + random_below(20)) << 1);
	for (uint32_t i = 0; i < children && thread->step_count < pass_steps;
	     i++, inner += 4 + random_below(9)) {
		switch (random_below(10)) {
		case 0 ... 4: add_frame(thread, depth + 1, inner); break;
		case 5 ... 8: add_section(thread, inner); break;
		default: STEP(thread, CALL, 200, GET_DEVICE + 1, inner); add_leave(thread, 100, 0);
		}
	}
	add_leave(thread, 40 + random_below(400), 0);
}

static void make_forward(struct thread *thread)
{
	while (thread->step_count < pass_steps)
		add_frame(thread, 1, 20 + thread->step_count / 10 % 50);
	if (!plain && thread == threads)
		add_rare(thread);
	add_item(thread, 90);
}

/* The nodes that the first thread's forward made, last first. */
static void make_backward(struct thread *thread)
{
	for (uint32_t i = 0; i < threads[0].made; i++) {
		uint64_t type = random_below(COUNT(node_types));

		STEP(thread, NODE, 300 + random_below(2000), type + 1, 1, threads[0].made - i);
		for (uint32_t n = random_below(3); n; n--)
			add_operators(thread, 0);
		add_leave(thread, 200 + random_below(300), 0);
	}
	if (!thread->step_count)
		make_forward(thread);
}

/* ---------------------------------------------------------------- definitions */

static struct trace_str text(const char *string)
{
	return (struct trace_str){ string, (uint32_t)strlen(string) };
}

#define DEFINE(buffer, NAME, ...)                                                                  \
	trace_define(buffer, TRACE_RECORD_##NAME, &(struct record_##NAME){ __VA_ARGS__ })

static void code_names(unsigned code, char *path, size_t path_room, char *name, size_t name_room)
{
	static const char *const places[] = {
		"/app/model", "/app/train", "/usr/lib/python3.9/site-packages/torch/nn/modules/m"
	};

	if (code == 1) {
		snprintf(path, path_room, "/app/main.py");
		snprintf(name, name_room, "main");
	} else {
		snprintf(path, path_room, "%s_%u.py", places[code % 3], code / 3);
		snprintf(name, name_room, code % 2 ? "Block%u.forward" : "helper_%u", code);
	}
}

/* Bytecode of CPython 3.9: ten instructions a line; the first function has one loop around all. */
static void define_code(struct trace_buffer *buffer, unsigned code)
{
	char path[128], name[64];
	uint8_t lines[26], bytecode[2 * 130];

	code_names(code, path, sizeof(path), name, sizeof(name));
	DEFINE(buffer, CODE, .code = code, .flags = 0x43, .first_line = 10 * code,
	       .file = text(path), .name = text(name));
	for (unsigned i = 0; i < sizeof(lines); i += 2) {
		lines[i] = 20;
		lines[i + 1] = 1;
	}
	for (unsigned i = 0; i < sizeof(bytecode); i += 2) {
		bytecode[i] = 9; /* NOP */
		bytecode[i + 1] = 0;
	}
	if (code == 1) {
		bytecode[2 * 10] = 93; /* FOR_ITER, to the end */
		bytecode[2 * 10 + 1] = 2 * (120 - 11);
		bytecode[2 * 119] = 113; /* JUMP_ABSOLUTE */
		bytecode[2 * 119 + 1] = 2 * 10;
	}
	DEFINE(buffer, LINES, .code = code, .python = 0x0309,
	       .lines = { (char *)lines, sizeof(lines) },
	       .bytecode = { (char *)bytecode, sizeof(bytecode) });
}

static bool first_use(bool *defined, uint64_t id)
{
	return !defined[id - 1] && (defined[id - 1] = true);
}

/* Before the event: defines what it names. Counts it. */
static void define_used(struct thread *thread, const struct step *step)
{
	struct trace_buffer *buffer = thread->buffer;
	uint64_t id = step->fields[0];

	switch (step->code) {
	case TRACE_FRAME: frame_counts[id - 1]++; __attribute__((fallthrough));
	case TRACE_AT:
		if (first_use(code_defined, id))
			define_code(buffer, (unsigned)id);
		break;
	case TRACE_OP:
	case TRACE_OP_SPAN:
		op_counts[id - 1]++;
		if (first_use(op_defined, id))
			DEFINE(buffer, OP, .op = (uint32_t)id, .symbol = text(ops[id - 1].name));
		break;
	case TRACE_NODE:
		node_counts[id - 1]++;
		if (first_use(node_defined, id))
			DEFINE(buffer, NODE_TYPE, .type = (uint32_t)id,
			       .name = text(node_types[id - 1].name));
		break;
	case TRACE_RANGE_BEGIN:
		if (first_use(&string_defined, id))
			DEFINE(buffer, STRING, .string = (uint32_t)id,
			       .text = text("évaluation \"a\"\t\n"));
		break;
	case TRACE_CALL ... TRACE_SYNC: {
		const struct name *function = &functions[id - 1];

		function_counts[id - 1]++;
		if (first_use(function_defined, id))
			DEFINE(buffer, FUNCTION, .function = (uint32_t)id,
			       .category = (uint8_t)function->category,
			       .name = text(function->name), .library = text(function->library));
		break;
	}
	default: break;
	}
}

/* Of a thread of a library: three frames of a module, one of none. */
static void define_stack(struct trace_buffer *buffer)
{
	static const uint8_t build_id[] = { 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4 };
	static const uint64_t frames[][2] = {
		{ 1, 0x1234 }, { 1, 0x5678 }, { 0, 0x7f0000001000 }, { 1, 0x9abc }
	};
	uint8_t bytes[2 * COUNT(frames) * VARINT_BYTES_MAX], *end = bytes;

	DEFINE(buffer, MODULE, .module = 1, .bias = 0x7f1200000000,
	       .path = text("/app/lib/libinvented.so"),
	       .build_id = { (const char *)build_id, sizeof(build_id) });
	for (unsigned i = 0; i < COUNT(frames); i++)
		end = put_varint(put_varint(end, frames[i][0]), frames[i][1]);
	DEFINE(buffer, STACK, .stack = 1,
	       .frames = { (const char *)bytes, (uint32_t)(end - bytes) });
}

/* ---------------------------------------------------------------- a device */

static void gpu_put(unsigned code, uint64_t time, const uint64_t *fields)
{
	kind_counts[code]++;
	if (trace_put_event(gpu, time, code, fields, trace_event_descs[code].field_count))
		trace_buffer_flush(gpu);
}

static void gpu_work(uint64_t time, uint64_t what, uint64_t duration, uint64_t correlation,
		     uint64_t bytes, uint64_t detail)
{
	gpu_put(TRACE_GPU_WORK, time,
		(const uint64_t[]){ what, 0, duration, correlation, what > 1 && what < 5, bytes,
				    detail });
}

static void gpu_start(void)
{
	gpu = trace_buffer_acquire_others(&file, "gpu 0", START_NS);
	DEFINE(gpu, GPU_QUEUE, .queue = 1, .device = 0, .context = 1, .stream = 7);
	DEFINE(gpu, STRING, .string = 1000, .text = text("_Z6kernelPfi"));
	gpu_work(START_NS, TRACE_GPU_BEGIN, 0, 0, 0, 0);
}

/* What a launch leads to, once it is in the trace. */
static void gpu_launched(struct thread *thread)
{
	static uint64_t correlation, busy_until;
	uint64_t start = thread->time + 3000 > busy_until ? thread->time + 3000 : busy_until;
	uint64_t duration = 2000 + random_below(4000);

	correlation++;
	kind_counts[TRACE_CORRELATION]++;
	thread->events++;
	trace_put(thread->buffer, thread->time, CORRELATION, correlation);
	busy_until = start + duration;
	switch (correlation % 16) {
	case 3:
		gpu_work(start, TRACE_GPU_COPY, duration, correlation, 4096, 2 | 3 << 4 | 2 << 8);
		break;
	case 5: gpu_work(start, TRACE_GPU_SET, duration, correlation, 4096, 0); break;
	case 7: gpu_work(start, TRACE_GPU_GRAPH, duration, correlation, 0, 1); break;
	default:
		gpu_put(TRACE_GPU_KERNEL, start,
			(const uint64_t[]){ 1000, 0, duration, correlation, 1,
					    correlation % 16 == 9 ? 2 : 0 });
	}
}

static void gpu_end(void)
{
	uint64_t now = gpu->last_time;

	gpu_work(now, TRACE_GPU_SYNC, 1000, 0, 0, 3);
	gpu_work(now, TRACE_GPU_OVERHEAD, 1000, 0, 0, 65536);
	gpu_work(now, TRACE_GPU_END, 0, 0, 0, 0);
	trace_buffer_release(gpu);
}

/* ---------------------------------------------------------------- running it */

static void write_step(struct thread *thread, const struct step *step)
{
	struct trace_buffer *buffer = thread->buffer;
	uint64_t fields[TRACE_FIELDS_MAX];
	enum trace_event_kind kind = trace_event_descs[step->code].kind;
	/* Mostly within an eighth of the usual; now and then much longer. */
	uint32_t chance = random_next();
	uint64_t ns = step->ns - step->ns / 8 + (uint64_t)step->ns * (chance & 0xff) / 1024;

	if (!(chance >> 8 & 0x3ff))
		ns += 20000;
	thread->time += ns;
	define_used(thread, step);
	kind_counts[step->code]++;
	thread->events++;
	if (step->code == TRACE_LEAVE) {
		trace_leave(buffer, thread->time, thread->depths[--thread->open], step->fields[0]);
		return;
	}
	memcpy(fields, step->fields, sizeof(fields));
	if (step->code == TRACE_LEAVE_TO) {
		thread->open -= 2;
		fields[0] = buffer->depth = thread->depths[thread->open];
	} else if (step->code == TRACE_MADE) {
		fields[1] += thread->pass * threads[0].made;
	} else if (step->code == TRACE_NODE) {
		fields[2] += thread->pass * threads[0].made;
	}
	if (kind == TRACE_KIND_SPAN)
		thread->depths[thread->open++] = buffer->depth++;
	thread->spans += kind == TRACE_KIND_SPAN || kind == TRACE_KIND_LOOSE;
	if (trace_put_event(buffer, thread->time, step->code, fields,
			    trace_event_descs[step->code].field_count))
		trace_buffer_flush(buffer);
	if (gpu && step->code == TRACE_LAUNCH)
		gpu_launched(thread);
}

static void thread_start(struct thread *thread, unsigned number)
{
	static const struct step main_frame = { .code = TRACE_FRAME,
						.fields = { 1, 0, 0 },
						.ns = 100 };

	snprintf(thread->name, sizeof(thread->name),
		 number == 0 ? "python" :
		 number == 1 ? "pt_autograd_0" :
			       "worker-%u",
		 number);
	thread->steps = calloc(STEPS_MAX, sizeof(*thread->steps));
	thread->time = START_NS + number * 50000;
	running = thread;
	if (!thread->steps) {
		fprintf(stderr, "tare_gen: no memory\n");
		exit(2);
	}
	if (number == 1)
		make_backward(thread);
	else
		make_forward(thread);
	prctl(PR_SET_NAME, thread->name);
	thread->buffer = trace_buffer_acquire(&file, 0);
	if (!thread->buffer) {
		fprintf(stderr, "tare_gen: no room for thread %u\n", number);
		exit(2);
	}
	DEFINE(thread->buffer, TORCH_THREAD, .thread = thread->buffer->thread,
	       .torch_thread = number + 1);
	if (number != 1)
		write_step(thread, &main_frame);
}

/* Plays the thread that is furthest behind for a while. False: all have finished. */
static bool run_some(uint64_t *spans_left, bool unfinished)
{
	struct thread *thread = NULL;

	for (unsigned i = 0; i < thread_count; i++)
		if (threads[i].step_count && (!thread || threads[i].time < thread->time))
			thread = &threads[i];
	if (!thread || (!*spans_left && unfinished))
		return false;
	running = thread;
	for (uint64_t until = thread->time + 20000; thread->time < until && thread->step_count;) {
		const struct step *step = &thread->steps[thread->next++];
		uint64_t spans = thread->spans;

		if (!step->rare || thread->pass % RARE_EVERY == 0)
			write_step(thread, step);
		spans = thread->spans - spans;
		*spans_left -= spans < *spans_left ? spans : *spans_left;
		if (thread->next < thread->step_count)
			continue;
		thread->next = 0;
		thread->pass++;
		thread->time += pause_ns;
		if (!*spans_left)
			thread->step_count = 0;
	}
	return true;
}

static void print_counts(const char *title, const uint64_t *counts, unsigned count,
			 const struct name *names)
{
	const char *separator = "";

	printf("  \"%s\": {", title);
	for (unsigned i = 0; i < count; i++) {
		char path[128], name[64];

		if (!counts[i])
			continue;
		if (names)
			snprintf(name, sizeof(name), "%s", ""),
				printf("%s\"%s\": ", separator, names[i].name);
		else
			code_names(i + 1, path, sizeof(path), name, sizeof(name)),
				printf("%s\"%s %s\": ", separator, path, name);
		printf("%llu", (unsigned long long)counts[i]);
		separator = ", ";
	}
	printf("},\n");
}

static void print_all(void)
{
	const char *separator = "";
	uint64_t spans = 0;

	printf("{\n");
	print_counts("frames", frame_counts, COUNT(frame_counts), NULL);
	print_counts("ops", op_counts, COUNT(op_counts), ops);
	print_counts("functions", function_counts, COUNT(function_counts), functions);
	print_counts("nodes", node_counts, COUNT(node_counts), node_types);
	printf("  \"events\": {");
	for (unsigned i = 0; i < TRACE_EVENT_CODES; i++) {
		if (!kind_counts[i])
			continue;
		printf("%s\"%s\": %llu", separator, trace_event_descs[i].name,
		       (unsigned long long)kind_counts[i]);
		separator = ", ";
	}
	printf("},\n  \"threads\": [");
	for (unsigned i = 0; i < thread_count; i++) {
		printf("%s\n    {\"thread\": %u, \"name\": \"%s\", \"passes\": %llu, \"spans\": %llu, "
		       "\"events\": %llu}",
		       i ? "," : "", i + 1, threads[i].name, (unsigned long long)threads[i].pass,
		       (unsigned long long)threads[i].spans, (unsigned long long)threads[i].events);
		spans += threads[i].spans;
	}
	printf("],\n  \"spans\": %llu\n}\n", (unsigned long long)spans);
}

/* Of plausible sizes; frames that are entered directly (12) cost more. */
static void define_weights(struct trace_buffer *buffer)
{
	static const struct {
		const char *kind;
		uint32_t distance, interval, inside, outside, error;
	} weights[] = {
		{ "event", 0, 40, 10000, 12000, 1000 },  { "frame", 0, 40, 5000, 20000, 3000 },
		{ "frame", 0, 400, 8000, 23000, 3000 },  { "frame", 13, 40, 5000, 38000, 4000 },
		{ "frame", 13, 400, 8000, 41000, 4000 }, { "generator", 0, 40, 5000, 27000, 3000 },
		{ "op", 0, 40, 4000, 12000, 1000 },      { "mark", 0, 40, 0, 9500, 1000 },
	};

	for (unsigned i = 0; i < COUNT(weights); i++)
		DEFINE(buffer, CALIBRATION, .kind = text(weights[i].kind),
		       .distance = weights[i].distance, .interval_ns = weights[i].interval,
		       .inside_ps = weights[i].inside, .outside_ps = weights[i].outside,
		       .error_ps = weights[i].error, .source = text("calibrated"));
}

static int usage(void)
{
	fprintf(stderr, "usage: tare_gen FILE --spans N [--threads T] [--seed S] [--max-bytes N] "
			"[--pass N] [--lost N] [--pause S] [--unfinished] [--plain] "
			"[--stacks] [--calibrated] [--gpu]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "spans", required_argument, NULL, 'n' },
		{ "threads", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "max-bytes", required_argument, NULL, 'm' },
		{ "pass", required_argument, NULL, 'l' },
		{ "lost", required_argument, NULL, 'o' },
		{ "pause", required_argument, NULL, 'w' },
		{ "unfinished", no_argument, NULL, 'u' },
		{ "plain", no_argument, NULL, 'p' },
		{ "stacks", no_argument, NULL, 'k' },
		{ "calibrated", no_argument, NULL, 'c' },
		{ "gpu", no_argument, NULL, 'g' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t spans = 0, max_bytes = UINT64_MAX, seed = 1, lost = 0;
	bool with_gpu = false, unfinished = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n': spans = strtoull(optarg, NULL, 0); break;
		case 't': thread_count = (unsigned)strtoul(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'm': max_bytes = strtoull(optarg, NULL, 0); break;
		case 'l': pass_steps = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'o': lost = strtoull(optarg, NULL, 0); break;
		case 'w': pause_ns = strtoull(optarg, NULL, 0) * 1000000000u; break;
		case 'u': unfinished = true; break;
		case 'p': plain = true; break;
		case 'k': stacks = true; break;
		case 'c': calibrated = true; break;
		case 'g': with_gpu = true; break;
		default: return usage();
		}
	}
	if (optind + 1 != argc || !spans || !thread_count || thread_count > THREADS_MAX ||
	    pass_steps > STEPS_MAX / 2)
		return usage();
	random_state = seed * 0x9e3779b97f4a7c15u | 1;
	/* CLOCK_MONOTONIC, which is ours; the TSC would be the machine's. */
	struct trace_clock_pair load = trace_clock_pair(&file);
	unlink(argv[optind]);
	int error = trace_file_create(&file, argv[optind], load);
	if (error) {
		fprintf(stderr, "tare_gen: %s: %s\n", argv[optind], strerror(error));
		return 2;
	}
	file.max_bytes = max_bytes;
	for (unsigned i = 0; i < thread_count; i++)
		thread_start(&threads[i], i);
	struct trace_buffer *first = threads[0].buffer;
	DEFINE(first, INFO, .key = text("python"), .value = text("3.9.18"));
	DEFINE(first, INFO, .key = text("torch"), .value = text("2.14.1"));
	DEFINE(first, INFO, .key = text("cuda"), .value = text("libcudart.so.12"));
	DEFINE(first, INFO, .key = text("host"), .value = text("invented"));
	DEFINE(first, INFO, .key = text("command"), .value = text("python main.py"));
	DEFINE(first, LAYER, .layer = text("frames"), .state = 1,
	       .detail = text("eval frame hook"));
	DEFINE(first, LAYER, .layer = text("ops"), .state = 1, .detail = text("taps"));
	DEFINE(first, LAYER, .layer = text("cuda"), .state = 1, .detail = text("libcudart.so.12"));
	DEFINE(first, LAYER, .layer = text("gpu"), .state = with_gpu,
	       .detail = text(with_gpu ? "CUPTI 130001" : "not asked for"));
	if (with_gpu)
		gpu_start();
	if (stacks)
		define_stack(first);
	if (calibrated)
		define_weights(first);
	if (lost) {
		trace_file_lost(&file, lost);
		DEFINE(first, LOST, .thread = 1, .events = lost,
		       .reason = text("as was asked for"));
	}
	while (run_some(&spans, unfinished))
		;
	if (!unfinished) {
		for (unsigned i = 0; i < thread_count; i++) {
			static const struct step leave = { .code = TRACE_LEAVE, .ns = 100 };

			running = &threads[i];
			if (running->open)
				write_step(running, &leave);
			trace_buffer_release(running->buffer);
		}
		if (gpu)
			gpu_end();
		trace_file_end(&file, TRACE_END_EXIT);
	}
	print_all();
	return 0;
}
