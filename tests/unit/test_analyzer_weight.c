/* test_analyzer_weight.c: invented programs on a tare whose weight is known: what is left, to the unit. */
#include "tests/unit/analyzer_util.h"

#include <math.h>

#include "traces/calibration_file.h"

/* inside and outside in ns, of a span; of op and mark in all. */
static void weigh(struct trace_buffer *buffer, const char *kind, uint32_t distance,
		  uint32_t interval, uint32_t inside, uint32_t outside)
{
	struct record_CALIBRATION record = {
		.kind = STR(kind),
		.distance = distance,
		.interval_ns = interval,
		.inside_ps = inside * 1000,
		.outside_ps = outside * 1000,
		.error_ps = (inside + outside) * 100,
		.source = STR("calibrated"),
	};

	assert_true(trace_define(buffer, TRACE_RECORD_CALIBRATION, &record));
}

/* What is inside goes from the span's line, what is outside from that of what is around. */
static void test_nesting(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	weigh(main, "event", 0, 0, 10, 20);
	enter(main, 1000, FRAME, USER, 0, 0);
	call(main, 2000, 3000, FRAME, LIBRARY, 5, 0);
	leave(main, 8000);
	synth_read(&synth);
	struct ledger ledger = process_ledger(&synth);
	check_ledger(ledger,
		     EXPECT([LINE_other] = 1000 - 20, [LINE_python_user] = 6000 - 10 - 20,
			    [LINE_python_library] = 1000 - 10, [LINE_tare] = 60),
		     8000);
	assert_units(ledger.weight, 60);
	assert_units(ledger.clamped, 0);
	assert_int_equal(synth.model.weights.source, WEIGHT_CALIBRATED);
	assert_true(fabs(synth.model.weights.error - 0.1) < 1e-3);
	synth_close(&synth);
}

/* A trace without the records is as it was; and a weight of 0 is one. */
static void test_none(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 1000, FRAME, USER, 0, 0);
	leave(main, 8000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth), EXPECT([LINE_other] = 1000, [LINE_python_user] = 7000),
		     8000);
	assert_int_equal(synth.model.weights.source, WEIGHT_UNKNOWN);
	assert_null(weights_source_text(&synth.model.weights));
	synth_close(&synth);
}

/* No line gets below 0: what should have gone too is told. */
static void test_clamping(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	weigh(main, "frame", 0, 0, 100, 40);
	enter(main, 1000, FRAME, USER, 0, 0);
	call(main, 2000, 2030, FRAME, LIBRARY, 5, 0);
	leave(main, 8000);
	synth_read(&synth);
	struct ledger ledger = process_ledger(&synth);
	check_ledger(ledger,
		     EXPECT([LINE_other] = 1000 - 40, [LINE_python_user] = 6970 - 100 - 40,
			    [LINE_tare] = 40 + 140 + 30),
		     8000);
	assert_units(ledger.weight, 210);
	assert_units(ledger.clamped, 70);
	synth_close(&synth);
}

/* Frames by how they were entered, and by what their code is. */
static void test_frames(void **state)
{
	enum { GENERATOR = 9 };
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct record_CODE code = { .code = GENERATOR,
				    .flags = 0x20,
				    .file = STR("/srv/u/train.py"),
				    .name = STR("numbers") };

	(void)state;
	assert_true(trace_define(main, TRACE_RECORD_CODE, &code));
	weigh(main, "frame", 0, 0, 2, 10);
	weigh(main, "frame", 1 + 30, 0, 4, 30);
	weigh(main, "generator", 0, 0, 6, 50);
	weigh(main, "generator", 1 + 30, 0, 8, 70);
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 1000, 1100, FRAME, LIBRARY, 5, 40 << 1);
	call(main, 2000, 2100, FRAME, LIBRARY, 6, 30 << 1);
	call(main, 3000, 3100, FRAME, GENERATOR, 7, 40 << 1);
	call(main, 4000, 4100, FRAME, GENERATOR, 8, 30 << 1 | 1);
	leave(main, 9000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 8800 - 2 - (10 + 30 + 50 + 70) - (6 + 8),
			    [LINE_python_library] = 200 - 2 - 4, [LINE_tare] = 182),
		     9000);
	synth_close(&synth);
}

/*
 * By the logarithm of the time since the last frame's event, or since the same call; before the first there was none
 * for long. A unit is 1 ns. Times count by powers of 2, each as the middle of what it stands for.
 */
static void test_intervals(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	weigh(main, "frame", 0, 96, 20, 40);
	weigh(main, "frame", 0, 1536, 40, 140);
	weigh(main, "section", 0, 384, 10, 10);
	weigh(main, "section", 0, 6144, 20, 30);
	enter(main, 0, FRAME, USER, 0, 0);      /* 20 inside, 70 around, where nothing is */
	enter(main, 300, FRAME, LIBRARY, 5, 0); /* half of what is more: 15 inside, 45 around */
	leave(main, 5300);                      /* all: 20 inside, 70 around */
	call(main, 5300, 5400, SECTION, 7);     /* the first: 20 inside, 30 around */
	call(main, 5600, 5700, SECTION, 8);     /* elsewhere: so is this */
	call(main, 5900, 6000, SECTION, 8);     /* 256 to 511: 10 inside, 10 around */
	call(main, 7400, 7500, SECTION,
	     8);           /* 1024 to 2047: half of what is more: 15 inside, 20 around */
	leave(main, 9000); /* since the last frame's event: 20 inside */
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 3600 - 20 - 45 - 70 - (30 + 30 + 10 + 20) - 20,
			    [LINE_python_library] = 5000 - 35,
			    [LINE_framework] = 400 - (20 + 20 + 10 + 15), [LINE_tare] = 345),
		     9000);
	/* Around everything is no time: that could not be taken out. */
	assert_units(process_ledger(&synth).clamped, 140);
	synth_close(&synth);
}

/* An operator's parts: what lies before its section, the section, the calls in it. */
static void test_operators(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	const struct op_row *row;
	struct op_sums sums;

	(void)state;
	weigh(main, "frame", 0, 0, 4, 8);
	weigh(main, "section", 0, 0, 20, 30);
	weigh(main, "op", 0, 0, 5, 7);
	weigh(main, "launch", 0, 0, 40, 60);
	weigh(main, "mark", 0, 0, 0, 9);
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 100, 200, FRAME, LIBRARY, 3, 0);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = 1000 + 5000 * i;

		enter(main, at, SECTION, 7);
		mark(main, at + 100, OP, ADD, 0, 0);
		call(main, at + 500, at + 1500, LAUNCH, LAUNCH, 0, 0);
		mark(main, at + 1600, OP_OVER, 1);
		leave(main, at + 2000);
	}
	leave(main, 9000);
	synth_read(&synth);
	row = find_row(&synth, OP_KIND_OPERATOR, ADD, 7);
	assert_non_null(row);
	sums = op_row_sums(&synth.model.op_table, row);
	/* Half of what is outside of the frame before, and of the section. */
	assert_units(sums.first[OP_python], 800 - 4 - 15);
	assert_units(sums.first[OP_launch], 1000 - 40);
	assert_units(sums.first[OP_framework], 1000 - 20 - 12 - 60 - 9);
	assert_units(sums.later[OP_python], 3000 - 15 - 15);
	assert_units(sums.later[OP_framework], 1000 - 20 - 12 - 60 - 9);
	check_ledger(
		process_ledger(&synth),
		EXPECT([LINE_python_user] = 9000 - 4100 - 4 - 8 - 60, [LINE_python_library] = 100 - 4,
		       [LINE_framework] = 2 * (1000 - 20 - 12 - 60 - 9),
		       [LINE_launch] = 2 * (1000 - 40), [LINE_tare] = 358),
		9000);
	synth_close(&synth);
}

/* A wait loses nothing: the idle cost is without the weight too. */
static void test_waits(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	weigh(main, "sync", 0, 0, 100, 0);
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 1000, 2000, SYNC, SYNC, 4, 0);
	call(main, 10000, 15000, SYNC, SYNC, 4, 0);
	leave(main, 20000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 14000, [LINE_framework] = 1800, [LINE_wait] = 4000,
			    [LINE_tare] = 200),
		     20000);
	synth_close(&synth);
}

/* Python code of other threads delays a thread that runs some itself. What waits in a section it does not. */
static void test_threads(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0),
			    *native = synth_thread(&synth, 0);

	(void)state;
	weigh(main, "frame", 0, 0, 10, 20);
	enter(main, 0, FRAME, USER, 0, 0);
	enter(native, 0, FRAME, LIBRARY, 0, 0);
	enter(native, 100, SECTION, 3);
	enter(other, 1000, FRAME, USER, 0, 0);
	call(other, 1100, 1200, FRAME, LIBRARY, 3, 0);
	call(other, 1300, 1400, FRAME, LIBRARY, 3, 0);
	leave(other, 2000);
	leave(native, 3000);
	leave(native, 3100);
	leave(main, 5000);
	synth_read(&synth);
	/* 10 of its own; 20 (what is around a thread's first frame is nothing's) less: 10 + 60 of the
	   other's, and 10 of the native one's. */
	struct ledger ledger = thread_ledger(&synth, 1);
	assert_units(ledger.lines[LINE_python_user], 5000 - 10 - (10 + 2 * 30) - 10);
	assert_units(thread_ledger(&synth, 3).lines[LINE_framework], 2900);
	synth_close(&synth);
}

/* What a worker of backward() weighs is the waiting thread's too. */
static void test_backward(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *worker = synth_thread(&synth, 0);

	(void)state;
	weigh(main, "node", 0, 0, 100, 200);
	weigh(main, "op", 0, 0, 10, 0);
	synth_torch_thread(main, 1);
	enter(worker, 0, SECTION, 0);
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SECTION, 1);
	mark(main, 1100, OP, MUL, 0, 0);
	mark(main, 1900, MADE, 1, 40);
	leave(main, 2000);
	enter(main, 3000, SECTION, 2);
	enter(worker, 3500, NODE, NODE_MUL, 1, 41);
	mark(worker, 3600, OP, MUL, 0, 0);
	leave(worker, 5000);
	leave(main, 7000);
	leave(main, 8000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 3000, [LINE_handover] = 500 + 2000 - 100,
			    [LINE_framework] = 1000 - 10 + 1500 - 100 - 10, [LINE_tare] = 220),
		     8000);
	assert_int_equal(synth.model.threads[1]->weight >> WEIGHT_BITS, 220);
	synth_close(&synth);
}

/* CPython 3.11: RESUME, four NOPs, a jump back to the first of them, RETURN_VALUE. */
static const char loop_bytecode[] = { (char)151, 0, 9, 0, 9, 0, 9, 0, 9, 0, (char)140, 5, 83, 0 };

/* What tare did in spans of its own, in a pass, is taken out of it once. */
static void test_pass(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct record_LINES lines = {
		.code = USER,
		.python = 0x030b,
		.lines = { "", 0 },
		.bytecode = { loop_bytecode, sizeof(loop_bytecode) },
	};
	const struct loop_node *loop = NULL;

	(void)state;
	assert_true(trace_define(main, TRACE_RECORD_LINES, &lines));
	enter(main, 1000, FRAME, USER, 0, 0);
	for (uint64_t at = 10000; at < 210000; at += 10000) {
		call(main, at, at + 1000, FRAME, LIBRARY, 3, 0);
		call(main, at + 2000, at + 6000, TARE, 1);
		call(main, at + 7000, at + 8000, FRAME, LIBRARY, 4, 0);
	}
	leave(main, 210000);
	synth_read(&synth);
	for (uint32_t i = 0; i < synth.model.loops.count; i++)
		if (synth.model.loops.nodes[i].passes == 20)
			loop = &synth.model.loops.nodes[i];
	assert_non_null(loop);
	assert_true(fabs(histogram_percentile(&loop->pass_times, 0.1) / 6000 - 1) < 0.02);
	assert_true(fabs(histogram_percentile(&loop->pass_times, 0.9) / 6000 - 1) < 0.02);
	synth_close(&synth);
}

/* ---------------------------------------------------------------- the kept file */

static const char whole[] = CALIBRATION_FIRST_LINE
	"key\n"
	"weight frame 31 40 1000 2000 300\n"
	"weight op_span 0 40 5 6 7\n" CALIBRATION_LAST_LINE;

static void test_file(void **state)
{
	struct record_CALIBRATION records[CALIBRATION_WEIGHTS_MAX];
	char text[sizeof(whole) + 1];

	(void)state;
	assert_int_equal(calibration_parse(whole, sizeof(whole) - 1, "key", records), 2);
	assert_int_equal(calibration_parse(whole, sizeof(whole) - 1, NULL, records), 2);
	assert_memory_equal(records[1].kind.data, "op_span", records[1].kind.length);
	assert_int_equal(records[0].distance, 31);
	assert_int_equal(records[0].interval_ns, 40);
	assert_int_equal(records[0].inside_ps, 1000);
	assert_int_equal(records[0].outside_ps, 2000);
	assert_int_equal(records[0].error_ps, 300);
	/* Of another interpreter; cut anywhere; too long. */
	assert_int_equal(calibration_parse(whole, sizeof(whole) - 1, "kez", records), 0);
	assert_int_equal(calibration_parse(whole, sizeof(whole) - 1, "ke", records), 0);
	for (size_t bytes = 0; bytes < sizeof(whole) - 1; bytes++)
		assert_int_equal(calibration_parse(whole, bytes, "key", records), 0);
	assert_int_equal(calibration_parse(whole, sizeof(whole), "key", records), 0);
	/* Any byte that is another. */
	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		memcpy(text, whole, sizeof(whole));
		text[i] = '\n';
		if (whole[i] != '\n')
			assert_int_equal(calibration_parse(text, sizeof(whole) - 1, "key", records),
					 0);
	}
}

static void test_many(void **state)
{
	struct record_CALIBRATION records[CALIBRATION_WEIGHTS_MAX];
	char *text = malloc(CALIBRATION_FILE_MAX);
	size_t length = (size_t)sprintf(text, CALIBRATION_FIRST_LINE "\n");

	(void)state;
	for (unsigned i = 0; i <= CALIBRATION_WEIGHTS_MAX; i++)
		length += (size_t)sprintf(text + length, "weight frame %u 1 1 1 1\n", i);
	length += (size_t)sprintf(text + length, CALIBRATION_LAST_LINE);
	assert_int_equal(calibration_parse(text, length, NULL, records), 0);
	free(text);
}

/* Records of a later or a damaged trace: unknown kinds, absurd numbers, too many. */
static void test_odd_records(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	weigh(main, "", 0, 0, 1, 1);
	weigh(main, "something_new", 0, 7, 1, 1);
	weigh(main, "frame", UINT32_MAX, UINT32_MAX, 1000, 1000);
	weigh(main, "generator", WEIGHT_DISTANCES + 1, 0, 4000000, 4000000);
	for (unsigned i = 0; i < 2 * CALIBRATION_WEIGHTS_MAX; i++)
		weigh(main, "frame", i, i, 4000000, 4000000);
	enter(main, 1000, FRAME, USER, 0, 0);
	call(main, 2000, 3000, FRAME, LIBRARY, 5, 3 << 1);
	leave(main, 8000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth), EXPECT([LINE_tare] = 8000), 8000);
	synth_close(&synth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),     cmocka_unit_test(test_none),
		cmocka_unit_test(test_clamping),    cmocka_unit_test(test_frames),
		cmocka_unit_test(test_intervals),   cmocka_unit_test(test_operators),
		cmocka_unit_test(test_waits),       cmocka_unit_test(test_threads),
		cmocka_unit_test(test_backward),    cmocka_unit_test(test_pass),
		cmocka_unit_test(test_file),        cmocka_unit_test(test_many),
		cmocka_unit_test(test_odd_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
