/*
 * sequence.c: tells which autograd nodes a thread made, by torch's sequence number.
 */
#include "torchhooks/torch.h"

/*
 * `sequence`: torch's next number + 1. Of a thread that is seen for the first time nothing is told:
 * what it made before is not in this trace.
 */
TARE_COLD void sequence_tell(struct tare_thread *thread, uint64_t sequence, uint64_t now)
{
	uint64_t before = thread->next_sequence;

	thread->next_sequence = sequence;
	if (!before || sequence < before)
		return;
	if (!thread->torch_thread_told && torch.thread_id) {
		struct record_TORCH_THREAD record = {
			.thread = thread->buffer->thread,
			.torch_thread = torch.thread_id(),
		};

		thread->torch_thread_told =
			trace_define(thread->buffer, TRACE_RECORD_TORCH_THREAD, &record);
	}
	trace_put(thread->buffer, now, MADE, sequence - before, before - 1);
}
