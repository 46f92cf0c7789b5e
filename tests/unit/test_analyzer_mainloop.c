/* test_analyzer_mainloop.c: which of invented loops is the main one, where times decide. */
#include "tests/unit/analyzer_util.h"

#include "analyzer/mainloop.h"

#define LOOPS_MOST 8

/* A model of nothing but loops. Times add up to no more than the 10000 units of the run. */
struct invented {
	struct model model;
	struct loop_node nodes[LOOP_FIRST + LOOPS_MOST];
	struct def_code codes[2];
	char file[16];
};

static void invent(struct invented *invented)
{
	*invented = (struct invented){ .file = "train.py" };
	invented->codes[1].file = invented->file;
	invented->model.definitions.codes = invented->codes;
	invented->model.loops.nodes = invented->nodes;
	invented->model.loops.count = LOOP_FIRST;
	invented->model.open = 1000;
	invented->model.end = 11000;
}

/* Loops are in the order in which they were first entered. */
static uint32_t add_loop(struct invented *invented, uint32_t parent, uint64_t time, uint64_t passes,
			 uint32_t operators)
{
	uint32_t number = invented->model.loops.count++;

	assert_true(number < LOOP_FIRST + LOOPS_MOST);
	invented->nodes[number] = (struct loop_node){
		.parent = parent,
		.code = 1,
		.runs = 1,
		.passes = passes,
		.passes_known = true,
		.time = time,
		.row_count = operators,
	};
	return number;
}

static void test_tie(void **state)
{
	/* Of the second, while the first has 4600: who is chosen. */
	static const struct {
		uint64_t time;
		unsigned chosen;
	} cases[] = { { 4600, 1 }, { 4599, 1 }, { 4601, 1 }, { 5100, 1 }, { 5120, 2 }, { 4000, 1 } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct invented invented;

		invent(&invented);
		uint32_t first = add_loop(&invented, LOOP_MAIN_THREAD, 4600, 10, 5);
		uint32_t second = add_loop(&invented, LOOP_MAIN_THREAD, cases[i].time, 10, 5);
		assert_int_equal(main_loop_find(&invented.model),
				 cases[i].chosen == 1 ? first : second);
		/* The other one is named. */
		uint32_t others[4];
		assert_int_equal(main_loop_candidates(&invented.model,
						      cases[i].chosen == 1 ? first : second, others,
						      4),
				 1);
		assert_int_equal(others[0], cases[i].chosen == 1 ? second : first);
	}
}

/* Three of equal weight have not half of the time, so none is the main one. */
static void test_none(void **state)
{
	struct invented invented;

	(void)state;
	invent(&invented);
	for (unsigned i = 0; i < 3; i++)
		add_loop(&invented, LOOP_MAIN_THREAD, 3300, 10, 5);
	assert_int_equal(main_loop_find(&invented.model), LOOP_NONE);
}

/* Epochs, with a loop that trains and one of equal weight that evaluates. */
static void test_inner_tie(void **state)
{
	(void)state;
	for (uint64_t second = 4700; second <= 5000; second += 100) {
		struct invented invented;

		invent(&invented);
		uint32_t epochs = add_loop(&invented, LOOP_MAIN_THREAD, 9900, 10, 8);
		uint32_t train = add_loop(&invented, epochs, 4800, 100, 8);
		add_loop(&invented, epochs, second, 100, 6);
		assert_int_equal(main_loop_find(&invented.model), train);
	}
}

/* Two loops one after the other, in both of which another has all the time: those are no tie. */
static void test_tie_of_outer_loops(void **state)
{
	struct invented invented;

	(void)state;
	invent(&invented);
	uint32_t first = add_loop(&invented, LOOP_MAIN_THREAD, 4900, 5, 5);
	uint32_t batches = add_loop(&invented, first, 4800, 50, 5);
	uint32_t second = add_loop(&invented, LOOP_MAIN_THREAD, 5000, 5, 5);
	add_loop(&invented, second, 4990, 50, 5);
	assert_int_equal(main_loop_find(&invented.model), batches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tie),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_inner_tie),
		cmocka_unit_test(test_tie_of_outer_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
