/*
 * test_analyzer_moments.c: moments that are hard to place, on invented traces, to the unit: clocks that
 * drift, lost events, spans left without their leave, generators, threads at once, the autograd thread.
 */
#include "tests/unit/analyzer_util.h"

#include "analyzer/ledger_view.h"
#include "analyzer/walk.h"

/* The self times of all paths are the thread's time, as is the sum of its lines. */
static void check_self(struct model *model, uint64_t expected)
{
	uint64_t self = 0;

	for (uint32_t i = 0; i < model->tree.count; i++)
		self += model->tree.nodes[i].self;
	assert_int_equal(self, expected);
}

/* ---------------------------------------------------------------- clocks */

/* The trace's clock is a counter: a unit is what the two pairs furthest apart say. */
static void set_clock(struct synth *synth, uint64_t units, uint64_t ns)
{
	struct trace_header *header = synth->file->header;

	header->clock = TRACE_CLOCK_TSC;
	header->load = (struct trace_clock_pair){ 0 };
	header->crc = crc32c(0, header, offsetof(struct trace_header, crc));
	header->end = (struct trace_clock_pair){ header->open.units + units,
						 header->open.monotonic_ns + ns };
	header->ended = TRACE_END_EXIT;
}

static double line_ns(struct synth *synth, enum ledger_line line)
{
	return model_ns(&synth->model, process_ledger(synth).lines[line]);
}

static void drift(uint64_t units, uint64_t ns, uint64_t line_units)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0);

	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 1000, 1000 + line_units, LAUNCH, LAUNCH, 1, 0);
	call(other, 2000, 2000 + line_units, SECTION, 7);
	/* Blocks of both threads with a pair of their own, at a rate of 1: it drifts later. */
	trace_buffer_flush(main);
	trace_buffer_flush(other);
	leave(main, units);
	set_clock(&synth, units, ns);
	synth_read(&synth);
	assert_true(fabs(synth.model.unit_ns * (double)units - (double)ns) < 0.5);
	double launch = line_ns(&synth, LINE_launch), python = line_ns(&synth, LINE_python_user);
	assert_true(fabs(launch - (double)line_units * (double)ns / (double)units) < 0.5);
	/* Nothing is lost between rates: the lines are the time that CLOCK_MONOTONIC saw pass. */
	assert_true(fabs(launch + python - (double)ns) < 0.5);
	assert_true(fabs(trace_monotonic_ns(synth.reader, synth.base + units) -
			 (double)(synth.file->header->open.monotonic_ns + ns)) < 1000);
	assert_units(thread_ledger(&synth, 2).lines[LINE_other] +
			     thread_ledger(&synth, 2).lines[LINE_framework],
		     line_units);
	synth_close(&synth);
}

static void test_clock_drift(void **state)
{
	(void)state;
	/* As far as NTP bends it, either way; and counters of other rates. */
	drift(100000000000, 100050000000, 40000000000);
	drift(100000000000, 99950000000, 40000000000);
	drift(100000000000, 37037037037, 5400000000);
	drift(40000000000, 100000000000, 10000000000);
}

/* Two processes with clocks of their own saw the same second: so do their ledgers. */
static void test_two_clocks(void **state)
{
	static const uint64_t units[2] = { 50000000000, 120000000000 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct synth synth;
		struct trace_buffer *main = synth_main(&synth);

		enter(main, 0, FRAME, USER, 0, 0);
		call(main, units[i] / 4, units[i] / 2, SYNC, SYNC, 1, 0);
		leave(main, units[i]);
		set_clock(&synth, units[i], 100000000000);
		synth_read(&synth);
		/* Of one call all is idle cost, up to 5 us. */
		assert_units(line_ns(&synth, LINE_framework), 5000);
		assert_units(line_ns(&synth, LINE_wait), 25000000000 - 5000);
		assert_units(line_ns(&synth, LINE_python_user), 75000000000);
		synth_close(&synth);
	}
}

/* ---------------------------------------------------------------- lost events */

struct feed {
	struct synth synth;
	struct model model;
	struct trace_buffer *main;
	uint64_t block;
};

static void feed_open(struct feed *feed)
{
	char message[512];

	*feed = (struct feed){ 0 };
	feed->main = synth_main(&feed->synth);
	feed->synth.reader = trace_open(feed->synth.path, NULL, message, sizeof(message));
	assert_non_null(feed->synth.reader);
	model_start(&feed->model, feed->synth.reader);
}

/* A block of a thread's events; `gap`: others are missing before it. Times are since the trace's begin. */
static void feed_block(struct feed *feed, uint32_t depth, bool gap, struct trace_event *events,
		       uint32_t count)
{
	struct trace_batch batch = {
		.thread = 1,
		.depth = depth,
		.block_start = true,
		.gap = gap,
		.block = feed->block++,
		.count = count,
		.events = events,
	};

	for (uint32_t i = 0; i < count; i++) {
		events[i].time += feed->synth.base;
		events[i].field_count = TRACE_FIELDS_MAX;
	}
	walk_batch(&feed->model, feed->synth.reader, &batch);
}

static void feed_close(struct feed *feed)
{
	model_free(&feed->model);
	synth_close(&feed->synth);
}

#define BLOCK(feed, depth, gap, ...)                                                               \
	do {                                                                                       \
		struct trace_event events_[] = { __VA_ARGS__ };                                    \
		feed_block(feed, depth, gap, events_, sizeof(events_) / sizeof(*events_));         \
	} while (0)
#define AT_(time_, code_, ...)                                                                     \
	{                                                                                          \
		.time = (time_), .code = TRACE_##code_, .fields = { __VA_ARGS__ }                  \
	}

/* The gap lies between an operator's begin and its end: neither it nor the frame around gets the time. */
static void test_lost_in_a_span(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed);
	BLOCK(&feed, 0, false, AT_(1000, FRAME, USER), AT_(2000, SECTION, 3), AT_(2100, OP, ADD),
	      AT_(2500, LAUNCH, LAUNCH));
	/* The launch, the section and a frame in between were left; the section that is open is another. */
	BLOCK(&feed, 1, true, AT_(9000, SECTION, 5), AT_(9010, OP, MUL), AT_(9400, LEAVE),
	      AT_(9900, SECTION, 6), AT_(9950, OP, MUL), AT_(10000, LEAVE), AT_(10500, LEAVE));
	model_finish(&feed.model, feed.synth.reader);
	check_ledger(process_ledger_of(&feed.model),
		     EXPECT([LINE_other] = 1000 + 6500, [LINE_python_user] = 1000 + 500 + 500,
			    [LINE_framework] = 500 + 400 + 100),
		     10500);
	check_self(&feed.model, 9500);
	feed.synth.model = feed.model;
	const struct op_row *add = find_row(&feed.synth, OP_KIND_OPERATOR, ADD, 3),
			    *mul = find_row(&feed.synth, OP_KIND_OPERATOR, MUL, 5),
			    *next = find_row(&feed.synth, OP_KIND_OPERATOR, MUL, 6);
	/* What ran into the gap counts as a call alone; what came before the next is not known. */
	assert_int_equal(add->calls, 1);
	assert_false(add->has_first);
	assert_false(mul->first_python_known);
	assert_units(op_row_sums(&feed.model.op_table, mul).first[OP_framework], 400);
	assert_units(op_row_sums(&feed.model.op_table, next).first[OP_python], 500);
	feed.synth.model = (struct model){ 0 };
	feed_close(&feed);
}

/* The same number of spans is open: the frame goes on, what it did meanwhile is not known. */
static void test_lost_in_between(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed);
	BLOCK(&feed, 0, false, AT_(0, FRAME, USER), AT_(1000, FRAME, LIBRARY, 2), AT_(1800, LEAVE));
	BLOCK(&feed, 1, true, AT_(7000, SECTION, 3), AT_(7000, OP, ADD), AT_(7500, LEAVE));
	BLOCK(&feed, 1, true, AT_(7500, SECTION, 4), AT_(7500, OP, ADD), AT_(7600, LEAVE),
	      AT_(8000, LEAVE));
	model_finish(&feed.model, feed.synth.reader);
	check_ledger(process_ledger_of(&feed.model),
		     EXPECT([LINE_python_user] = 1000 + 400, [LINE_python_library] = 800,
			    [LINE_other] = 5200, [LINE_framework] = 500 + 100),
		     8000);
	check_self(&feed.model, 8000);
	feed.synth.model = feed.model;
	assert_false(find_row(&feed.synth, OP_KIND_OPERATOR, ADD, 3)->first_python_known);
	assert_false(find_row(&feed.synth, OP_KIND_OPERATOR, ADD, 4)->first_python_known);
	feed.synth.model = (struct model){ 0 };
	feed_close(&feed);
}

/* Enters are lost: spans of which only the number is known, until they are left. */
static void test_lost_enters(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed);
	BLOCK(&feed, 0, false, AT_(0, FRAME, USER), AT_(600, SECTION, 2));
	BLOCK(&feed, 4, true, AT_(5000, SECTION, 9), AT_(5400, LEAVE), AT_(6000, LEAVE),
	      AT_(6200, LEAVE), AT_(6300, FRAME, LIBRARY), AT_(6700, LEAVE), AT_(7000, LEAVE),
	      AT_(7700, LEAVE));
	model_finish(&feed.model, feed.synth.reader);
	check_ledger(process_ledger_of(&feed.model),
		     EXPECT([LINE_python_user] = 600, [LINE_framework] = 400,
			    [LINE_python_library] = 400, [LINE_other] = 7700 - 1400),
		     7700);
	check_self(&feed.model, 7700);
	assert_int_equal(feed.model.stray_leaves, 0);
	assert_int_equal(feed.model.threads[1]->top, 0);
	assert_int_equal(feed.model.threads[1]->base, 0);
	feed_close(&feed);
}

/* A call that ran into the gap has no duration: it is no idle cost, and its class has no time beyond. */
static void test_lost_call(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed);
	BLOCK(&feed, 0, false, AT_(0, FRAME, USER), AT_(1000, SYNC, SYNC, 1), AT_(4000, LEAVE),
	      AT_(10000, SYNC, SYNC, 1), AT_(10200, GIL), AT_(10300, LEAVE));
	BLOCK(&feed, 1, true, AT_(50000, SYNC, SYNC, 1), AT_(60000, LEAVE), AT_(70000, LEAVE));
	model_finish(&feed.model, feed.synth.reader);
	/* 3000 of each is what one costs idle; of the one that was cut 200 are known to have been spent. */
	check_ledger(
		process_ledger_of(&feed.model),
		EXPECT([LINE_python_user] = 1000 + 6000 + 10000, [LINE_framework] = 3000 + 3000,
		       [LINE_wait] = 7000 + 200, [LINE_gil] = 100, [LINE_other] = 39700),
		70000);
	assert_int_equal(process_ledger_of(&feed.model).calls[LINE_wait], 2);
	feed_close(&feed);
}

/* ---------------------------------------------------------------- spans left without their leave */

/* An exception past several frames, a section and a call: all are left at once, since when is not known. */
static void test_unwinding(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, FRAME, LIBRARY, 1, 0);
	enter(main, 2000, FRAME, USER, 1, 0);
	enter(main, 3000, SECTION, 1);
	mark(main, 3100, OP, ADD, 0, 0);
	enter(main, 3500, SYNC, SYNC, 1, 0);
	enter(main, 3600, TARE, 1);
	trace_leave(main, synth.base + 5000, 2, 0);
	assert_int_equal(main->depth, 2);
	leave(main, 5500);
	/* The same twice at one depth, and from the outermost. */
	enter(main, 6000, FRAME, LIBRARY, 2, 0);
	enter(main, 6100, FRAME, LIBRARY, 2, 0);
	trace_leave(main, synth.base + 6100, 1, 0);
	assert_int_equal(main->depth, 1);
	enter(main, 7000, FRAME, LIBRARY, 3, 0);
	trace_leave(main, synth.base + 7400, 0, 0);
	assert_int_equal(main->depth, 0);
	enter(main, 8000, FRAME, USER, 0, 0);
	leave(main, 9000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 1000 + 1000 + 500 + 900 + 1000,
			    [LINE_python_library] = 1000 + 500 + 100, [LINE_framework] = 500,
			    [LINE_wait] = 100, [LINE_other] = 1400 + 400 + 600),
		     9000);
	check_self(&synth.model, 9000);
	assert_int_equal(synth.model.stray_leaves, 0);
	assert_int_equal(find_row(&synth, OP_KIND_OPERATOR, ADD, 1)->calls, 1);
	assert_false(find_row(&synth, OP_KIND_OPERATOR, ADD, 1)->has_first);
	synth_close(&synth);
}

/* ---------------------------------------------------------------- generators */

/*
 * A generator is a frame each time it goes on: what it does in between is not its time, whoever resumes
 * it. It ends by being closed or thrown into like any other.
 */
static void test_generator(void **state)
{
	enum { GENERATOR = 9, HELPER = 10 };
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct record_CODE generator = { .code = GENERATOR,
					 .flags = 0x20,
					 .file = STR("/usr/lib/python3.11/dist-packages/data.py"),
					 .name = STR("batches") };
	struct record_CODE helper = { .code = HELPER,
				      .file = STR("/srv/u/train.py"),
				      .name = STR("helper") };

	(void)state;
	assert_true(trace_define(main, TRACE_RECORD_CODE, &generator));
	assert_true(trace_define(main, TRACE_RECORD_CODE, &helper));
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 1000, 1700, FRAME, GENERATOR, 3, 0); /* yields */
	enter(main, 4000, FRAME, GENERATOR, 3, 0);      /* goes on, calls an operator */
	enter(main, 4100, SECTION, 5);
	mark(main, 4150, OP, ADD, 0, 0);
	leave(main, 4400);
	leave(main, 4500);
	enter(main, 6000, FRAME, HELPER, 7, 0); /* resumed by another */
	call(main, 6300, 6800, FRAME, GENERATOR, 2, 0);
	leave(main, 7000);
	enter(main, 8000, FRAME, GENERATOR, 8, 1); /* thrown into: it catches that, and yields */
	leave(main, 8250);
	enter(main, 9000, FRAME, GENERATOR, 9, 1); /* closed: left by the exception */
	trace_leave(main, synth.base + 9040, main->depth - 1, 1);
	leave(main, 10000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 10000 - 1990, [LINE_framework] = 300,
			    [LINE_python_library] = 700 + 200 + 500 + 250 + 40),
		     10000);
	check_self(&synth.model, 10000);
	uint64_t self = 0, count = 0;
	for (uint32_t i = TREE_OTHER + 1; i < synth.model.tree.count; i++) {
		const struct tree_node *node = &synth.model.tree.nodes[i];
		const char *name = node->kind == TRACE_FRAME ?
					   synth.model.definitions.codes[node->index].name :
					   "";

		if (strcmp(name, "batches"))
			continue;
		self += node->self;
		count += node->count;
	}
	assert_int_equal(self, 1690);
	assert_int_equal(count, 5);
	/* Since the generator went on, not since its last child. */
	const struct op_row *row = find_row(&synth, OP_KIND_OPERATOR, ADD, 5);
	assert_units(op_row_sums(&synth.model.op_table, row).first[OP_python], 100);
	synth_close(&synth);
}

/* ---------------------------------------------------------------- threads at once */

/* Two threads launch in turn, and their calls overlap: one wall, each moment of it the leader's alone. */
static void test_overlap(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(other, 500, FRAME, LIBRARY, 0, 0);
	enter(main, 1000, LAUNCH, LAUNCH, 1, 0);
	enter(other, 1400, LAUNCH, LAUNCH, 1, 0);
	leave(main, 2000);
	enter(main, 2100, LAUNCH, LAUNCH, 1, 0);
	leave(other, 2600);
	leave(main, 2700);
	call(other, 2800, 3800, COPY, MEMCPY, 1, 0, 1, 16, 0, 0); /* leads no one */
	call(other, 4000, 4400, LAUNCH, LAUNCH, 1, 0);
	leave(other, 5000);
	leave(main, 9000);
	synth_read(&synth);
	check_ledger(thread_ledger(&synth, 1),
		     EXPECT([LINE_python_user] = 9000 - 1600, [LINE_launch] = 1600), 9000);
	check_ledger(thread_ledger(&synth, 2),
		     EXPECT([LINE_python_library] = 900 + 200 + 200 + 600, [LINE_launch] = 1600,
			    [LINE_copy] = 1000),
		     4500);
	/* main to 1400, the other to 2100, main to 4000, the other to its end, main. */
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 1000 + 1300 + 4000,
			    [LINE_launch] = 400 + 700 + 600 + 400, [LINE_python_library] = 600),
		     9000);
	/* Calls are those of all, also of who did not lead when they ended. */
	assert_int_equal(process_ledger(&synth).calls[LINE_launch], 4);
	assert_int_equal(process_ledger(&synth).calls[LINE_copy], 1);
	synth_close(&synth);
}

/* A thread that led is left by an exception past its outermost frame: the main thread is followed again. */
static void test_leader_unwound(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(other, 1000, FRAME, LIBRARY, 0, 0);
	call(other, 2000, 2500, LAUNCH, LAUNCH, 1, 0);
	trace_leave(other, synth.base + 3000, 0, 0);
	leave(main, 4000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 2000 + 1000, [LINE_launch] = 500,
			    [LINE_python_library] = 500),
		     4000);
	synth_close(&synth);
}

/* ---------------------------------------------------------------- the autograd thread */

/* Two backward passes: hand-over there, between nodes, and back; waiting and the GIL are the worker's. */
static void test_two_backwards(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *worker = synth_thread(&synth, 0);

	(void)state;
	synth_torch_thread(main, 1);
	enter(worker, 0, SECTION, 0);
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t now = 10000 + 20000 * i;

		enter(main, now, SECTION, 2);
		enter(worker, now + 400, NODE, NODE_MUL, 1, 41);
		call(worker, now + 500, now + 800, LAUNCH, LAUNCH, 0, 0);
		call(worker, now + 900, now + 960, GIL, 0);
		leave(worker, now + 1000);
		enter(worker, now + 1300, NODE, NODE_MUL, 1, 42);
		call(worker, now + 1400, now + 3400, SYNC, SYNC, 0, 0);
		leave(worker, now + 3500);
		call(main, now + 4100, now + 4200, GIL, 0);
		leave(main, now + 4300);
	}
	leave(main, 40000);
	synth_read(&synth);
	const double framework = 2 * (100 + 100 + 40 + 100 + 100), handover = 2 * (400 + 300 + 600);
	/* The shortest of both syncs is what one costs: as much as both took. */
	const double sync = 2 * 2000;
	const double *expected =
		EXPECT([LINE_python_user] = 40000 - 2 * 4300, [LINE_handover] = handover,
		       [LINE_framework] = framework + sync + 2 * 100, [LINE_launch] = 2 * 300,
		       [LINE_gil] = 2 * (60 + 100));
	check_ledger(process_ledger(&synth), expected, 40000);
	check_ledger(thread_ledger(&synth, 1), expected, 40000);
	/* On the thread itself: what nobody waited for is no hand-over. */
	check_ledger(thread_ledger(&synth, 2),
		     EXPECT([LINE_other] = 10400 + 15900 + 400 + 5900,
			    [LINE_handover] = 2 * (300 + 600), [LINE_framework] = framework + sync,
			    [LINE_launch] = 2 * 300, [LINE_gil] = 2 * 60),
		     40000);
	assert_int_equal(process_ledger(&synth).calls[LINE_launch], 2);
	assert_int_equal(process_ledger(&synth).calls[LINE_wait], 2);
	synth_close(&synth);
}

/* ---------------------------------------------------------------- imports */

/* Imports after the program's own work began are start-up; what others do meanwhile is not. */
static void test_late_import(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, FRAME, IMPORT, 1, 0); /* before: as it was */
	call(main, 1500, 2500, FRAME, LIBRARY, 0, 0);
	leave(main, 3000);
	enter(main, 4000, SECTION, 3);
	mark(main, 4000, OP, ADD, 0, 0);
	leave(main, 4500);
	enter(main, 5000, FRAME, IMPORT, 4, 0); /* late: 2000 */
	enter(main, 5500, FRAME, LIBRARY, 0, 0);
	call(main, 5600, 5700, FRAME, IMPORT, 2, 0); /* in it another */
	leave(main, 6500);
	leave(main, 7000);
	enter(main, 10000, FRAME, IMPORT, 5, 0); /* late, but left at once by an exception */
	enter(main, 10100, FRAME, LIBRARY, 0, 0);
	trace_leave(main, synth.base + 10400, 1, 0);
	enter(main, 12000, FRAME, IMPORT, 6,
	      0); /* while another thread leads from 12300 to 12900 */
	enter(other, 12200, FRAME, USER, 0, 0);
	call(other, 12300, 12500, LAUNCH, LAUNCH, 1, 0);
	leave(other, 12900);
	leave(main, 14000);
	leave(main, 20000);
	synth_read(&synth);
	assert_int_equal(synth.model.import_units, 2000 + 400 + 2000);
	struct ledger_parts parts = ledger_parts_of(&synth.model);
	check_ledger(parts.startup,
		     EXPECT([LINE_python_user] = 2000,
			    [LINE_python_library] = 2000 + 2000 + 100 + 1400, [LINE_other] = 300),
		     4000 + 2000 + 400 + 1400);
	assert_units(parts.late_imports, 2000 + 400 + 1400);
	check_ledger(parts.program,
		     EXPECT([LINE_python_user] = 500 + 3000 + 1600 + 400 + 6000,
			    [LINE_framework] = 500, [LINE_launch] = 200),
		     20000 - 7800);
	assert_units(parts.exit.wall, 0);
	assert_units(parts.all.wall, 20000);
	synth_close(&synth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock_drift),    cmocka_unit_test(test_two_clocks),
		cmocka_unit_test(test_lost_in_a_span), cmocka_unit_test(test_lost_in_between),
		cmocka_unit_test(test_lost_enters),    cmocka_unit_test(test_lost_call),
		cmocka_unit_test(test_unwinding),      cmocka_unit_test(test_generator),
		cmocka_unit_test(test_overlap),        cmocka_unit_test(test_leader_unwound),
		cmocka_unit_test(test_two_backwards),  cmocka_unit_test(test_late_import),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
