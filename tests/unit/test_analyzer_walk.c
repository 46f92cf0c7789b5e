/*
 * test_analyzer_walk.c: whatever the events say, each moment is in exactly one line, and nothing breaks:
 * random streams of several threads with gaps, wrong depths, unknown ids and codes; deep and endless trees.
 */
#include "tests/unit/analyzer_util.h"

#include "analyzer/walk.h"

static uint64_t seed;

static uint64_t random_below(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % limit;
}

#define THREADS 4u
#define BATCH   64u

struct stream {
	uint32_t depth; /* spans open, as the writer would count */
	uint64_t block;
	uint64_t first, last;
	bool begun;
};

static uint64_t random_id(void)
{
	return random_below(20) ? random_below(8) :
	       random_below(2)  ? UINT64_MAX :
				  random_below(UINT32_MAX);
}

static struct trace_event random_event(struct stream *stream, uint64_t time, bool wild)
{
	static const unsigned enters[] = { TRACE_FRAME,  TRACE_FRAME, TRACE_SECTION, TRACE_CALLBACK,
					   TRACE_GIL,    TRACE_NODE,  TRACE_TARE,    TRACE_OP_SPAN,
					   TRACE_LAUNCH, TRACE_COPY,  TRACE_SYNC,    TRACE_MEMORY,
					   TRACE_CALL,   TRACE_SET };
	static const unsigned marks[] = { TRACE_OP,         TRACE_OP,     TRACE_OP,
					  TRACE_OP_OVER,    TRACE_AT,     TRACE_MADE,
					  TRACE_RESULT,     TRACE_DEVICE, TRACE_RANGE_END,
					  TRACE_RANGE_BEGIN };
	struct trace_event event = { .time = time };
	unsigned choice = (unsigned)random_below(100);

	for (unsigned i = 0; i < TRACE_FIELDS_MAX; i++)
		event.fields[i] = random_id();
	if (choice < 35) {
		event.code = enters[random_below(sizeof(enters) / sizeof(*enters))];
		stream->depth++;
	} else if (choice < 70 && (stream->depth || wild)) {
		event.code = TRACE_LEAVE;
		stream->depth -= stream->depth > 0;
	} else if (choice < 72) {
		event.code = TRACE_LEAVE_TO;
		event.fields[0] = wild ? random_id() : random_below(stream->depth + 1);
		stream->depth = event.fields[0] < stream->depth ? (uint32_t)event.fields[0] :
								  stream->depth;
	} else if (choice < 73 && wild) {
		event.code = 23 + (uint32_t)random_below(9); /* of a later version */
	} else {
		event.code = marks[random_below(sizeof(marks) / sizeof(*marks))];
	}
	event.field_count = TRACE_FIELDS_MAX;
	return event;
}

static void check_sums(struct model *model, const struct stream *streams)
{
	struct ledger process = process_ledger_of(model);
	double wall = (double)(model->end - model->open), sum = 0;

	for (unsigned line = 0; line < LINE_COUNT; line++) {
		assert_true(process.lines[line] >= 0);
		sum += process.lines[line];
	}
	/* Doubles carry 53 bits. */
	assert_true(sum > wall * (1 - 1e-9) && sum < wall * (1 + 1e-9));
	for (uint32_t i = 0; i < THREADS; i++) {
		uint32_t index = id_map_get(&model->definitions.thread_ids, i + 1);
		const struct model_thread *thread = index ? model->threads[index] : NULL;
		uint64_t units = 0;

		if (!thread)
			continue;
		for (uint32_t slot = 0; slot < thread->account.slots; slot++)
			units += thread->account.units[slot];
		struct ledger ledger = ledger_of(&thread->account, &model->calls);
		for (unsigned line = 0; line < LINE_COUNT; line++)
			assert_true(ledger.lines[line] >= 0);
		assert_int_equal(units, thread->last - streams[i].first);
		assert_true(thread->last >= streams[i].last || thread->top == 0);
	}
}

static void run_random(struct trace_reader *reader, unsigned batches, bool wild)
{
	struct stream streams[THREADS] = { 0 };
	struct trace_event events[BATCH];
	struct model model = { 0 };

	model_start(&model, reader);
	uint64_t now = model.open + random_below(1000);
	for (unsigned b = 0; b < batches; b++) {
		uint32_t t = (uint32_t)random_below(THREADS);
		struct stream *stream = &streams[t];
		struct trace_batch batch = {
			.thread = t + 1,
			.depth = stream->depth,
			.block_start = !stream->begun || !random_below(8),
			.count = 1 + (uint32_t)random_below(BATCH),
			.events = events,
		};

		if (batch.block_start && stream->begun && !random_below(4)) {
			batch.gap = true;
			batch.depth = stream->depth = (uint32_t)random_below(wild ? 1000000 : 20);
		} else if (batch.block_start && wild && !random_below(20)) {
			batch.depth = stream->depth = (uint32_t)random_below(UINT32_MAX);
		}
		for (uint32_t i = 0; i < batch.count; i++) {
			now += random_below(3) ? random_below(2000) : 0;
			if (!stream->begun)
				stream->first = now;
			stream->begun = true;
			stream->last = now;
			events[i] = random_event(stream, now, wild);
		}
		walk_batch(&model, reader, &batch);
	}
	model_finish(&model, reader);
	check_sums(&model, streams);
	model_free(&model);
}

static void test_random(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	char message[256];

	(void)state;
	synth_torch_thread(main, 1);
	for (unsigned t = 1; t < THREADS; t++)
		synth_torch_thread(synth_thread(&synth, 0), 1 + t);
	synth.reader = trace_open(synth.path, NULL, message, sizeof(message));
	assert_non_null(synth.reader);
	for (unsigned round = 0; round < 400; round++) {
		seed = round * 2654435761u + 88172645463325252u;
		run_random(synth.reader, 1 + round % 200, round % 2);
	}
	synth_close(&synth);
}

/* The tree has a limit: recursion is folded, what is beyond is counted all the same. */
static void test_recursion(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	char message[256];
	struct model model = { 0 };
	struct trace_event *events = calloc(400000, sizeof(*events));
	uint64_t now = synth.base;

	(void)state;
	assert_non_null(main);
	synth.reader = trace_open(synth.path, NULL, message, sizeof(message));
	model_start(&model, synth.reader);
	/* 200 000 calls deep, at two sites: as many paths as there are numbers. */
	seed = 12345;
	for (unsigned i = 0; i < 200000; i++)
		events[i] = (struct trace_event){ .time = now += 10,
						  .code = TRACE_FRAME,
						  .field_count = 3,
						  .fields = { USER, 1 + random_below(2) } };
	for (unsigned i = 200000; i < 400000; i++)
		events[i] = (struct trace_event){ .time = now += 10,
						  .code = TRACE_LEAVE,
						  .field_count = 1 };
	walk_batch(&model, synth.reader,
		   &(struct trace_batch){
			   .thread = 1, .block_start = true, .count = 400000, .events = events });
	model_finish(&model, synth.reader);
	assert_true(model.tree.count < 5000);
	assert_int_equal(model.span_count, 200000);
	uint64_t self = 0, count = 0;
	for (uint32_t i = 0; i < model.tree.count; i++) {
		self += model.tree.nodes[i].self;
		count += model.tree.nodes[i].count;
	}
	assert_int_equal(count, 200000);
	assert_int_equal(self, now - synth.base - 10);
	model_free(&model);
	free(events);
	synth_close(&synth);
}

/* Ever new paths: the tree stops growing, the operators' rows stay right. */
static void test_endless(void **state)
{
	struct synth synth;
	struct trace_buffer *main = synth_main(&synth);
	char message[256];
	struct model model = { 0 };
	struct trace_event events[6];
	uint64_t now = synth.base;

	(void)state;
	assert_non_null(main);
	synth.reader = trace_open(synth.path, NULL, message, sizeof(message));
	model_start(&model, synth.reader);
	struct trace_batch batch = {
		.thread = 1, .block_start = true, .count = 6, .events = events
	};
	for (uint32_t i = 0; i < 700000; i++) {
		const struct trace_event sequence[6] = {
			{ now + 10, TRACE_FRAME, 3, { USER, i + 1 } },
			{ now + 20, TRACE_SECTION, 1, { 5 } },
			{ now + 20, TRACE_OP, 3, { ADD, 0, 0 } },
			{ now + 25, TRACE_LEAVE, 1, { 0 } },
			{ now + 30, TRACE_LEAVE, 1, { 0 } },
			{ now + 30, TRACE_AT, 1, { USER } },
		};

		memcpy(events, sequence, sizeof(events));
		walk_batch(&model, synth.reader, &batch);
		batch.block_start = false;
		now += 30;
	}
	model_finish(&model, synth.reader);
	assert_true(model.tree.count <= TREE_NODES_MAX);
	assert_int_equal(model.op_table.count, 2);
	assert_int_equal(model.op_table.rows[1].calls, 700000);
	assert_int_equal(model.op_table.rows[1].sum.framework, 699999 * 5);
	model_free(&model);
	synth_close(&synth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_endless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
