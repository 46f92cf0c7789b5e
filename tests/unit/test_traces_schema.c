/* test_traces_schema.c: varints, checksums, records and the descriptor text. */
#include "tests/unit/traces_util.h"

static void varint_round_trip(uint64_t value)
{
	uint8_t bytes[VARINT_BYTES_MAX + 1];
	uint8_t *end = put_varint(bytes, value);
	size_t length = (size_t)(end - bytes);
	uint64_t back = ~value;

	assert_in_range(length, 1, VARINT_BYTES_MAX);
	assert_ptr_equal(get_varint(bytes, end, &back), end);
	assert_true(back == value);
	for (size_t cut = 0; cut < length; cut++)
		assert_null(get_varint(bytes, bytes + cut, &back));
}

static void test_varints(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t power = (uint64_t)1 << bit;

		varint_round_trip(power - 1);
		varint_round_trip(power);
		varint_round_trip(power + 1);
		varint_round_trip(~power);
	}
	varint_round_trip(UINT64_MAX);

	uint64_t value;
	uint8_t too_long[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00 };
	uint8_t too_large[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
	uint8_t padded[] = { 0x85, 0x80, 0x00 };
	assert_null(get_varint(too_long, too_long + sizeof(too_long), &value));
	assert_null(get_varint(too_large, too_large + sizeof(too_large), &value));
	assert_non_null(get_varint(padded, padded + sizeof(padded), &value));
	assert_int_equal(value, 5);
}

static void test_crc32c(void **state)
{
	/* RFC 3720, B.4. */
	uint8_t zeros[32] = { 0 }, ones[32], up[32];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (unsigned i = 0; i < 32; i++)
		up[i] = (uint8_t)i;
	assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aau);
	assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43u);
	assert_int_equal(crc32c(0, up, 32), 0x46dd794eu);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
	for (size_t cut = 0; cut <= 32; cut++)
		assert_int_equal(crc32c(crc32c(0, up, cut), up + cut, 32 - cut), 0x46dd794eu);
}

/* Fills a record's fields with values that tell them apart. */
static void record_fill(unsigned type, union trace_record *record, const char *text,
			uint32_t length)
{
	const struct trace_record_desc *desc = &trace_record_descs[type];
	size_t offset = 0;

	memset(record, 0, sizeof(*record));
	for (unsigned i = 0; i < desc->field_count; i++) {
		enum trace_field_type field = desc->fields[i].type;
		void *value = (char *)record + trace_field_place(field, &offset);
		uint64_t number = 0xf1f2f3f4f5f6f7f8u + i * 0x0101010101010101u;

		if (trace_field_bytes(field))
			memcpy(value, &number, trace_field_bytes(field));
		else
			*(struct trace_str *)value = (struct trace_str){ text, length - i };
	}
}

static void test_records(void **state)
{
	static const char text[] = "some text with \0 and \xff in it";
	unsigned types = 0;

	(void)state;
	for (unsigned type = 0; type < TRACE_RECORD_TYPES; type++) {
		const struct trace_record_desc *desc = &trace_record_descs[type];
		union trace_record record, back;

		if (!desc->name) {
			assert_int_equal(trace_record_decode(type, NULL, 0, &back), -1);
			continue;
		}
		types++;
		record_fill(type, &record, text, sizeof(text) - 1);
		size_t length = trace_record_bytes(type, &record);
		uint8_t *bytes = malloc(length + 8);
		memset(bytes, 0xee, length + 8);
		trace_record_encode(type, &record, bytes);
		assert_int_equal(get_u32(bytes), length);
		assert_int_equal(get_u16(bytes + 4), type);
		assert_int_equal(get_u16(bytes + 6), 0);
		assert_int_equal(bytes[length], 0xee);

		/* Exactly as long, with fields of a later version behind it, and cut anywhere. */
		const uint8_t *fields = bytes + TRACE_RECORD_HEADER_BYTES;
		size_t field_bytes = length - TRACE_RECORD_HEADER_BYTES;
		for (size_t more = 0; more <= 8; more += 8) {
			assert_int_equal(
				trace_record_decode(type, fields, field_bytes + more, &back), 0);
			size_t offset = 0;
			for (unsigned i = 0; i < desc->field_count; i++) {
				enum trace_field_type field = desc->fields[i].type;
				size_t place = trace_field_place(field, &offset);
				const char *a = (char *)&record + place, *b = (char *)&back + place;

				if (trace_field_bytes(field)) {
					assert_memory_equal(a, b, trace_field_bytes(field));
					continue;
				}
				const struct trace_str *x = (const void *)a, *y = (const void *)b;
				assert_int_equal(x->length, y->length);
				assert_memory_equal(x->data, y->data, x->length);
			}
		}
		for (size_t cut = 0; cut < field_bytes; cut++) {
			uint8_t *exact = malloc(cut + 1);

			memcpy(exact, fields, cut);
			assert_int_equal(trace_record_decode(type, exact, cut, &back), -1);
			free(exact);
		}
		free(bytes);
	}
	assert_true(types >= 11);
}

/* A length that no file has room for must not wrap around. */
static void test_record_lengths(void **state)
{
	uint8_t bytes[16];
	union trace_record record;

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	for (size_t length = 0; length <= sizeof(bytes); length++)
		assert_int_equal(trace_record_decode(TRACE_RECORD_INFO, bytes, length, &record),
				 -1);
}

/* The struct of a record is laid out as the generic code believes. */
static void test_places(void **state)
{
	size_t offset;

	(void)state;
#define FIELD_(type, name, doc)                                                                    \
	assert_int_equal(trace_field_place(TRACE_##type, &offset), offsetof(struct CURRENT, name));
#define CURRENT record_THREAD
	offset = 0;
	RECORD_THREAD(FIELD_)
#undef CURRENT
#define CURRENT record_LAYER
	offset = 0;
	RECORD_LAYER(FIELD_)
#undef CURRENT
#define CURRENT record_LINES
	offset = 0;
	RECORD_LINES(FIELD_)
#undef CURRENT
#define CURRENT record_LOST
	offset = 0;
	RECORD_LOST(FIELD_)
#undef CURRENT
#undef FIELD_
}

static void test_descriptor(void **state)
{
	char text[2 * TRACE_PAGE + 1], part[16];
	size_t length = trace_descriptor_text(text, sizeof(text));

	(void)state;
	/* The writer keeps two pages for it. */
	assert_in_range(length, 1, 2 * TRACE_PAGE);
	text[length] = 0;
	assert_non_null(strstr(text, "event 2 FRAME span code site how\n"));
	assert_non_null(strstr(text, "event 6 OP loose op over site\n"));
	assert_non_null(
		strstr(text, "record 3 THREAD thread:u32 tid:u32 start:u64 depth:u32 name:str\n"));
	assert_int_equal(text[length - 1], '\n');
	memset(part, 'x', sizeof(part));
	assert_int_equal(trace_descriptor_text(part, 10), length);
	assert_memory_equal(part, text, 10);
	assert_int_equal(part[10], 'x');
	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++)
		assert_true(!trace_event_descs[code].name ||
			    trace_event_descs[code].field_count > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_varints), cmocka_unit_test(test_crc32c),
		cmocka_unit_test(test_records), cmocka_unit_test(test_record_lengths),
		cmocka_unit_test(test_places),  cmocka_unit_test(test_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
