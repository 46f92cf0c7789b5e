/*
 * operators.h: what the operator tap knows of an operator, and the registers it sees it with.
 *
 * For operator_tap.c and operator_name.c. The registers are the processor's: see operator_tap.c.
 */
#pragma once

#include <stdint.h>

#include "torchhooks/id_cache.h"

/* Registers that the dispatcher's function must get back unchanged, as they were when it called. */
#define TAP_REGISTERS 6u

struct tap_frame {
	uint64_t registers
		[TAP_REGISTERS]; /* the last is the frame pointer: its place is the tap's frame */
	uint64_t return_address;
};

static inline const void *tap_frame_address(const struct tap_frame *frame)
{
	return &frame->registers[TAP_REGISTERS - 1];
}

/*
 * Of an operator's `detail` in the cache: words from the tap's frame up to the stack word that holds
 * the dispatching function's return address (0: unknown), and which register names the operator. Of one that
 * is named by a register there is an entry of its own, whose detail is an operator_range: operator_learn() joins them.
 */
#define DETAIL_WORDS_BITS    20u
#define DETAIL_RANGE_SHIFT   24u
#define DETAIL_WORDS(detail) ((detail) & ((1u << DETAIL_WORDS_BITS) - 1))
#define DETAIL_REGISTER(detail)                                                                    \
	((detail) >> DETAIL_WORDS_BITS & 15) /* + 1; 0: the address is enough */
#define DETAIL_RANGE(detail) ((enum operator_range)((detail) >> DETAIL_RANGE_SHIFT))

/* What the operator does to user ranges. user_ranges.c */
enum operator_range { OPERATOR_NO_RANGE, OPERATOR_BEGINS_RANGE, OPERATOR_ENDS_RANGE };

enum operator_range operator_range_of(const char *name);

/* After the operator's event. */
void range_of_operator(struct tare_thread *thread, const struct tap_frame *frame,
		       enum operator_range range);

extern struct id_cache operators __attribute__((visibility("hidden")));

/*
 * Where the cache's answer is not enough: a new address, a trace without its definition, or a function
 * that calls many operators. Writes what has to be defined.
 */
struct id_found operator_learn(struct tare_thread *thread, const struct tap_frame *frame,
			       struct id_found found);

/* The id of an operator that is known by name. */
uint32_t operator_named(struct tare_thread *thread, const char *name, const char *overload);

/* Name of the function that `address` is in; NULL where no exported one is known. operator_symbol.c */
const char *operator_symbol(uint64_t address);

/*
 * Words from `frame_address` up to the return address of the function that called the tap with
 * `return_address`; 0 where it cannot be found. stack_word.c
 */
uint32_t stack_word_distance(const void *frame_address, uint64_t return_address);

/* Whether that word is a return address of a function that runs now. stack_word.c */
bool stack_word_in_use(const uintptr_t *word);
