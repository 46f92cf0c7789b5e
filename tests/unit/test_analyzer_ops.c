/* test_analyzer_ops.c: what invented operators cost, known to the unit. */
#include "tests/unit/analyzer_util.h"

#include <math.h>

#include "analyzer/opview.h"

static struct op_sums sums_of(struct synth *synth, const struct op_row *row)
{
	assert_non_null(row);
	return op_row_sums(&synth->model.op_table, row);
}

/* A call from Python: `python` after the last thing, a section of `section`. Returns when it has ended. */
static uint64_t add_section(struct synth *pointer, struct trace_buffer *main, uint64_t now,
			    uint32_t op, uint32_t site, uint64_t python, uint64_t section)
{
	struct synth synth = *pointer;

	now += python;
	enter(main, now, SECTION, site);
	mark(main, now + 10, OP, op, 0, 0);
	leave(main, now + section);
	return now + section;
}

static void test_section(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t now = 1000 + i * 10000;

		/* The child before ends at the frame's entry, or 10000 - 4000 ago. */
		enter(main, now, SECTION, 4);
		mark(main, now + 100, OP, MUL, 0, 0);
		mark(main, now + 200, OP, ADD, 0, 0); /* nested: belongs to MUL */
		call(main, now + 1000, now + 1500 + i * 100, LAUNCH, LAUNCH, 0, 0);
		call(main, now + 2000, now + 2001, TARE, 1);
		leave(main, now + 4000);
	}
	leave(main, 40000);
	synth_read(&synth);
	const struct op_row *row = find_row(&synth, OP_KIND_OPERATOR, MUL, 4);
	struct op_sums sums = sums_of(&synth, row);
	assert_int_equal(row->calls, 3);
	assert_int_equal(row->launches, 3);
	assert_int_equal(row->timed, 2);
	assert_int_equal(row->key.user_site, 4);
	/* The first call apart. */
	assert_units(sums.first[OP_python], 1000);
	assert_units(sums.first[OP_launch], 500);
	assert_units(sums.first[OP_framework], 3499);
	assert_units(sums.first[OP_fixed], 4999);
	assert_units(sums.later[OP_python], 2 * 6000);
	assert_units(sums.later[OP_launch], 600 + 700);
	assert_units(sums.later[OP_framework], 3399 + 3299);
	assert_units(sums.later[OP_wait], 0);
	assert_units(sums.later[OP_fixed], 12000 + 1300 + 6698);
	assert_null(find_row(&synth, OP_KIND_OPERATOR, ADD, 4));
	synth_close(&synth);
}

/* Python's time counts up to three times the site's p10: what is above is not on the way to the operator. */
static void test_python_cap(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 100; i++)
		now = add_section(&synth, main, now, ADD, 2, 500, 1000);
	now = add_section(&synth, main, now, ADD, 2, 9000000, 1000);
	leave(main, now);
	synth_read(&synth);
	struct op_sums sums = sums_of(&synth, find_row(&synth, OP_KIND_OPERATOR, ADD, 2));
	assert_true(fabs(sums.python_cap - 1500) < 0.016 * 1500);
	/* 99 of 500 and one of 1500; one of 500 was the first. Within the width of a bucket. */
	assert_true(fabs(sums.later[OP_python] - (99 * 500 + 1500)) < 0.016 * 51000);
	assert_units(sums.first[OP_python], 500);
	synth_close(&synth);
}

/* python begins at the end of the previous child of the same frame: frames and tare's own work count. */
static void test_python_begins(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	call(main, 500, 2000, FRAME, LIBRARY, 1, 0);
	call(main, 2100, 2150, TARE, 1); /* no work of the program's */
	add_section(&synth, main, 2150, ADD, 2, 50, 1000);
	enter(main, 4000, FRAME, LIBRARY, 3, 0);
	add_section(&synth, main, 4000, MUL, 9, 300, 1000);
	leave(main, 6000);
	leave(main, 7000);
	synth_read(&synth);
	const struct op_row *add = find_row(&synth, OP_KIND_OPERATOR, ADD, 2),
			    *mul = find_row(&synth, OP_KIND_OPERATOR, MUL, 9);
	assert_units(sums_of(&synth, add).first[OP_python], 100 + 50);
	assert_units(sums_of(&synth, mul).first[OP_python], 300);
	/* The site of one in a library is there; its user site is where the library was called. */
	assert_int_equal(mul->key.user_site, 3);
	assert_int_not_equal(mul->key.code, mul->key.user_code);
	assert_int_equal(add->key.code, mul->key.user_code);
	synth_close(&synth);
}

/* A section with several top operators is cut where the next begins; python belongs to the first. */
static void test_several(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 700, SECTION, 5);
	mark(main, 1000, OP, ADD, 0, 0);
	call(main, 1100, 1300, LAUNCH, LAUNCH, 0, 0);
	mark(main, 2000, OP, MUL, 1, 0);
	call(main, 2100, 2200, LAUNCH, LAUNCH, 0, 0);
	call(main, 2300, 2400, LAUNCH, LAUNCH, 0, 0);
	leave(main, 3000);
	leave(main, 4000);
	synth_read(&synth);
	const struct op_row *add = find_row(&synth, OP_KIND_OPERATOR, ADD, 5),
			    *mul = find_row(&synth, OP_KIND_OPERATOR, MUL, 5);
	assert_units(sums_of(&synth, add).first[OP_python], 700);
	assert_units(sums_of(&synth, add).first[OP_framework], 1300 - 200);
	assert_units(sums_of(&synth, add).first[OP_launch], 200);
	assert_units(sums_of(&synth, mul).first[OP_python], 0);
	assert_units(sums_of(&synth, mul).first[OP_framework], 1000 - 200);
	assert_int_equal(mul->launches, 2);
	synth_close(&synth);
}

/* Outside of sections an operator lasts to the end of what was last seen in it, a lower bound. */
/* Where nothing is seen in an operator outside of a section, neither is its end. */
static void test_outside(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	mark(main, 400, OP, ADD, 0, 3);
	mark(main, 500, OP, MUL, 0, 0); /* nested */
	call(main, 600, 700, LAUNCH, LAUNCH, 0, 0);
	mark(main, 1000, OP, ADD, 2, 4);
	leave(main, 2000);
	synth_read(&synth);
	const struct op_row *first = find_row(&synth, OP_KIND_OPERATOR, ADD, 3),
			    *second = find_row(&synth, OP_KIND_OPERATOR, ADD, 4);
	assert_units(sums_of(&synth, first).first[OP_python], 400);
	assert_units(sums_of(&synth, first).first[OP_framework], 200);
	assert_units(sums_of(&synth, first).first[OP_launch], 100);
	assert_units(sums_of(&synth, second).first[OP_python], 300);
	assert_true(first->first_framework_known);
	assert_false(second->first_framework_known);
	assert_int_equal(synth.model.op_table.count, 3);
	synth_close(&synth);
}

/* What is not known is in no figure; what is stays right, and adds up. */
static void test_outside_unknown(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct op_view view;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (uint64_t i = 0; i < 21; i++) {
		uint64_t now = i * 10000;

		mark(main, now + 1000, OP, ADD, i ? 1 : 0, 3);
		/* Every other one launches: those took 300 until the launch had ended. */
		if (i % 2)
			call(main, now + 1300, now + 1500, LAUNCH, LAUNCH, 0, 0);
		mark(main, now + 9000, OP, MUL, 1, 4);
	}
	leave(main, 300000);
	synth_read(&synth);
	struct op_sums sums = sums_of(&synth, find_row(&synth, OP_KIND_OPERATOR, ADD, 3));
	op_view_make(&view, &synth.model, GROUP_OP, false);
	const struct op_stats *add = &view.rows[1], *mul = &view.rows[2];
	if (strcmp(add->op, "aten::add.Tensor"))
		add = &view.rows[2], mul = &view.rows[1];
	assert_int_equal(add->samples, 20);
	assert_int_equal(op_stats_samples(add, OP_framework), 10);
	assert_int_equal(op_stats_samples(add, OP_fixed), 10);
	assert_int_equal(op_stats_samples(add, OP_launch), 20);
	assert_units(add->sum[OP_framework], 10 * 300);
	assert_units(add->sum[OP_launch], 10 * 200);
	assert_units(histogram_percentile(&add->parts[OP_framework], 0.1), 300);
	assert_units(histogram_percentile(&add->parts[OP_launch], 0.1), 0);
	/* Since MUL, of which nothing but the begin is known, 2000 each time. */
	assert_units(add->sum[OP_python], 20 * 2000);
	assert_units(add->sum[OP_fixed], 10 * (2000 + 300 + 200));
	assert_units(sums.later[OP_fixed], 20 * 2000 + 10 * (300 + 200));
	assert_units(add->total, 1000 + 20 * 2000 + 10 * (300 + 200));
	assert_int_equal(op_stats_samples(mul, OP_framework), 0);
	assert_int_equal(mul->parts[OP_fixed].count, 0);
	assert_int_equal(op_stats_samples(mul, OP_python), 20);
	op_view_free(&view);
	synth_close(&synth);
}

/* Operators by RecordFunction have both ends. */
static void test_record_function(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 400, OP_SPAN, ADD, 3);
	call(main, 500, 900, OP_SPAN, MUL, 0);
	leave(main, 1000);
	enter(main, 2000, SECTION, 4);
	call(main, 2100, 2900, OP_SPAN, COPY_, 0);
	leave(main, 3000);
	leave(main, 4000);
	synth_read(&synth);
	struct op_sums outside = sums_of(&synth, find_row(&synth, OP_KIND_OPERATOR, ADD, 3)),
		       inside = sums_of(&synth, find_row(&synth, OP_KIND_OPERATOR, COPY_, 4));
	assert_units(outside.first[OP_python], 400);
	assert_units(outside.first[OP_framework], 600);
	assert_units(inside.first[OP_python], 1000);
	assert_units(inside.first[OP_framework], 1000);
	assert_int_equal(synth.model.op_table.count, 3);
	synth_close(&synth);
}

/* Without an operator: a row named after the first call, or after nothing. */
static void test_no_operator(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SECTION, 2);
	call(main, 1200, 1700, SYNC, SYNC, 0, 0);
	leave(main, 2000);
	call(main, 2100, 2200, SECTION, 3);
	call(main, 3000, 3500, LAUNCH, LAUNCH, 9, 0);
	leave(main, 4000);
	synth_read(&synth);
	struct op_sums sync = sums_of(&synth, find_row(&synth, OP_KIND_CALL, SYNC, 2)),
		       nothing = sums_of(&synth, find_row(&synth, OP_KIND_SECTION, 0, 3)),
		       launch = sums_of(&synth, find_row(&synth, OP_KIND_CALL, LAUNCH, 9));
	/* What a synchronise costs with nothing to wait for is the framework's. */
	assert_units(sync.first[OP_framework], 500 + 500);
	assert_units(sync.first[OP_wait], 0);
	assert_units(nothing.first[OP_framework], 100);
	assert_units(nothing.first[OP_python], 100);
	assert_units(launch.first[OP_python], 800);
	assert_units(launch.first[OP_launch], 500);
	assert_units(launch.first[OP_framework], 0);
	synth_close(&synth);
}

/* Python that an operator calls is not its framework; operators below it are its own. */
static void test_callback(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 1000, SECTION, 2);
	mark(main, 1000, OP, MUL, 0, 0);
	enter(main, 2000, CALLBACK, 0);
	call(main, 2050, 2100, GIL, 0);
	enter(main, 2500, FRAME, LIBRARY, 0, 0);
	add_section(&synth, main, 2500, ADD, 8, 100, 300);
	leave(main, 4000);
	leave(main, 5000);
	leave(main, 6000);
	leave(main, 7000);
	synth_read(&synth);
	struct op_sums sums = sums_of(&synth, find_row(&synth, OP_KIND_OPERATOR, MUL, 2));
	/* 5000 in the section, less 50 for the GIL, less 1500 in the frame, of which the operator in it took 300. */
	assert_units(sums.first[OP_framework], 5000 - 50 - 1500 + 300);
	assert_units(sums.first[OP_gil], 50);
	assert_int_equal(synth.model.op_table.count, 2);
	synth_close(&synth);
}

/* Backward nodes belong to the forward operator that made them. */
static void test_backward(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth), *worker;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t now = i * 1000;

		enter(main, now + 100, SECTION, 2 + i);
		mark(main, now + 110, OP, MUL, 0, 0);
		mark(main, now + 200, MADE, 1, 1000 + i);
		leave(main, now + 210);
	}
	synth_torch_thread(main, 7);
	enter(main, 100000, SECTION, 500);
	worker = synth_thread(&synth, 0);
	enter(worker, 100100, SECTION, 0);
	for (uint64_t i = 0; i < 100; i++) {
		enter(worker, 100500 + i * 1000, NODE, NODE_MUL, 7, 1000 + 99 - i + 1);
		mark(worker, 100600 + i * 1000, OP, MUL, 0, 0);
		call(worker, 100700 + i * 1000, 100800 + i * 1000, LAUNCH, LAUNCH, 0, 0);
		leave(worker, 100900 + i * 1000);
	}
	/* Made by nobody that is known. */
	call(worker, 300000, 300100, NODE, NODE_MUL, 7, 5);
	call(worker, 300200, 300300, NODE, NODE_ACCUMULATE, 0, 0);
	leave(main, 400000);
	leave(main, 500000);
	synth_read(&synth);
	for (uint32_t i = 0; i < 100; i++) {
		const struct op_row *row = find_row(&synth, OP_KIND_NODE, NODE_MUL, 2 + i);
		struct op_sums sums = sums_of(&synth, row);

		assert_int_equal(row->calls, 1);
		assert_int_equal(row->launches, 1);
		assert_int_equal(row->key.user_site, 2 + i);
		assert_false(row->first_python_known);
		assert_units(sums.first[OP_framework], 300);
		assert_units(sums.first[OP_launch], 100);
	}
	assert_int_equal(find_row(&synth, OP_KIND_NODE, NODE_MUL, 0)->calls, 1);
	assert_int_equal(find_row(&synth, OP_KIND_NODE, NODE_ACCUMULATE, 0)->calls, 1);
	/* The section that waited took the time until the first node, no more. */
	assert_units(sums_of(&synth, find_row(&synth, OP_KIND_SECTION, 0, 500)).first[OP_framework],
		     0);
	synth_close(&synth);
}

/* On the CPU nodes run in the thread that called backward(). A custom node's Python has rows of its own. */
static void test_backward_here(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	synth_torch_thread(main, 1);
	enter(main, 0, FRAME, USER, 0, 0);
	enter(main, 100, SECTION, 2);
	enter(main, 1000, NODE, NODE_MUL, 1, 1);
	mark(main, 1100, OP, MUL, 0, 0);
	leave(main, 2000);
	enter(main, 3000, NODE, NODE_ACCUMULATE, 0, 0);
	enter(main, 3100, CALLBACK, 0);
	enter(main, 3200, FRAME, USER, 0, 0);
	add_section(&synth, main, 3200, ADD, 9, 50, 400);
	leave(main, 4000);
	leave(main, 4100);
	leave(main, 5000);
	leave(main, 6000);
	leave(main, 7000);
	synth_read(&synth);
	assert_units(sums_of(&synth, find_row(&synth, OP_KIND_SECTION, 0, 2)).first[OP_framework],
		     900 + 1000 + 1000);
	assert_units(
		sums_of(&synth, find_row(&synth, OP_KIND_NODE, NODE_MUL, 0)).first[OP_framework],
		1000);
	assert_units(sums_of(&synth, find_row(&synth, OP_KIND_NODE, NODE_ACCUMULATE, 0))
			     .first[OP_framework],
		     100 + 100 + 100 + 900);
	struct op_sums add = sums_of(&synth, find_row(&synth, OP_KIND_OPERATOR, ADD, 9));
	assert_units(add.first[OP_framework], 400);
	assert_units(add.first[OP_python], 50);
	synth_close(&synth);
}

/* Frames that are not seen: AT says what code the sites are in. */
static void test_at(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);

	(void)state;
	mark(main, 0, AT, USER);
	add_section(&synth, main, 0, ADD, 6, 100, 100);
	enter(main, 1000, FRAME, LIBRARY, 7, 0);
	mark(main, 1000, AT, USER);
	add_section(&synth, main, 1000, MUL, 8, 100, 100);
	leave(main, 2000);
	add_section(&synth, main, 2000, COPY_, 9, 100, 100);
	synth_read(&synth);
	const struct op_row *add = find_row(&synth, OP_KIND_OPERATOR, ADD, 6);
	assert_string_equal(synth.model.definitions.codes[add->key.code].file, "/srv/u/train.py");
	/* No frame is known, so neither is Python's time. */
	assert_false(add->first_python_known);
	const struct op_row *mul = find_row(&synth, OP_KIND_OPERATOR, MUL, 8);
	assert_int_equal(mul->key.code, add->key.code);
	assert_int_equal(find_row(&synth, OP_KIND_OPERATOR, COPY_, 9)->key.code, add->key.code);
	synth_close(&synth);
}

/* Grouping: percentiles of one row, sums of several. */
static void test_view(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct op_view view;
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 101; i++) {
		now = add_section(&synth, main, now, ADD, 2, 500, 1000 + i * 10);
		now = add_section(&synth, main, now, ADD, 3, 500, 5000);
	}
	now = add_section(&synth, main, now, MUL, 4, 500, 1000);
	leave(main, now);
	synth_read(&synth);
	op_view_make(&view, &synth.model, GROUP_OP, false);
	assert_int_equal(view.count - 1, 2);
	assert_string_equal(view.rows[1].op, "aten::add.Tensor");
	assert_int_equal(view.rows[1].calls, 202);
	assert_int_equal(view.rows[1].samples, 200);
	assert_units(view.rows[1].total, 202 * 500 + 101 * 1000 + 5050 * 10 + 101 * 5000);
	assert_string_equal(view.rows[2].op, "aten::mul.Tensor");
	/* Called once: that call speaks for it. */
	assert_int_equal(view.rows[2].samples, 1);
	assert_units(histogram_percentile(&view.rows[2].parts[OP_fixed], 0.5), 1500);
	op_view_free(&view);

	op_view_make(&view, &synth.model, GROUP_OP | GROUP_SITE, false);
	assert_int_equal(view.count - 1, 3);
	assert_int_equal(view.rows[1].key.site, 3);
	assert_units(histogram_percentile(&view.rows[1].parts[OP_framework], 0.5), 5000);
	assert_units(histogram_percentile(&view.rows[1].parts[OP_python], 0.1), 500);
	double median = histogram_percentile(&view.rows[2].parts[OP_framework], 0.5);
	assert_true(fabs(median - 1505) < 0.02 * 1505);
	double low = histogram_percentile(&view.rows[2].parts[OP_framework], 0.1);
	assert_true(fabs(low - 1105) < 0.02 * 1105);
	assert_true(op_view_sort(&view, "name"));
	assert_false(op_view_sort(&view, "nonsense"));
	op_view_free(&view);
	synth_close(&synth);
}

/* What is no operator comes last in whatever order; for people it is one row, and all are summed up. */
static void test_no_operator_last(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct op_view view;
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (uint32_t i = 0; i < 20; i++) {
		call(main, now + 100, now + 90000, SECTION, 5 + i % 2);
		now = add_section(&synth, main, now + 90000, i % 2 ? ADD : MUL, 2 + i % 2, 500,
				  1000);
	}
	leave(main, now);
	synth_read(&synth);
	op_view_make(&view, &synth.model, GROUP_OP | GROUP_SITE, VIEW_TEXT);
	for (unsigned by_name = 0; by_name < 2; by_name++) {
		assert_true(op_view_sort(&view, by_name ? "name" : "calls"));
		assert_int_equal(view.count - 1, 3);
		assert_int_equal(view.rows[3].key.kind, OP_KIND_SECTION);
		assert_int_equal(view.rows[3].calls, 20);
		assert_int_equal(op_view_hidden(&view, 1), 1);
		assert_int_equal(op_view_hidden(&view, 0), 0);
		for (unsigned top = 0; top < 4; top++) {
			struct table *table = op_view_table(&view, top, 1e9);

			assert_int_equal(table_rows(table), (top && top < 2 ? top : 2) + 2);
			table_free(table);
		}
	}
	op_view_free(&view);
	/* For programs each place is a row, and there is none that must not be added up with them. */
	op_view_make(&view, &synth.model, GROUP_OP | GROUP_SITE, 0);
	assert_int_equal(view.count - 1, 4);
	for (uint32_t i = 3; i <= 4; i++)
		assert_int_equal(view.rows[i].key.kind, OP_KIND_SECTION);
	struct table *table = op_view_table(&view, 0, 1e9);
	assert_int_equal(table_rows(table), 4);
	table_free(table);
	op_view_free(&view);
	synth_close(&synth);
}

static const struct op_floor *floor_at(struct synth *synth, const struct op_floor *floors,
				       uint32_t op, uint32_t site)
{
	return floors_of(floors, find_row(synth, OP_KIND_OPERATOR, op, site));
}

/* Where an operator of the CPU took least stands for its data of no size, if some took far more. */
static void test_floor(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 41; i++) {
		now = add_section(&synth, main, now, ADD, 2, 500, 1000);
		now = add_section(&synth, main, now, ADD, 3, 700, 50000);
		/* Too few to tell. */
		if (i < 5)
			now = add_section(&synth, main, now, ADD, 4, 500, 100);
		/* All alike: it cannot be told of what they are. */
		now = add_section(&synth, main, now, MUL, 5, 500, 3000 + i);
		now = add_section(&synth, main, now, MUL, 6, 500, 3100);
		/* On a device: none of its parts grows. */
		enter(main, now, SECTION, 7);
		mark(main, now + 10, OP, COPY_, 0, 0);
		call(main, now + 100, now + 200, LAUNCH, LAUNCH, 0, 0);
		leave(main, now + 300);
		now += 300;
	}
	leave(main, now);
	synth_read(&synth);
	struct op_floor *floors = floors_make(&synth.model);
	const struct op_floor *add = floor_at(&synth, floors, ADD, 2),
			      *mul = floor_at(&synth, floors, MUL, 5);
	assert_ptr_equal(add, floor_at(&synth, floors, ADD, 3));
	assert_ptr_equal(add, floor_at(&synth, floors, ADD, 4));
	assert_true(add->known);
	assert_int_equal(add->places, 2);
	assert_int_equal(add->calls, 80);
	assert_true(fabs(add->least - 1000) < 0.016 * 1000);
	assert_false(mul->known);
	assert_int_equal(mul->places, 2);
	assert_null(floor_at(&synth, floors, COPY_, 7));
	free(floors);
	synth_close(&synth);
}

/* Operators whose result autograd keeps cost more: their least is one of their own. */
static void test_floor_of_autograd(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	uint64_t now = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (unsigned i = 0; i < 41; i++) {
		now = add_section(&synth, main, now, ADD, 2, 500, 1000);
		for (unsigned large = 0; large < 2; large++) {
			uint64_t end = now + (large ? 90000 : 4000);

			enter(main, now, SECTION, 3 + large);
			mark(main, now + 10, OP, ADD, 0, 0);
			mark(main, now + 20, MADE, 1, 2 * i + large);
			leave(main, end);
			now = end;
		}
	}
	leave(main, now);
	synth_read(&synth);
	struct op_floor *floors = floors_make(&synth.model);
	const struct op_floor *plain = floor_at(&synth, floors, ADD, 2),
			      *kept = floor_at(&synth, floors, ADD, 4);
	assert_false(plain->known);
	assert_true(kept->known);
	assert_int_equal(kept->places, 2);
	assert_true(fabs(kept->least - 4000) < 0.016 * 4000);
	free(floors);
	synth_close(&synth);
}

/* Some of a row's calls have the parts that they had; Python's above the cap is left out of them too. */
static void test_parts_of_some_calls(void **state)
{
	struct calls calls = { 0 };
	struct op_table table = { 0 };
	struct op_sum sum = { 0 };
	struct op_key key = { .op = 1 };
	double parts[OP_PART_COUNT] = { 0 };

	(void)state;
	op_table_start(&table, &calls);
	uint32_t row = op_table_row(&table, &key);
	for (unsigned i = 0; i < 101; i++) {
		struct op_sample sample = {
			.python = 500,
			.framework = i % 2 ? 1000 : OP_UNKNOWN,
			.gil = 7,
			.known = i != 50,
		};
		bool counts = op_table_add(&table, row, &sample);

		/* Neither the first nor an unknown one. */
		assert_int_equal(counts, i && i != 50);
		if (counts && i < 11)
			op_sum_add(&table, &sum, &sample);
	}
	op_table_finish(&table);
	assert_int_equal(sum.timed, 10);
	op_sum_parts(&table, &table.rows[row], &sum, parts);
	assert_units(parts[OP_python], 10 * 500);
	assert_units(parts[OP_framework], 5 * 1000);
	assert_units(parts[OP_gil], 10 * 7);
	assert_units(parts[OP_fixed], 10 * 500 + 5 * 1000);
	op_table_free(&table);
}

/* Operators inside others: how often, and in which. */
static void test_nested(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	struct op_view view;
	unsigned found = 0;

	(void)state;
	enter(main, 0, FRAME, USER, 0, 0);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t now = 1000 + i * 1000;

		enter(main, now, SECTION, 2);
		mark(main, now + 10, OP, MUL, 0, 0);
		mark(main, now + 20, OP, ADD, 0, 0);
		mark(main, now + 30, OP, ADD, 1, 0);
		mark(main, now + 40, OP, COPY_, 0, 0);
		leave(main, now + 100);
	}
	leave(main, 9000);
	synth_read(&synth);
	op_view_make(&view, &synth.model, GROUP_OP, true);
	for (uint32_t i = 1; i < view.count; i++) {
		if (!view.rows[i].parent)
			continue;
		found++;
		if (!strcmp(view.rows[i].op, "aten::add.Tensor")) {
			assert_string_equal(view.rows[i].parent, "aten::mul.Tensor");
			assert_int_equal(view.rows[i].calls, 8);
		} else {
			assert_string_equal(view.rows[i].op, "aten::copy_");
			assert_string_equal(view.rows[i].parent, "aten::add.Tensor");
			assert_int_equal(view.rows[i].calls, 4);
		}
	}
	assert_int_equal(found, 2);
	op_view_free(&view);
	synth_close(&synth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_section),
		cmocka_unit_test(test_python_cap),
		cmocka_unit_test(test_python_begins),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_outside_unknown),
		cmocka_unit_test(test_record_function),
		cmocka_unit_test(test_no_operator),
		cmocka_unit_test(test_callback),
		cmocka_unit_test(test_backward),
		cmocka_unit_test(test_backward_here),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_no_operator_last),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_floor_of_autograd),
		cmocka_unit_test(test_parts_of_some_calls),
		cmocka_unit_test(test_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
