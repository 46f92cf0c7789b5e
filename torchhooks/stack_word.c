/*
 * stack_word.c: which stack word holds a function's return address, and whether it still does, by
 * libgcc's unwinder.
 *
 * Takes a microsecond for each frame, so each question is asked once, see operator_open.c.
 */
#include <unwind.h>

#include "torchhooks/operators.h"
#include "torchhooks/safe_read.h"
#include "torchhooks/torch.h"

static _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*get_ip)(struct _Unwind_Context *);
static _Unwind_Word (*get_cfa)(struct _Unwind_Context *);

bool stack_words_set_up(void)
{
	backtrace = unwinder_find("_Unwind_Backtrace");
	get_ip = unwinder_find("_Unwind_GetIP");
	get_cfa = unwinder_find("_Unwind_GetCFA");
	return backtrace && get_ip && get_cfa;
}

/* The word below the CFA, which the unwinder tells for the frame below the one that it shows. */
static uint64_t return_word(struct _Unwind_Context *context)
{
	return get_cfa(context) - sizeof(uintptr_t);
}

struct search {
	uint64_t return_address;
	bool passed;   /* the frame that the address lies in */
	uint64_t word; /* of that frame; 0: not known */
};

static _Unwind_Reason_Code search_visit(struct _Unwind_Context *context, void *arg)
{
	struct search *search = arg;
	uint64_t held;

	if (search->passed) {
		if (safe_read_word(return_word(context), &held) && held == get_ip(context))
			search->word = return_word(context);
		return _URC_END_OF_STACK;
	}
	search->passed = get_ip(context) == search->return_address;
	return _URC_NO_REASON;
}

uint32_t stack_word_distance(const void *frame_address, uint64_t return_address)
{
	struct search search = { .return_address = return_address };

	if (!torch.unwinds)
		return 0;
	backtrace(search_visit, &search);
	if (search.word <= (uint64_t)frame_address)
		return 0;
	return (uint32_t)((search.word - (uint64_t)frame_address) / sizeof(uintptr_t));
}

struct check {
	uint64_t word;
	bool in_use;
};

/* A stack that cannot be followed so far up says nothing: then it may be. */
static _Unwind_Reason_Code check_visit(struct _Unwind_Context *context, void *arg)
{
	struct check *check = arg;
	uint64_t word = return_word(context);

	if (word < check->word)
		return _URC_NO_REASON;
	check->in_use = word == check->word;
	return _URC_END_OF_STACK;
}

bool stack_word_in_use(const uintptr_t *word)
{
	struct check check = { .word = (uint64_t)word, .in_use = true };

	backtrace(check_visit, &check);
	return check.in_use;
}
