/*
 * stack_word.c: finds the stack word that holds a function's return address, with libgcc's unwinder.
 */
#include <unwind.h>

#include "torchhooks/operators.h"
#include "torchhooks/safe_read.h"
#include "torchhooks/torch.h"

struct search {
	uint64_t return_address;
	bool passed;  /* the frame that the address lies in */
	uint64_t cfa; /* of that frame; 0: not known */
	uint64_t (*get_ip)(struct _Unwind_Context *);
	uint64_t (*get_cfa)(struct _Unwind_Context *);
};

/*
 * The unwinder's CFA is that of the frame below the one it shows. What lies there must be where that
 * frame returns to.
 */
static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *arg)
{
	struct search *search = arg;

	if (search->passed) {
		uint64_t cfa = search->get_cfa(context);
		uint64_t word;

		if (safe_read_word(cfa - sizeof(word), &word) && word == search->get_ip(context))
			search->cfa = cfa;
		return _URC_END_OF_STACK;
	}
	search->passed = search->get_ip(context) == search->return_address;
	return _URC_NO_REASON;
}

uint32_t stack_word_distance(const void *frame_address, uint64_t return_address)
{
	_Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *) =
		unwinder_find("_Unwind_Backtrace");
	struct search search = {
		.return_address = return_address,
		.get_ip = unwinder_find("_Unwind_GetIP"),
		.get_cfa = unwinder_find("_Unwind_GetCFA"),
	};
	uint64_t word;

	if (!backtrace || !search.get_ip || !search.get_cfa)
		return 0;
	backtrace(visit, &search);
	word = search.cfa - sizeof(uintptr_t);
	if (!search.cfa || word <= (uint64_t)frame_address)
		return 0;
	return (uint32_t)((word - (uint64_t)frame_address) / sizeof(uintptr_t));
}
