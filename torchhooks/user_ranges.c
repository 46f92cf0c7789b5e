/*
 * user_ranges.c: user ranges, record_function.
 *
 * Python begins and ends one by operators of torch's, which come through the tap: the name is an argument of the
 * first. A callback of RecordFunction would tell the same, but any that is registered costs each backward node a
 * quarter of a microsecond, wherever ranges are: so that serves only where the tap does not, or the argument is not found.
 */
#include <string.h>

#include "torchhooks/operators.h"
#include "torchhooks/safe_read.h"
#include "torchhooks/torch.h"

#define SCOPE_USER 7

/* ---------------------------------------------------------------- events */

#define TEXTS_BITS 12u

static struct id_entry text_entries[1u << TEXTS_BITS];
static struct id_cache texts = {
	.bits = TEXTS_BITS,
	.entries = text_entries,
	.last_id = &tare_string_ids,
};

static uint32_t text_id(struct tare_thread *thread, const char *text)
{
	size_t bytes = strlen(text);
	uint64_t key = text_key(text, bytes);
	struct id_found found = id_cache_find(&texts, key);

	if (tare_unlikely(!found.defined)) {
		struct record_STRING record = { .text = { text, (uint32_t)bytes } };

		record.string = found.id = id_cache_id(&texts, found);
		trace_define(thread->buffer, TRACE_RECORD_STRING, &record);
		id_cache_keep(&texts, key, found.id, 0);
	}
	return found.id;
}

static void begin(struct tare_thread *thread, const char *name)
{
	uint32_t id = text_id(thread, name);

	trace_put(thread->buffer, tare_now(), RANGE_BEGIN, id);
	thread->ranges_open++;
}

static void end(struct tare_thread *thread)
{
	if (!thread->ranges_open)
		return;
	thread->ranges_open--;
	trace_put(thread->buffer, tare_now(), RANGE_END, 0);
}

/* ---------------------------------------------------------------- by RecordFunction */

static void *range_start(void **context, const void *record)
{
	struct tare_thread *thread = tare_begin(TARE_SOURCE_OP);

	*context = NULL;
	if (!thread)
		return context;
	tare_close_ops(thread, __builtin_frame_address(0));
	begin(thread, torch.range_name(record));
	tare_end(thread);
	return context;
}

static void range_end(const void *record, void *context)
{
	struct tare_thread *thread = tare_begin_leave();

	(void)record;
	(void)context;
	if (!thread)
		return;
	if (thread->ranges_open)
		tare_close_ops(thread, __builtin_frame_address(0));
	end(thread);
	tare_end(thread);
}

static bool by_callback;

void ranges_register(void)
{
	if (__atomic_exchange_n(&by_callback, true, __ATOMIC_RELAXED))
		return;
	bool registered = torch.range_name &&
			  record_function_add(SCOPE_USER, range_start, range_end);
	tare_note_layer("ops.range", registered ? 1 : 2, "record_function, by RecordFunction");
}

/* ---------------------------------------------------------------- by their operators */

/*
 * profiler::_record_function_enter_new(str name, str? args): the dispatcher has the operator's arguments, a
 * std::vector<c10::IValue>, in a register. Of an IValue, 16 bytes, the first word leads to a
 * c10::ivalue::ConstantString: a table of virtual functions, counts, and a std::string, whose first word leads to
 * its bytes.
 */
#define IVALUE_WORDS  2u
#define ARGUMENTS     2u
#define STACK_MAX     (1u << 16) /* bytes: below the arguments may lie others' */
#define STRING_OFFSET 2u         /* words */
#define NAME_ROOM     4096u

static const uint64_t *name_value(uint64_t end)
{
	return (const uint64_t *)end - ARGUMENTS * IVALUE_WORDS;
}

/* The text's length lies behind its address, or, before C++11's ABI, in front of its bytes. */
static bool is_string(uint64_t string)
{
	char text[NAME_ROOM];
	uint64_t bytes, length;

	return safe_read_word(string, &bytes) && safe_read_text(bytes, text, sizeof(text)) &&
	       ((safe_read_word(string + 8, &length) && length == strlen(text)) ||
		(safe_read_word(bytes - 24, &length) && length == strlen(text)));
}

static bool is_stack(uint64_t vector)
{
	uint64_t start, end, room, value;

	return safe_read_word(vector, &start) && safe_read_word(vector + 8, &end) &&
	       safe_read_word(vector + 16, &room) && start < end && end <= room &&
	       end - start <= STACK_MAX && end - start >= 8 * ARGUMENTS * IVALUE_WORDS &&
	       safe_read_word((uint64_t)name_value(end), &value) &&
	       is_string(value + 8 * STRING_OFFSET);
}

/* Of each function that calls the operator; there are few. */
#define CALLERS_MAX 8u

static struct caller {
	uint64_t address; /* written last */
	uint32_t stack;   /* which register */
} callers[CALLERS_MAX];
static uint32_t caller_count;

/* Index of the register; TAP_REGISTERS: none. */
TARE_COLD static uint32_t learn_caller(const struct tap_frame *frame)
{
	uint32_t place, stack = 0;

	while (stack < TAP_REGISTERS && !is_stack(frame->registers[stack]))
		stack++;
	place = __atomic_load_n(&caller_count, __ATOMIC_RELAXED);
	if (stack < TAP_REGISTERS && place < CALLERS_MAX)
		place = __atomic_fetch_add(&caller_count, 1, __ATOMIC_RELAXED);
	if (stack < TAP_REGISTERS && place < CALLERS_MAX) {
		callers[place].stack = stack;
		__atomic_store_n(&callers[place].address, frame->return_address, __ATOMIC_RELEASE);
	}
	return stack;
}

static uint32_t stack_register(const struct tap_frame *frame)
{
	for (uint32_t i = 0; i < CALLERS_MAX; i++)
		if (__atomic_load_n(&callers[i].address, __ATOMIC_ACQUIRE) == frame->return_address)
			return callers[i].stack;
	return learn_caller(frame);
}

/* The callback that is registered here sees this range already: its record is made later. */
void range_of_operator(struct tare_thread *thread, const struct tap_frame *frame,
		       enum operator_range range)
{
	uint32_t stack;

	if (__atomic_load_n(&by_callback, __ATOMIC_RELAXED))
		return;
	if (range == OPERATOR_ENDS_RANGE) {
		end(thread);
		return;
	}
	stack = stack_register(frame);
	if (stack == TAP_REGISTERS) {
		ranges_register();
		return;
	}
	const uint64_t *vector = (const uint64_t *)frame->registers[stack];
	const uint64_t *string = (const uint64_t *)*name_value(vector[1]);
	begin(thread, (const char *)string[STRING_OFFSET]);
}

enum operator_range operator_range_of(const char *name)
{
	static const char enter[] = "profiler::_record_function_enter_new",
			  leave[] = "profiler::_record_function_exit";

	return strcmp(name, enter) == 0                     ? OPERATOR_BEGINS_RANGE :
	       strncmp(name, leave, sizeof(leave) - 1) == 0 ? OPERATOR_ENDS_RANGE :
							      OPERATOR_NO_RANGE;
}
