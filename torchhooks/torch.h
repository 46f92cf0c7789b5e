/*
 * torch.h: what the files of torchhooks/ share.
 *
 * For torchhooks/ alone. set_up.c fills `torch` once, when libtorch is there; the hooks read it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/runtime.h"

/*
 * Symbols of libtorch_cpu, by their mangled names: at::getStepCallbacksUnlessEmpty(RecordScope),
 * Engine::evaluate_function(shared_ptr<GraphTask>&, Node*, InputBuffer&, shared_ptr<ReadyQueue> const&),
 * at::sequence_number::peek(), at::RecordFunction::currentThreadId(), ...
 */
#define SYMBOL_STEP_CALLBACKS _ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE
#define SYMBOL_EVALUATE                                                                            \
	_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE

#define TORCH_FUNCTIONS(FUNCTION)                                                                  \
	FUNCTION(sequence_peek, uint64_t, (void), "_ZN2at15sequence_number4peekEv")                \
	FUNCTION(thread_id, uint64_t, (void), "_ZN2at14RecordFunction15currentThreadIdEv")         \
	FUNCTION(range_name, const char *, (const void *record), "_ZNK2at14RecordFunction4nameEv") \
	FUNCTION(range_overload, const char *, (const void *record),                               \
		 "_ZNK2at14RecordFunction13overload_nameEv")                                       \
	FUNCTION(remove_callback, void, (uint64_t handle), "_ZN2at14removeCallbackEm")

/* Pointers to them: NULL until libtorch is there, and where it has no such function. */
struct torch {
#define FUNCTION_(name, type, arguments, symbol) type(*name) arguments;
	TORCH_FUNCTIONS(FUNCTION_)
#undef FUNCTION_
	bool found;      /* libtorch is there, and the hooks are being put in place */
	bool ops_by_tap; /* the tap records operators */
	bool ops_by_record_function;
	bool tap_fired;            /* an operator has come through the tap */
	bool node_fired;           /* a node has come through its hook */
	bool unwinds;              /* there is an unwinder to ask */
	uint64_t short_wait_units; /* waits for the GIL that were shorter are not worth a span */
};

extern struct torch torch __attribute__((visibility("hidden")));

/* Handle of a library, if it is loaded. set_up.c */
void *torch_loaded(const char *soname);

/* Whether the tap has anything to do, operator_tap.c. */
extern bool tap_wanted __attribute__((visibility("hidden")));

/* An operator came through the tap while nothing was set up. set_up.c */
void torch_not_found_yet(void);

/* A function of libtorch_cpu; NULL where there is none. set_up.c */
void *torch_find(const char *symbol);

/* A function of libgcc's unwinder, which is not linked: unwinder.c says why. */
void *unwinder_find(const char *name);

/* Finds the unwinder. stack_word.c */
bool stack_words_set_up(void);

/* For tare_op_runs. operator_open.c */
bool operator_runs(struct tare_thread *thread, const struct tare_open_op *op,
		   const void *frame_address);

/* Patches libtorch_python's calls of the interpreter. sections.c */
bool sections_patch(void);

/* One section, or operator, for `tare calibrate`. sections.c, operator_tap.c */
uint64_t sections_calibrate(struct tare_thread *thread);
uint64_t tap_calibrate(struct tare_thread *thread);

/*
 * RecordFunction callbacks: operators where the taps do not serve. record_function.c. `add` returns a handle, or 0;
 * `start` gets a place for a context, which stays empty.
 */
bool ops_register(void);
uint64_t record_function_add(unsigned scope, void *(*start)(void **context, const void *record),
			     void (*end)(const void *record, void *context));

/* User ranges by such callbacks. Once; before that the tap tells them. user_ranges.c */
void ranges_register(void);

/* A section was opened while no operator has come through the tap: after some, they should have. set_up.c */
void torch_suspect_tap(void);

/* MADE: tells which autograd nodes this thread made since the last time. sequence.c */
void sequence_tell(struct tare_thread *thread, uint64_t sequence, uint64_t now);

/* Whether there is something to tell: torch's next number + 1, else 0. */
static inline uint64_t sequence_changed(struct tare_thread *thread)
{
	uint64_t sequence = tare_likely(torch.sequence_peek != NULL) ? torch.sequence_peek() + 1 :
								       0;

	return tare_likely(sequence == thread->next_sequence) ? 0 : sequence;
}

static inline void sequence_note(struct tare_thread *thread)
{
	uint64_t sequence = sequence_changed(thread);

	if (tare_unlikely(sequence))
		sequence_tell(thread, sequence, tare_now());
}

/* What is open in the operators' stack around a span, put back when the span is left. */
struct ops_around {
	uint32_t base, count;
};

static inline struct ops_around ops_enter(struct tare_thread *thread)
{
	struct ops_around around = { thread->op_base, thread->op_count };

	thread->op_base = thread->op_count;
	return around;
}

static inline void ops_leave(struct tare_thread *thread, struct ops_around around)
{
	thread->op_base = around.base;
	thread->op_count = around.count;
}
