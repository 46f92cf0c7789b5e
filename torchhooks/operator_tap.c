/*
 * operator_tap.c: records every operator that torch's dispatcher calls.
 *
 * libtorch's at::_ops::NAME::call asks at::getStepCallbacksUnlessEmpty, through its PLT, whether a
 * profiler wants to see the operator. That function is interposed here; the return address says which
 * operator it is. There is no leave: see tare_ops_over.
 *
 * The hook must hand over to the real function by a jump, with the arguments as they came.
 */
#include "torchhooks/operators.h"
#include "torchhooks/torch.h"

#include <string.h>

#if defined(__x86_64__)

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

static void *step_callbacks_resolve(void *result, uint8_t scope);

/* Returns std::optional<StepCallbacks> in memory that the caller has. */
__attribute__((used,
	       visibility("hidden"))) void *(*tap_real)(void *result,
							uint8_t scope) = step_callbacks_resolve;

/* Also while it is not known yet. A byte of its own for the stub below. */
__attribute__((visibility("hidden"))) bool tap_wanted = true;

/*
 * Scope 0 is FUNCTION. A stub in assembly, because the registers are wanted as the caller left them,
 * and because the jump at its end must be one. Lays out a struct tap_frame.
 */
/* clang-format off */
__asm__(
	".pushsection .text.hot.tap, \"ax\", @progbits\n"
	".globl " STRING(SYMBOL_STEP_CALLBACKS) "\n"
	".type " STRING(SYMBOL_STEP_CALLBACKS) ", @function\n"
	".p2align 4\n"
	STRING(SYMBOL_STEP_CALLBACKS) ":\n"
	".cfi_startproc\n"
	"	testb %sil, %sil\n"
	"	jne 1f\n"
	"	cmpb $0, tap_wanted(%rip)\n"
	"	je 1f\n"
	"	pushq %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	pushq %rdi\n"
	"	leaq 8(%rsp), %rdi\n"
	"	call tap_operator\n"
	"	popq %rdi\n"
	"	xorl %esi, %esi\n"
	"	leave\n"
	".cfi_def_cfa %rsp, 8\n"
	"1:	jmpq *tap_real(%rip)\n"
	".cfi_endproc\n"
	".size " STRING(SYMBOL_STEP_CALLBACKS) ", . - " STRING(SYMBOL_STEP_CALLBACKS) "\n"
	".popsection\n");
/* clang-format on */

/* Reached only through the stub. */
__attribute__((used, visibility("hidden"))) void tap_operator(const struct tap_frame *frame);

TARE_COLD static void tap_first(void)
{
	torch.tap_fired = true;
	tare_note_layer("ops.tap", 1,
			"each operator, at the dispatcher's call of getStepCallbacksUnlessEmpty");
}

TARE_HOT void tap_operator(const struct tap_frame *frame)
{
	const void *frame_address = tap_frame_address(frame);
	struct tare_thread *thread;
	struct id_found found;
	uint32_t over = 0, words;
	uint64_t site = 0;

	if (tare_unlikely(!torch.found))
		torch_not_found_yet();
	if (!torch.ops_by_tap || !(thread = tare_begin(TARE_SOURCE_OP)))
		return;
	found = id_cache_find(&operators, frame->return_address);
	if (tare_unlikely(!found.defined || DETAIL_REGISTER(found.detail)))
		found = operator_learn(thread, frame, found);
	if (tare_unlikely(!torch.tap_fired))
		tap_first();
	/* As if the dispatching function had asked: what runs around it lies above its frame, all of it. */
	words = DETAIL_WORDS(found.detail);
	if (thread->op_count > thread->op_base)
		over = tare_ops_over(thread, (const uintptr_t *)frame_address + words - !!words);
	if (!thread->section_open) {
		sequence_note(thread);
		site = tare_site(thread);
	}
	trace_put(thread->buffer, tare_now(), OP, found.id, over, site);
	if (tare_likely(thread->op_count < TARE_OPEN_OPS_MAX)) {
		struct tare_open_op *op = &thread->ops[thread->op_count++];

		op->frame = (uintptr_t)frame_address;
		op->word = words ? (const uintptr_t *)frame_address + words : NULL;
		op->value = words ? *op->word : 0;
	}
	if (tare_unlikely(DETAIL_RANGE(found.detail) != OPERATOR_NO_RANGE))
		range_of_operator(thread, frame, DETAIL_RANGE(found.detail));
	tare_end(thread);
}

static void *no_callbacks(void *result, uint8_t scope)
{
	(void)scope;
	return result;
}

extern void *step_callbacks(void *result, uint8_t scope) __asm__(STRING(SYMBOL_STEP_CALLBACKS));

/* In a section, as most operators are. They have no leave. */
uint64_t tap_calibrate(struct tare_thread *thread)
{
	char result[104];

	torch.found = torch.ops_by_tap = torch.tap_fired = tap_wanted = true;
	tap_real = no_callbacks;
	thread->section_open = 1;
	step_callbacks(result, 0);
	thread->section_open = 0;
	return 0;
}

/* The first call. The real one is there: libtorch_cpu's definition is the one that we stand before. */
TARE_COLD static void *step_callbacks_resolve(void *result, uint8_t scope)
{
	void *(*real)(void *, uint8_t) = torch_find(STRING(SYMBOL_STEP_CALLBACKS));

	if (!real)
		return memset(result, 0, 104); /* "no callbacks": an empty optional */
	__atomic_store_n(&tap_real, real, __ATOMIC_RELAXED);
	return real(result, scope);
}

#endif
