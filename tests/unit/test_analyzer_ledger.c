/* test_analyzer_ledger.c: invented programs whose ledgers are known to the unit. */
#include "tests/unit/analyzer_util.h"

#include <math.h>

static void test_nested_spans(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 1000, FRAME, USER, 0, 0);
	enter(main, 2000, FRAME, LIBRARY, 5, 0);
	enter(main, 2500, SECTION, 7);
	mark(main, 2600, OP, ADD, 0, 0);
	call(main, 3000, 3700, LAUNCH, LAUNCH, 0, 0);
	call(main, 4000, 4050, SYNC, QUERY, 0, 0); /* asks: part of what is around */
	leave(main, 5000);                         /* section */
	leave(main, 6000);                         /* library frame */
	call(main, 6100, 6150, GIL, 0);
	call(main, 6200, 6900, TARE, 1);
	leave(main, 8000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_other] = 1000, [LINE_python_user] = 1000 + 2000 - 750,
			    [LINE_python_library] = 500 + 1000, [LINE_framework] = 2500 - 700,
			    [LINE_launch] = 700, [LINE_gil] = 50, [LINE_tare] = 700),
		     8000);
	synth_close(&synth);
}

/* The idle cost is the shortest, at most 5 us. Allocations are not known to wait. */
static void test_waits(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 10000, 13000, SYNC, SYNC, 1, 0);
	call(main, 20000, 30000, SYNC, SYNC, 1, 0);
	call(main, 40000, 143000, SYNC, SYNC, 1, 0);
	call(main, 200000, 250000, MEMORY, MALLOC, 1, 0, 4096);
	leave(main, 300000);
	synth_read(&synth);
	double cap = (double)synth.model.calls.idle_cap;
	assert_true(fabs(cap - 5000) < 2);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 300000 - 116000 - 50000, [LINE_framework] = 9000,
			    [LINE_memory] = 50000, [LINE_wait] = 107000),
		     300000);
	assert_int_equal(process_ledger(&synth).calls[LINE_wait], 3);
	synth_close(&synth);
}

/* An operator calls Python: that waits for the GIL, and runs a function. */
static void test_python_in_operator(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SECTION, 7);
	mark(main, 1100, OP, ADD, 0, 0);
	enter(main, 2000, CALLBACK, 0);
	call(main, 2000, 2300, GIL, 0);
	call(main, 2500, 4000, FRAME, LIBRARY, 0, 0);
	leave(main, 4200); /* callback */
	leave(main, 5000); /* section */
	call(main, 5000, 5600, GIL, 0);
	leave(main, 8000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 1000 + 2400, [LINE_python_library] = 1500,
			    [LINE_framework] = 1000 + 200 + 200 + 800, [LINE_gil] = 300 + 600),
		     8000);
	synth_close(&synth);
}

/* Frees wait for the device; what one costs is known where it had nothing to do, and else 5 us at most. */
static void test_frees(void **state)
{
	for (unsigned idle = 0; idle < 2; idle++) {
		struct synth synth;
		struct trace_buffer *main = synth_main(&synth);

		(void)state;
		enter(main, 0, FRAME, USER, 0, 0);
		call(main, 1000, 2000, LAUNCH, LAUNCH, 1, 0);
		call(main, 10000, 90000, MEMORY, FREE, 1, 8, 0);
		if (!idle)
			call(main, 90000, 91000, LAUNCH, LAUNCH, 1, 0);
		call(main, 100000, 120000, MEMORY, FREE, 1, 16, 0);
		leave(main, 200000);
		synth_read(&synth);
		double cost = idle ? 20000 : (double)synth.model.calls.idle_cap;
		double launches = idle ? 1000 : 2000;
		check_ledger(
			process_ledger(&synth),
			EXPECT([LINE_python_user] = 100000 - launches, [LINE_launch] = launches,
			       [LINE_memory] = 2 * cost, [LINE_wait] = 100000 - 2 * cost),
			200000);
		synth_close(&synth);
	}
}

/* Of copies: the shortest, plus the bytes at the fastest rate. */
static void test_copies(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 10000, 12000, COPY, MEMCPY, 1, 0, 1, 16, 0, 0);
	/* 1 MB in 102 us, and again in 302: 10 bytes a ns. Other kinds have other rates. */
	call(main, 100000, 202000, COPY, MEMCPY, 1, 0, 1, 1000000, 0, 0);
	call(main, 300000, 602000, COPY, MEMCPY, 1, 0, 1, 1000000, 0, 0);
	call(main, 700000, 750000, COPY, MEMCPY, 1, 0, 2, 8, 0, 0);
	leave(main, 800000);
	synth_read(&synth);
	/* 2 us + 1 MB at the rate of the fastest, which leaves nothing to wait for in that one. */
	check_ledger(
		process_ledger(&synth),
		EXPECT([LINE_python_user] = 800000 - 2000 - 102000 - 302000 - 50000,
		       [LINE_copy] = 2000 + 102000 + 102000 + 2008, [LINE_wait] = 200000 + 47992),
		800000);
	synth_close(&synth);
}

/* A launch waits where it takes longer than 20 us and 8 times the median. */
static void test_full_queue(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 100; i++, now += 10000)
		call(main, now, now + 3000, LAUNCH, LAUNCH, 1, 0);
	call(main, now, now + 23000, LAUNCH, LAUNCH, 1, 0); /* not 8 times */
	now += 50000;
	call(main, now, now + 100000, LAUNCH, LAUNCH, 1, 0);
	now += 150000;
	leave(main, now);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = (double)now - 300000 - 123000,
			    [LINE_launch] = 300000 + 23000 + 3000, [LINE_wait] = 97000),
		     (double)now);
	synth_close(&synth);
}

/* A slow launch is no full queue where all are slow. */
static void test_slow_launches(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 50; i++, now += 100000)
		call(main, now, now + 40000, LAUNCH, LAUNCH, 1, 0);
	leave(main, now);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 50 * 60000, [LINE_launch] = 50 * 40000),
		     (double)now);
	synth_close(&synth);
}

/* Library calls are a line of their own, with the launches inside them. */
static void test_library(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	synth_function(main, GEMM, "cublasGemmEx", TRACE_CATEGORY_LIBRARY);
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SECTION, 1);
	mark(main, 1100, OP, MUL, 0, 0);
	enter(main, 2000, CALL, GEMM, 0);
	call(main, 2500, 2800, LAUNCH, LAUNCH, 0, 0);
	leave(main, 4000);
	leave(main, 5000);
	leave(main, 6000);
	synth_read(&synth);
	assert_true(synth.model.has_library);
	check_ledger(
		process_ledger(&synth),
		EXPECT([LINE_python_user] = 2000, [LINE_framework] = 2000, [LINE_library] = 2000),
		6000);
	const struct op_row *row = find_row(&synth, OP_KIND_OPERATOR, MUL, 1);
	struct op_sums sums = op_row_sums(&synth.model.op_table, row);
	assert_units(sums.first[OP_library], 2000);
	assert_units(sums.first[OP_framework], 2000);
	assert_int_equal(row->launches, 1);
	synth_close(&synth);
}

/* An operator outside of sections lasts to the end of what was last seen in it. */
static void test_outside_sections(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	mark(main, 1000, OP, ADD, 0, 3);
	call(main, 1500, 1700, LAUNCH, LAUNCH, 0, 0);
	mark(main, 4000, OP_OVER, 1);
	call(main, 4000, 4500, FRAME, LIBRARY, 4, 0);
	mark(main, 5000, OP, MUL, 0, 6);
	leave(main, 9000);
	synth_read(&synth);
	check_ledger(
		process_ledger(&synth),
		EXPECT([LINE_python_user] = 1000 + 2300 + 500 + 4000, [LINE_python_library] = 500,
		       [LINE_framework] = 500, [LINE_launch] = 200),
		9000);
	synth_close(&synth);
}

/* While a thread waits in backward(), its lines are those of the thread that works for it. */
static void test_backward(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *worker = synth_thread(&synth, 0);

	(void)state;
	synth_torch_thread(main, 1);
	enter(worker, 0, SECTION, 0);
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SECTION, 1);
	mark(main, 1100, OP, MUL, 0, 0);
	mark(main, 1900, MADE, 1, 40);
	leave(main, 2000);
	enter(main, 3000, SECTION, 2); /* run_backward */
	enter(worker, 3500, NODE, NODE_MUL, 1, 41);
	mark(worker, 3600, OP, MUL, 0, 0);
	call(worker, 4000, 4400, LAUNCH, LAUNCH, 0, 0);
	leave(worker, 5000);
	enter(worker, 5200, NODE, NODE_ACCUMULATE, 0, 0);
	leave(worker, 6000);
	leave(main, 7000);
	leave(main, 8000);
	synth_read(&synth);
	const double *expected =
		EXPECT([LINE_python_user] = 3000, [LINE_handover] = 500 + 200 + 1000,
		       [LINE_framework] = 1000 + 1500 - 400 + 800, [LINE_launch] = 400);
	check_ledger(process_ledger(&synth), expected, 8000);
	check_ledger(thread_ledger(&synth, 1), expected, 8000);
	check_ledger(thread_ledger(&synth, 2),
		     EXPECT([LINE_other] = 3500 + 1000, [LINE_handover] = 200 + 1000,
			    [LINE_framework] = 1500 - 400 + 800, [LINE_launch] = 400),
		     8000);
	synth_close(&synth);
}

/* Threads that run at once are not added up: the process follows the one that launches. */
static void test_threads(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0);

	(void)state;
	enter(main, 0, FRAME, LIBRARY, 0, 0); /* join() */
	enter(other, 1000, FRAME, USER, 0, 0);
	call(other, 2000, 3000, LAUNCH, LAUNCH, 1, 0);
	leave(other, 5000);
	leave(main, 6000);
	synth_read(&synth);
	check_ledger(thread_ledger(&synth, 1), EXPECT([LINE_python_library] = 6000), 6000);
	check_ledger(thread_ledger(&synth, 2),
		     EXPECT([LINE_python_user] = 3000, [LINE_launch] = 1000), 4000);
	/* The main thread's until the first launch, and when the other has ended. */
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_library] = 2000 + 1000, [LINE_python_user] = 2000,
			    [LINE_launch] = 1000),
		     6000);
	synth_close(&synth);
}

/* Spans that are left unseen: what they took since the last event is not known. */
static void test_leave_to(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, FRAME, LIBRARY, 1, 0);
	enter(main, 2000, SECTION, 1);
	mark(main, 2500, OP, ADD, 0, 0);
	trace_leave(main, synth.base + 5000, 1, 0);
	assert_int_equal(main->depth, 1);
	leave(main, 6000);
	synth_read(&synth);
	check_ledger(process_ledger(&synth),
		     EXPECT([LINE_python_user] = 2000, [LINE_python_library] = 1000,
			    [LINE_framework] = 500, [LINE_other] = 2500),
		     6000);
	const struct op_row *row = find_row(&synth, OP_KIND_OPERATOR, ADD, 1);
	assert_int_equal(row->calls, 1);
	assert_false(row->has_first);
	synth_close(&synth);
}

/* A forked child: spans that its parent had entered are left in it. */
static void test_spans_before(void **state)
{
	struct synth synth;
	struct trace_buffer *main;

	(void)state;
	synth_open(&synth);
	main = synth_thread(&synth, 2);
	synth_code(main, USER, "train.py", "main");
	enter(main, 1000, FRAME, USER, 0, 0);
	leave(main, 3000);
	leave(main, 4000); /* of the parent's */
	enter(main, 5000, FRAME, USER, 0, 0);
	leave(main, 6000);
	leave(main, 7000);
	synth_read(&synth);
	assert_int_equal(synth.model.stray_leaves, 0);
	check_ledger(process_ledger(&synth), EXPECT([LINE_python_user] = 3000, [LINE_other] = 4000),
		     7000);
	synth_close(&synth);
}

/* Killed in a call: it is open until the end, which is the last event of any thread. */
static void test_killed(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *other = synth_thread(&synth, 0);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SYNC, SYNC, 4, 0);
	call(other, 9000, 10000, FRAME, LIBRARY, 0, 0);
	synth_read(&synth);
	const struct model_thread *thread = synth.model.threads[1];
	assert_int_equal(thread->spans, 2);
	assert_int_equal(thread->stack[thread->top].kind, TRACE_SYNC);
	struct ledger ledger = thread_ledger(&synth, 1);
	assert_units(ledger.wall, 10000);
	/* It has not ended, so it was all waiting. */
	assert_units(ledger.lines[LINE_wait], 9000);
	assert_units(process_ledger(&synth).wall, 10000);
	synth_close(&synth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_spans),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_frees),
		cmocka_unit_test(test_python_in_operator),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_full_queue),
		cmocka_unit_test(test_slow_launches),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_outside_sections),
		cmocka_unit_test(test_backward),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_leave_to),
		cmocka_unit_test(test_spans_before),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
