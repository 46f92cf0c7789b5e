/*
 * test_knobs.c: how the values of knobs are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "traces/knobs.h"

static void defaults_are_right(void **state)
{
	struct knobs knobs;

	(void)state;
	memset(&knobs, 0xff, sizeof(knobs));
	knobs_set_defaults(&knobs);
	for (unsigned id = 0; id < KNOB_COUNT; id++)
		assert_true(knob_set(&knobs, (enum knob_id)id, knob_descs[id].initial));
	assert_string_equal(knobs.output, "tare-%p-%t.tare");
	assert_int_equal(knobs.layers, TARE_LAYER_FRAMES | TARE_LAYER_OPS | TARE_LAYER_CUDA);
	assert_int_equal(knobs.max_bytes, 4ull << 30);
	assert_int_equal(knobs.delay_ns, 0);
	assert_int_equal(knobs.duration_ns, 0);
	assert_int_equal(knobs.children, KNOB_CHILDREN_OPS);
	assert_int_equal(knobs.stacks, KNOB_STACKS_NONE);
	assert_false(knobs.verbose);
	assert_true(knobs.command_line);
}

static void values(void **state)
{
	struct knobs knobs;

	(void)state;
	knobs_set_defaults(&knobs);
	assert_true(knob_set(&knobs, KNOB_MAX_BYTES, "12"));
	assert_int_equal(knobs.max_bytes, 12);
	assert_true(knob_set(&knobs, KNOB_MAX_BYTES, "3M"));
	assert_int_equal(knobs.max_bytes, 3 << 20);
	assert_true(knob_set(&knobs, KNOB_DELAY, "1.25"));
	assert_int_equal(knobs.delay_ns, 1250000000);
	assert_true(knob_set(&knobs, KNOB_DELAY, "0.0000000019"));
	assert_int_equal(knobs.delay_ns, 1);
	assert_true(knob_set(&knobs, KNOB_LAYERS, "ops-rf,cuda"));
	assert_int_equal(knobs.layers,
			 TARE_LAYER_OPS | TARE_LAYER_OPS_RECORD_FUNCTION | TARE_LAYER_CUDA);
	assert_true(knob_set(&knobs, KNOB_LAYERS, "none"));
	assert_int_equal(knobs.layers, 0);
	assert_true(knob_set(&knobs, KNOB_VERBOSE, "1"));
	assert_true(knobs.verbose);
}

static void wrong_values_change_nothing(void **state)
{
	static const struct {
		enum knob_id id;
		const char *value;
	} wrong[] = {
		{ KNOB_LAYERS, "nonsense" },
		{ KNOB_LAYERS, "" },
		{ KNOB_LAYERS, "ops," },
		{ KNOB_LAYERS, "ops,frame" },
		{ KNOB_LAYERS, "opss" },
		{ KNOB_MAX_BYTES, "" },
		{ KNOB_MAX_BYTES, "0" },
		{ KNOB_MAX_BYTES, "-1" },
		{ KNOB_MAX_BYTES, "4g" },
		{ KNOB_MAX_BYTES, "4GB" },
		{ KNOB_MAX_BYTES, "18446744073709551616" },
		{ KNOB_MAX_BYTES, "99999999999T" },
		{ KNOB_DELAY, "1,5" },
		{ KNOB_DELAY, ".5" },
		{ KNOB_DELAY, "1e3" },
		{ KNOB_DELAY, "nan" },
		{ KNOB_DURATION, "99999999999999999" },
		{ KNOB_CHILDREN, "some" },
		{ KNOB_STACKS, "all" },
		{ KNOB_VERBOSE, "yes" },
	};
	struct knobs knobs, before;

	(void)state;
	memset(&knobs, 0, sizeof(knobs));
	knobs_set_defaults(&knobs);
	memcpy(&before, &knobs, sizeof(knobs));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(knob_set(&knobs, wrong[i].id, wrong[i].value));
	assert_memory_equal(&knobs, &before, sizeof(knobs));
}

static void entries_of_the_environment(void **state)
{
	const char *value = NULL;

	(void)state;
	assert_int_equal(knob_of_entry("TARE_DELAY=3", &value), KNOB_DELAY);
	assert_string_equal(value, "3");
	assert_int_equal(knob_of_entry("TARE_MAX_BYTES=", &value), KNOB_MAX_BYTES);
	assert_string_equal(value, "");
	assert_int_equal(knob_of_entry("TARE_DELAYED=3", &value), KNOB_COUNT);
	assert_int_equal(knob_of_entry("TARE_", &value), KNOB_COUNT);
	assert_int_equal(knob_of_entry("DELAY=3", &value), KNOB_COUNT);
	assert_int_equal(knob_of_entry("TARE_DELAY", &value), KNOB_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_right),
		cmocka_unit_test(values),
		cmocka_unit_test(wrong_values_change_nothing),
		cmocka_unit_test(entries_of_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
