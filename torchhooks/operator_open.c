/*
 * operator_open.c: whether an operator runs, where what the stack holds does not tell.
 *
 * A function that was called after the operator's end may have room for variables, not written yet,
 * just where the operator's frame was. Whether it is so depends on who called both and on how far apart
 * they are on the stack alone, so the answer is found once and kept.
 */
#include <errno.h>

#include "torchhooks/operators.h"
#include "torchhooks/torch.h"

#define ANSWERS_BITS 14u
#define ANSWERS_MAX  (1u << (ANSWERS_BITS - 1)) /* then no more are looked for */

enum { ANSWER_RUNS = 1, ANSWER_OVER = 2, ANSWER_MASK = 3 };

static struct id_entry answer_entries[1u << ANSWERS_BITS];
static const struct id_cache answers = { .bits = ANSWERS_BITS, .entries = answer_entries };
static uint32_t answer_count;

TARE_COLD static bool find_answer(struct tare_thread *thread, const struct tare_open_op *op,
				  uint64_t key)
{
	uint32_t depth = thread->buffer->depth;
	int saved_errno = errno;
	bool runs;

	if (__atomic_add_fetch(&answer_count, 1, __ATOMIC_RELAXED) > ANSWERS_MAX)
		return true;
	trace_enter(thread->buffer, tare_now(), TARE, 2);
	runs = stack_word_in_use(op->word);
	id_cache_keep(&answers, key, runs ? ANSWER_RUNS : ANSWER_OVER, 0);
	trace_leave(thread->buffer, tare_now(), depth, 0);
	errno = saved_errno;
	return runs;
}

/*
 * The newest answers, which lie closely: keys with the answer as their low bits. Nearly all questions are
 * those of the last pass of a loop.
 */
#define RECENT_BITS 10u

static uint64_t recent[1u << RECENT_BITS];

TARE_HOT bool operator_runs(struct tare_thread *thread, const struct tare_open_op *op,
			    const void *frame_address)
{
	const uintptr_t *frame = frame_address;
	uint64_t key = frame[1] * 0x9e3779b97f4a7c15u; /* who called the function with that frame */
	struct id_found found;
	uint64_t *near;

	if (!op->word)
		return true;
	key = (key ^ op->value) * 0xc2b2ae3d27d4eb4fu;
	key = (key ^ (key >> 29) ^ (uint64_t)(op->word - frame)) * 0xff51afd7ed558ccdu;
	near = &recent[key >> (64 - RECENT_BITS)];
	key &= ~(uint64_t)ANSWER_MASK;
	uint64_t known = __atomic_load_n(near, __ATOMIC_RELAXED);
	if (tare_likely((known ^ key) <= ANSWER_MASK && known & ANSWER_MASK))
		return (known & ANSWER_MASK) == ANSWER_RUNS;
	found = id_cache_find(&answers, key);
	if (tare_unlikely(!found.id))
		return find_answer(thread, op, key);
	__atomic_store_n(near, key | found.id, __ATOMIC_RELAXED);
	return found.id == ANSWER_RUNS;
}
