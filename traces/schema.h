/*
 * schema.h: ids, structs and descriptors of everything in schema.def.
 *
 * For every folder. Holds no logic but the generic record encoder and decoder, which both sides
 * share, so that a record has one layout. Must not allocate: the encoder runs in the traced process.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "traces/schema.def"

#define TRACE_VERSION 1

enum trace_event_code {
#define EVENT_(code, NAME, kind, doc) TRACE_##NAME = code,
	TRACE_EVENTS(EVENT_)
#undef EVENT_
};

enum trace_record_type {
#define RECORD_(type, NAME, doc) TRACE_RECORD_##NAME = type,
	TRACE_RECORDS(RECORD_)
#undef RECORD_
};

enum trace_category {
#define CATEGORY_(number, NAME, doc) TRACE_CATEGORY_##NAME = number,
	TRACE_CATEGORIES(CATEGORY_)
#undef CATEGORY_
};

enum trace_gpu_work {
#define WORK_(number, NAME, doc) TRACE_GPU_##NAME = number,
	TRACE_GPU_WORKS(WORK_)
#undef WORK_
};

enum trace_event_kind { TRACE_KIND_MARK, TRACE_KIND_SPAN, TRACE_KIND_LOOSE, TRACE_KIND_LEAVE };

/* The head varint of an event: first field << TRACE_CODE_BITS | code. */
#define TRACE_CODE_BITS    5
#define TRACE_CODE_MASK    ((1u << TRACE_CODE_BITS) - 1)
#define TRACE_EVENT_CODES  (1u << TRACE_CODE_BITS)
#define TRACE_FIELDS_MAX   8
#define TRACE_RECORD_TYPES 64 /* types below this may be described */

/* Fields of each event: TRACE_FIELDS_FRAME == 3, and so on. */
enum {
#define FIELD_(name, doc)             +1
#define EVENT_(code, NAME, kind, doc) TRACE_FIELDS_##NAME = 0 EVENT_##NAME(FIELD_),
	TRACE_EVENTS(EVENT_)
#undef EVENT_
#undef FIELD_
};

struct trace_event_desc {
	const char *name; /* NULL: no such event */
	const char *doc;
	enum trace_event_kind kind;
	unsigned field_count;
	struct {
		const char *name, *doc;
	} fields[TRACE_FIELDS_MAX];
};

extern const struct trace_event_desc trace_event_descs[TRACE_EVENT_CODES];

/* Text or bytes inside a record: not terminated, not owned. */
struct trace_str {
	const char *data;
	uint32_t length;
};

typedef uint8_t trace_field_u8;
typedef uint16_t trace_field_u16;
typedef uint32_t trace_field_u32;
typedef uint64_t trace_field_u64;
typedef int64_t trace_field_i64;
typedef struct trace_str trace_field_str;
typedef struct trace_str trace_field_blob;

/* struct record_CODE, struct record_THREAD, ... */
#define FIELD_(type, name, doc) trace_field_##type name;
#define RECORD_(type, NAME, doc)                                                                   \
	struct record_##NAME {                                                                     \
		RECORD_##NAME(FIELD_)                                                              \
	};
TRACE_RECORDS(RECORD_)
#undef RECORD_
#undef FIELD_

/* Large enough for any record struct. */
union trace_record {
#define RECORD_(type, NAME, doc) struct record_##NAME NAME;
	TRACE_RECORDS(RECORD_)
#undef RECORD_
};

enum trace_field_type {
	TRACE_u8,
	TRACE_u16,
	TRACE_u32,
	TRACE_u64,
	TRACE_i64,
	TRACE_str,
	TRACE_blob
};

struct trace_record_desc {
	const char *name; /* NULL: no such record */
	const char *doc;
	unsigned field_count;
	struct {
		enum trace_field_type type;
		const char *name, *doc;
	} fields[TRACE_FIELDS_MAX];
};

extern const struct trace_record_desc trace_record_descs[TRACE_RECORD_TYPES];

/*
 * The place of a field in its struct: rounds *offset up to the type's alignment and returns it, and
 * leaves *offset behind the field. Start with 0 and take the fields in order.
 */
size_t trace_field_place(enum trace_field_type type, size_t *offset);

/* Bytes of a fixed-size field in a file; 0 for str and blob. */
size_t trace_field_bytes(enum trace_field_type type);

extern const char *const trace_category_names[]; /* indexed by enum trace_category */
extern const unsigned trace_category_count;

/*
 * In a file a record is: u32 length of the whole, u16 type, u16 zero, then its fields.
 */
#define TRACE_RECORD_HEADER_BYTES 8

/* Length of `record` (a struct record_NAME of that type) in a file, header included. */
size_t trace_record_bytes(unsigned type, const void *record);

/* Writes it to `out`, which has trace_record_bytes() of room. */
void trace_record_encode(unsigned type, const void *record, uint8_t *out);

/*
 * Fills `record` from the fields of one record, header taken off. Strings point into `bytes`.
 * Returns 0, or -1 where the bytes are too short for the fields of this type. Bytes beyond the known
 * fields are ignored: a later version may append fields.
 */
int trace_record_decode(unsigned type, const uint8_t *bytes, size_t length,
			union trace_record *record);

/*
 * The descriptor text that each file carries: one line an event or record,
 *   event CODE NAME KIND FIELD...        record TYPE NAME FIELD:TYPE...
 * Returns its length; writes at most `room` bytes.
 */
size_t trace_descriptor_text(char *out, size_t room);
