/*
 * operator_name.c: which operator it is that the dispatcher calls.
 *
 * Of at::_ops::NAME::call the symbol is enough; readers know how to split it. Others call many
 * operators: c10::Dispatcher::callBoxed (custom operators, torch.ops), or have a name that says
 * nothing. They hold the address of the operator's OperatorEntry in a register, and that begins with
 * its name.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "torchhooks/operators.h"
#include "torchhooks/safe_read.h"
#include "torchhooks/torch.h"

#define OPERATORS_BITS 13u
#define NAME_ROOM      256u

static struct id_entry operator_entries[1u << OPERATORS_BITS];
static uint32_t last_operator;

struct id_cache operators = {
	.bits = OPERATORS_BITS,
	.entries = operator_entries,
	.last_id = &last_operator,
};

static bool is_name(const char *text)
{
	const char *colons = strstr(text, "::");

	for (const char *p = text; *p; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';

		if (!letter && (p == text || !((*p >= '0' && *p <= '9') || *p == ':' || *p == '.')))
			return false;
	}
	return colons && colons > text && colons[2];
}

/*
 * c10::OperatorName is two std::string: name and overload. Of the newer ABI's, 32 bytes each, the first
 * words are pointer and length; the older ABI's are one pointer. Both texts end with a zero byte.
 */
static bool read_name(uint64_t entry, char name[NAME_ROOM], char overload[NAME_ROOM])
{
	uint64_t text, length, next;

	if (entry % 8 || !safe_read_word(entry, &text) || !safe_read_text(text, name, NAME_ROOM) ||
	    !is_name(name) || !safe_read_word(entry + 8, &length))
		return false;
	next = entry + (length == strlen(name) ? 32 : 8);
	if (!safe_read_word(next, &text) || !safe_read_text(text, overload, NAME_ROOM))
		overload[0] = '\0';
	return true;
}

static void define(struct tare_thread *thread, uint32_t id, const char *text)
{
	struct record_OP record = { .op = id, .symbol = { text, (uint32_t)strlen(text) } };

	trace_define(thread->buffer, TRACE_RECORD_OP, &record);
}

static const char *join(char *room, size_t bytes, const char *a, const char *between, const char *b)
{
	size_t a_bytes = strnlen(a, bytes - 1), between_bytes = strlen(between);
	size_t b_bytes = strlen(b);

	if (!b_bytes || a_bytes + between_bytes + b_bytes >= bytes)
		between_bytes = b_bytes = 0;
	memcpy(room, a, a_bytes);
	memcpy(room + a_bytes, between, between_bytes);
	memcpy(room + a_bytes + between_bytes, b, b_bytes);
	room[a_bytes + between_bytes + b_bytes] = '\0';
	return room;
}

uint32_t operator_named(struct tare_thread *thread, const char *name, const char *overload)
{
	char full[2 * NAME_ROOM];
	uint64_t key;
	struct id_found found;

	join(full, sizeof(full), name, ".", overload);
	key = text_key(full, strlen(full));
	found = id_cache_find(&operators, key);
	if (!found.defined) {
		found.id = id_cache_id(&operators, found);
		define(thread, found.id, full);
		id_cache_keep(&operators, key, found.id, 0);
	}
	return found.id;
}

/* "libfoo.so+0x1234" where no exported symbol covers the address. */
static const char *describe_caller(uint64_t address, char *room, size_t bytes)
{
	char offset[24] = "+0x", *out = offset + 3;
	const char *base, *symbol = operator_symbol(address - 1);
	Dl_info info;

	if (symbol)
		return symbol;
	if (!dladdr((void *)(address - 1), &info) || !info.dli_fname)
		return "unknown caller";
	for (int shift = 60; shift >= 0; shift -= 4) {
		unsigned digit = ((address - (uint64_t)info.dli_fbase) >> shift) & 15;

		if (digit || out > offset + 3 || !shift)
			*out++ = "0123456789abcdef"[digit];
	}
	*out = '\0';
	base = strrchr(info.dli_fname, '/');
	return join(room, bytes, base ? base + 1 : info.dli_fname, "", offset);
}

static uint32_t find_register(const struct tap_frame *frame)
{
	char name[NAME_ROOM], overload[NAME_ROOM];

	for (uint32_t i = 0; i < TAP_REGISTERS; i++) {
		if (read_name(frame->registers[i], name, overload))
			return i + 1;
	}
	return 0;
}

static struct id_found learn_caller(struct tare_thread *thread, const struct tap_frame *frame,
				    struct id_found found)
{
	char room[NAME_ROOM];
	const char *symbol = describe_caller(frame->return_address, room, sizeof(room));
	uint32_t words = stack_word_distance(tap_frame_address(frame), frame->return_address);
	uint32_t reg = strncmp(symbol, "_ZN2at4_ops", 11) == 0 ? 0 : find_register(frame);

	if (words >= 1u << DETAIL_WORDS_BITS)
		words = 0;
	found.id = id_cache_id(&operators, found);
	found.detail = reg << DETAIL_WORDS_BITS | words;
	define(thread, found.id, symbol);
	id_cache_keep(&operators, frame->return_address, found.id, found.detail);
	return found;
}

/*
 * The operator of a function that calls many. An entry's address is looked up before it is read: an
 * operator that was seen is not read again.
 */
static uint32_t learn_entry(struct tare_thread *thread, uint64_t entry,
			    enum operator_range *range_p)
{
	char name[NAME_ROOM], overload[NAME_ROOM];
	uint32_t id;

	if (!read_name(entry, name, overload))
		return 0;
	id = operator_named(thread, name, overload);
	*range_p = operator_range_of(name);
	id_cache_keep(&operators, entry, id, *range_p);
	return id;
}

TARE_COLD static struct id_found learn(struct tare_thread *thread, const struct tap_frame *frame,
				       struct id_found found)
{
	uint32_t depth = thread->buffer->depth, id = 0;
	enum operator_range range = OPERATOR_NO_RANGE;
	int saved_errno = errno;

	trace_enter(thread->buffer, tare_now(), TARE, 2);
	if (!found.defined)
		found = learn_caller(thread, frame, found);
	if (DETAIL_REGISTER(found.detail))
		id = learn_entry(thread, frame->registers[DETAIL_REGISTER(found.detail) - 1],
				 &range);
	if (id)
		found.id = id;
	found.detail |= (uint32_t)range << DETAIL_RANGE_SHIFT;
	trace_leave(thread->buffer, tare_now(), depth, 0);
	errno = saved_errno;
	return found;
}

struct id_found operator_learn(struct tare_thread *thread, const struct tap_frame *frame,
			       struct id_found found)
{
	if (found.defined) {
		uint64_t entry = frame->registers[DETAIL_REGISTER(found.detail) - 1];
		struct id_found named = id_cache_find(&operators, entry);

		if (tare_likely(named.defined)) {
			named.detail = found.detail | named.detail << DETAIL_RANGE_SHIFT;
			return named;
		}
	}
	return learn(thread, frame, found);
}
