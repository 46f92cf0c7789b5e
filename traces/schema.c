/*
 * schema.c: the tables that schema.def expands to, and the one record encoder and decoder.
 *
 * Linked into both sides. Must not allocate, lock or use stdio.
 */
#include "traces/schema.h"

#include <stdalign.h>
#include <string.h>

#include "traces/bytes.h"

#define FIELD_(name, doc) { #name, doc },
#define EVENT_(code, NAME, kind, doc)                                                              \
	[code] = { #NAME, doc, TRACE_KIND_##kind, TRACE_FIELDS_##NAME, { EVENT_##NAME(FIELD_) } },
const struct trace_event_desc trace_event_descs[TRACE_EVENT_CODES] = { TRACE_EVENTS(EVENT_) };
#undef EVENT_
#undef FIELD_

#define COUNT_(type, name, doc) +1
#define FIELD_(type, name, doc) { TRACE_##type, #name, doc },
#define RECORD_(type, NAME, doc)                                                                   \
	[type] = { #NAME, doc, 0 RECORD_##NAME(COUNT_), { RECORD_##NAME(FIELD_) } },
const struct trace_record_desc trace_record_descs[TRACE_RECORD_TYPES] = { TRACE_RECORDS(RECORD_) };
#undef RECORD_
#undef FIELD_
#undef COUNT_

#define CATEGORY_(number, NAME, doc) [number] = #NAME,
const char *const trace_category_names[] = { TRACE_CATEGORIES(CATEGORY_) };
#undef CATEGORY_
const unsigned trace_category_count = sizeof(trace_category_names) / sizeof(*trace_category_names);

static const struct {
	uint8_t align, size, file_bytes;
	const char *name;
} field_types[] = {
#define TYPE_(type, bytes)                                                                         \
	[TRACE_##type] = { alignof(trace_field_##type), sizeof(trace_field_##type), bytes, #type }
	TYPE_(u8, 1),  TYPE_(u16, 2), TYPE_(u32, 4),  TYPE_(u64, 8),
	TYPE_(i64, 8), TYPE_(str, 0), TYPE_(blob, 0),
#undef TYPE_
};

size_t trace_field_place(enum trace_field_type type, size_t *offset)
{
	size_t align = field_types[type].align;
	size_t place = (*offset + align - 1) / align * align;

	*offset = place + field_types[type].size;
	return place;
}

size_t trace_field_bytes(enum trace_field_type type)
{
	return field_types[type].file_bytes;
}

size_t trace_record_bytes(unsigned type, const void *record)
{
	const struct trace_record_desc *desc = &trace_record_descs[type];
	size_t total = TRACE_RECORD_HEADER_BYTES, offset = 0;

	for (unsigned i = 0; i < desc->field_count; i++) {
		enum trace_field_type field = desc->fields[i].type;
		const void *value = (const char *)record + trace_field_place(field, &offset);

		total += field_types[field].file_bytes;
		if (!field_types[field].file_bytes)
			total += 4 + ((const struct trace_str *)value)->length;
	}
	return total;
}

void trace_record_encode(unsigned type, const void *record, uint8_t *out)
{
	const struct trace_record_desc *desc = &trace_record_descs[type];
	size_t offset = 0;
	uint8_t *start = out;

	memset(out, 0, TRACE_RECORD_HEADER_BYTES);
	out += TRACE_RECORD_HEADER_BYTES;
	for (unsigned i = 0; i < desc->field_count; i++) {
		enum trace_field_type field = desc->fields[i].type;
		const void *value = (const char *)record + trace_field_place(field, &offset);

		if (field_types[field].file_bytes) {
			memcpy(out, value, field_types[field].file_bytes);
			out += field_types[field].file_bytes;
		} else {
			const struct trace_str *text = value;

			put_u32(out, text->length);
			if (text->length)
				memcpy(out + 4, text->data, text->length);
			out += 4 + text->length;
		}
	}
	put_u32(start, (uint32_t)(out - start));
	put_u16(start + 4, (uint16_t)type);
}

int trace_record_decode(unsigned type, const uint8_t *bytes, size_t length,
			union trace_record *record)
{
	size_t offset = 0;

	memset(record, 0, sizeof(*record));
	if (type >= TRACE_RECORD_TYPES || !trace_record_descs[type].name)
		return -1;
	for (unsigned i = 0; i < trace_record_descs[type].field_count; i++) {
		enum trace_field_type field = trace_record_descs[type].fields[i].type;
		void *value = (char *)record + trace_field_place(field, &offset);
		size_t size = field_types[field].file_bytes;

		if (length < (size ? size : 4))
			return -1;
		if (size) {
			memcpy(value, bytes, size);
		} else {
			struct trace_str *text = value;

			text->length = get_u32(bytes);
			text->data = (const char *)bytes + 4;
			if (text->length > length - 4)
				return -1;
			size = 4 + (size_t)text->length;
		}
		bytes += size;
		length -= size;
	}
	return 0;
}

/* A bounded text: counts what would not fit, so that the caller learns the length. */
struct text {
	char *out;
	size_t room, length;
};

static void text_add(struct text *text, const char *piece)
{
	for (; *piece; piece++, text->length++)
		if (text->length < text->room)
			text->out[text->length] = *piece;
}

static void text_add_number(struct text *text, unsigned number)
{
	char digits[12], *p = digits + sizeof(digits) - 1;

	*p = 0;
	do
		*--p = (char)('0' + number % 10);
	while (number /= 10);
	text_add(text, p);
}

static const char *const kind_names[] = {
	[TRACE_KIND_MARK] = "mark",
	[TRACE_KIND_SPAN] = "span",
	[TRACE_KIND_LOOSE] = "loose",
	[TRACE_KIND_LEAVE] = "leave",
};

size_t trace_descriptor_text(char *out, size_t room)
{
	struct text text = { out, room, 0 };

	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
		const struct trace_event_desc *event = &trace_event_descs[code];

		if (!event->name)
			continue;
		text_add(&text, "event ");
		text_add_number(&text, code);
		text_add(&text, " ");
		text_add(&text, event->name);
		text_add(&text, " ");
		text_add(&text, kind_names[event->kind]);
		for (unsigned i = 0; i < event->field_count; i++) {
			text_add(&text, " ");
			text_add(&text, event->fields[i].name);
		}
		text_add(&text, "\n");
	}
	for (unsigned type = 0; type < TRACE_RECORD_TYPES; type++) {
		const struct trace_record_desc *record = &trace_record_descs[type];

		if (!record->name)
			continue;
		text_add(&text, "record ");
		text_add_number(&text, type);
		text_add(&text, " ");
		text_add(&text, record->name);
		for (unsigned i = 0; i < record->field_count; i++) {
			text_add(&text, " ");
			text_add(&text, record->fields[i].name);
			text_add(&text, ":");
			text_add(&text, field_types[record->fields[i].type].name);
		}
		text_add(&text, "\n");
	}
	return text.length;
}
