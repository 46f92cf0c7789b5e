/*
 * stacks.c: see stacks.h.
 *
 * A stack is followed by libgcc's unwinder, a tenth of a microsecond a frame, which C++ programs have
 * loaded already. libunwind would be faster, but keeps two of the program's file descriptors and a lock.
 * Each thread keeps the stacks that it had last, with the places of their return addresses: while all of
 * these hold what they held the stack is the same, and costs a look at each.
 *
 * Between them threads share what is written once: a thread that finds another at it does without.
 */
#include "preload/stacks.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include "preload/modules.h"
#include "preload/process.h"

#define UNWINDER   "libgcc_s.so.1"
#define LEAST_NS   5000u /* idle calls take less, see the analyzer's calls.c */
#define LEAST_TEXT "of calls of 5 us or more, by " UNWINDER
#define DEPTH_MAX  96u
#define KNOWN_MAX  64u        /* of a thread */
#define GAP_MAX    (1u << 20) /* between two return addresses of one stack */
#define STACKS_MAX 4096u      /* of a trace */
#define TABLE_SIZE (2 * STACKS_MAX)

struct stack {
	uintptr_t frame; /* of the wrapper */
	uint32_t id;
	uint32_t count;
	bool comparable;            /* by its words */
	uintptr_t words[DEPTH_MAX]; /* where the return addresses lie */
	uintptr_t addresses[DEPTH_MAX];
};

struct tare_stacks {
	uint32_t next;               /* of `known`, to be replaced */
	uintptr_t frames[KNOWN_MAX]; /* theirs, side by side */
	struct stack known[KNOWN_MAX];
};

bool stacks_on;
uint64_t stacks_least_units;

static _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*get_ip_info)(struct _Unwind_Context *, int *);
static _Unwind_Word (*get_cfa)(struct _Unwind_Context *);

/* What follows belongs to the thread that set `busy`. */
static bool busy;
static struct {
	uint32_t generation, count;
	struct {
		uint64_t hash;
		uint32_t id;
	} table[TABLE_SIZE];
	struct stack found;
	uint8_t bytes[DEPTH_MAX * 2 * VARINT_BYTES_MAX];
} shared;

static bool find_unwinder(void)
{
	bool changed = tare_tls.libraries_changed;
	void *library = dlopen(UNWINDER, RTLD_LAZY | RTLD_LOCAL);

	tare_tls.libraries_changed = changed;
	if (!library)
		return false;
	backtrace = (__typeof__(backtrace))dlsym(library, "_Unwind_Backtrace");
	get_ip_info = (__typeof__(get_ip_info))dlsym(library, "_Unwind_GetIPInfo");
	get_cfa = (__typeof__(get_cfa))dlsym(library, "_Unwind_GetCFA");
	return backtrace && get_ip_info && get_cfa;
}

static uint64_t least_units(void)
{
	const struct trace_clock_pair *load = &tare_process.file.header->load;
	struct trace_clock_pair now = trace_clock_pair(&tare_process.file);
	uint64_t ns = now.monotonic_ns - load->monotonic_ns;
	uint64_t units = now.units - load->units;

	return ns ? (uint64_t)((double)LEAST_NS * (double)units / (double)ns) : LEAST_NS;
}

void stacks_set_up(void)
{
	static bool done;
	int saved_errno = errno;

	if (process.knobs.stacks != KNOB_STACKS_WAIT ||
	    __atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
		return;
	if (find_unwinder()) {
		stacks_least_units = least_units();
		tare_note_layer("stacks", 1, LEAST_TEXT);
		__atomic_store_n(&stacks_on, true, __ATOMIC_RELEASE);
	} else {
		tare_note_layer("stacks", 2, UNWINDER " cannot be loaded");
	}
	errno = saved_errno;
}

/* ---------------------------------------------------------------- a stack that is known */

static bool is_present(const struct stack *stack)
{
	/* From the innermost on: so far as they agree, the stack has not become shorter. */
	for (uint32_t i = 0; i < stack->count; i++)
		if (*(const uintptr_t *)stack->words[i] != stack->addresses[i])
			return false;
	return true;
}

static void remember(struct tare_thread *thread, const struct stack *stack)
{
	struct tare_stacks *stacks = thread->stacks;

	if (!stack->comparable)
		return;
	if (!stacks) {
		stacks = mmap(NULL, sizeof(*stacks), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (stacks == MAP_FAILED)
			return;
		thread->stacks = stacks;
	}
	uint32_t place = stacks->next++ % KNOWN_MAX;
	stacks->frames[place] = stack->frame;
	stacks->known[place] = *stack;
}

/* ---------------------------------------------------------------- one that is not */

/* The unwinder tells a frame's return address, and the CFA of the frame below: it lies just beneath. */
static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *arg)
{
	struct stack *stack = arg;
	uintptr_t word = get_cfa(context) - sizeof(uintptr_t), address;
	int interrupted = 0;

	if (!stack->count && word < stack->frame)
		return _URC_NO_REASON; /* our own */
	address = get_ip_info(context, &interrupted);
	if (!address || stack->count == DEPTH_MAX)
		return _URC_END_OF_STACK;
	if (stack->count) {
		uintptr_t before = stack->words[stack->count - 1];

		stack->comparable &= word > before && word - before <= GAP_MAX;
	}
	/* A frame that a signal interrupted: its address is no return address, and lies elsewhere. */
	if (interrupted)
		stack->comparable = false;
	else
		stack->comparable &= *(const uintptr_t *)word == address;
	stack->words[stack->count] = word;
	stack->addresses[stack->count++] = address + (interrupted != 0);
	return _URC_NO_REASON;
}

static uint64_t hash_of(const struct stack *stack)
{
	uint64_t hash = stack->count;

	for (uint32_t i = 0; i < stack->count; i++) {
		hash = (hash ^ stack->addresses[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash | 1;
}

/* Writes it. 0: that failed. */
static uint32_t define(struct trace_buffer *buffer, const struct stack *stack)
{
	uint8_t *end = shared.bytes;
	uint32_t id = shared.count + 1;

	modules_learn(buffer, stack->addresses, stack->count);
	for (uint32_t i = 0; i < stack->count; i++) {
		uint64_t bias;
		uint32_t module = modules_find(stack->addresses[i] - 1, &bias);

		end = put_varint(put_varint(end, module), stack->addresses[i] - bias);
	}
	if (!trace_define(buffer, TRACE_RECORD_STACK,
			  &(struct record_STACK){
				  .stack = id,
				  .frames = { (const char *)shared.bytes,
					      (uint32_t)(end - shared.bytes) },
			  }))
		return 0;
	shared.count = id;
	return id;
}

static uint32_t intern(struct trace_buffer *buffer, const struct stack *stack)
{
	uint64_t hash = hash_of(stack);
	uint32_t place = (uint32_t)(hash >> 32) % TABLE_SIZE;

	while (shared.table[place].hash && shared.table[place].hash != hash)
		place = (place + 1) % TABLE_SIZE;
	if (!shared.table[place].hash) {
		uint32_t id = shared.count < STACKS_MAX ? define(buffer, stack) : 0;

		if (!id)
			return 0;
		shared.table[place].id = id;
		shared.table[place].hash = hash;
	}
	return shared.table[place].id;
}

/* A forked child's trace has nothing of its parent's. */
static void start_over(void)
{
	shared.generation = tare_generation;
	shared.count = 0;
	memset(shared.table, 0, sizeof(shared.table));
	modules_forget();
}

static TARE_COLD uint32_t find_new(struct tare_thread *thread, const void *frame)
{
	struct stack *stack = &shared.found;
	int saved_errno = errno;

	if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
		return 0;
	if (shared.generation != tare_generation)
		start_over();
	stack->id = stack->count = 0;
	/* Beyond so many it is a program of too many ways: what is known must do. */
	if (shared.count < STACKS_MAX) {
		stack->frame = (uintptr_t)frame;
		stack->comparable = true;
		backtrace(visit, stack);
	}
	if (stack->count)
		stack->id = intern(thread->buffer, stack);
	if (stack->id)
		remember(thread, stack);
	uint32_t id = stack->id;
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	errno = saved_errno;
	return id;
}

uint32_t stacks_find(struct tare_thread *thread, const void *frame, bool *new_p)
{
	struct tare_stacks *stacks = thread->stacks;

	for (uint32_t i = 0; stacks && i < KNOWN_MAX; i++)
		if (stacks->frames[i] == (uintptr_t)frame && is_present(&stacks->known[i]))
			return stacks->known[i].id;
	*new_p = true;
	return find_new(thread, frame);
}

/* ---------------------------------------------------------------- threads, fork */

void stacks_thread_end(struct tare_thread *thread)
{
	if (thread->stacks)
		munmap(thread->stacks, sizeof(*thread->stacks));
	thread->stacks = NULL;
}

void stacks_fork_child(void)
{
	busy = false;
}
