/* What devices did: busy and idle by cause, whose kernels, records that come late. */
#include "tests/unit/analyzer_util.h"

static struct synth synth;

static struct trace_buffer *device_thread(uint32_t devices)
{
	struct trace_buffer *gpu = trace_buffer_acquire_others(synth.file, "gpu", synth.base);

	assert_non_null(gpu);
	for (uint32_t i = 0; i < devices; i++) {
		struct record_GPU_QUEUE queue = { i + 1, i, i + 1, 7 };

		assert_true(trace_define(gpu, TRACE_RECORD_GPU_QUEUE, &queue));
	}
	return gpu;
}

/* A launch whose correlation is told 10 units after its begin. */
static void launch(struct trace_buffer *main, uint64_t from, uint64_t correlation)
{
	enter(main, from, LAUNCH, LAUNCH, 0, 0);
	mark(main, from + 10, CORRELATION, correlation);
	leave(main, from + 100);
}

static void kernel(struct trace_buffer *gpu, uint64_t from, uint64_t to, uint64_t correlation,
		   uint64_t queue)
{
	uint64_t last = gpu->last_time - synth.base, time = from > last ? from : last;

	mark(gpu, time, GPU_KERNEL, 0, time - from, to - from, correlation, queue, 0);
}

static void work(struct trace_buffer *gpu, uint64_t time, enum trace_gpu_work what)
{
	mark(gpu, time, GPU_WORK, what, 0, 0, 0, 0, 0, 0);
}

static void test_causes(void **state)
{
	struct trace_buffer *main = synth_main(&synth), *gpu = device_thread(1);
	struct device_times times;

	(void)state;
	work(gpu, 500, TRACE_GPU_BEGIN);
	enter(main, 600, FRAME, USER, 0, 0);
	enter(main, 900, SECTION, 4);
	mark(main, 910, OP, ADD, 0, 0);
	launch(main, 1000, 1);
	launch(main, 1200, 2);
	leave(main, 1400);
	call(main, 2000, 6500, SYNC, SYNC, 8, 0);
	launch(main, 7000, 3);
	launch(main, 9000, 4);
	launch(main, 9100, 5);
	leave(main, 11500);
	kernel(gpu, 3000, 5000, 1, 1);
	kernel(gpu, 5000, 6000, 2, 1);
	kernel(gpu, 7500, 8000, 3, 1);
	kernel(gpu, 9300, 9700, 5, 1);
	kernel(gpu, 9200, 9600, 4, 1); /* late, and at the same time as the one before */
	work(gpu, 12000, TRACE_GPU_END);
	synth_read(&synth);

	assert_true(device_times_of(&synth.model, 0, LOOP_NONE, &times));
	assert_units(times.wall, 11500);
	assert_units(times.kernel, 2000 + 1000 + 500 + 500);
	assert_units(times.copy, 0);
	/* Until the launches at 1010 and 9010, and from 9700 on. */
	assert_units(times.idle[DEVICE_IDLE_host], 510 + 1010 + 2300);
	assert_units(times.idle[DEVICE_IDLE_synchronise], 1010);
	assert_units(times.idle[DEVICE_IDLE_launch], 1990 + 490 + 190);
	assert_units(times.idle[DEVICE_IDLE_copy], 0);
	assert_units(times.idle[DEVICE_IDLE_unknown], 0);
	assert_units(times.kernels, 5);
	assert_units(times.delay, 1990 + 3790 + 490 + 190 + 190);
	assert_units(times.in_flight, 3990 + 4790 + 990 + 590 + 590);
	assert_int_equal(synth.model.devices.unmatched, 0);
	assert_int_equal(synth.model.devices.late, 0);
	assert_int_equal(synth.model.devices.calls, 5);
	assert_int_equal(synth.model.devices.matched, 5);

	/* The operator has the two that it launched. */
	const struct op_row *row = find_row(&synth, OP_KIND_OPERATOR, ADD, 4);
	assert_non_null(row);
	const struct device_row *done = &synth.model.devices.rows[row - synth.model.op_table.rows];
	assert_int_equal(done->kernels, 2);
	assert_int_equal(done->sum, 3000);

	/* Idle because of the synchronise: from 6000 to 7500. */
	assert_int_equal(synth.model.findings.count, 2);
	assert_int_equal(synth.model.findings.rows[1].gap, 1500);
	synth_close(&synth);
}

/* Each device has a time of its own; of work without a call only when it ran is known. */
static void test_devices(void **state)
{
	struct trace_buffer *main = synth_main(&synth), *gpu = device_thread(2);
	struct device_times times;

	(void)state;
	work(gpu, 1000, TRACE_GPU_BEGIN);
	launch(main, 1500, 1);
	kernel(gpu, 2000, 4000, 1, 1);
	kernel(gpu, 3000, 4000, 99, 2);
	work(gpu, 5000, TRACE_GPU_END);
	synth_read(&synth);
	assert_true(device_times_of(&synth.model, 0, LOOP_NONE, &times));
	assert_units(times.kernel, 2000);
	assert_units(times.idle[DEVICE_IDLE_unknown], 0);
	assert_true(device_times_of(&synth.model, 1, LOOP_NONE, &times));
	assert_units(times.wall, 4000);
	assert_units(times.kernel, 1000);
	assert_units(times.idle[DEVICE_IDLE_unknown], 2000);
	assert_units(times.idle[DEVICE_IDLE_host], 1000);
	assert_false(device_times_of(&synth.model, 2, LOOP_NONE, &times));
	assert_int_equal(synth.model.devices.unmatched, 1);
	synth_close(&synth);
}

/* Many in reverse order, over a time for which the buckets have to be widened. */
static void test_order_and_length(void **state)
{
	enum { COUNT = 400, EACH = 10000000 };
	struct trace_buffer *main = synth_main(&synth), *gpu = device_thread(1);
	struct device_times times;

	(void)state;
	work(gpu, 0, TRACE_GPU_BEGIN);
	for (uint64_t i = 0; i < COUNT; i++)
		launch(main, i * EACH + 1000, i + 1);
	for (uint64_t i = COUNT; i-- > 0;)
		kernel(gpu, i * EACH + 2000, i * EACH + 2000 + EACH / 2, i + 1, 1);
	work(gpu, (uint64_t)COUNT * EACH, TRACE_GPU_END);
	synth_read(&synth);
	assert_true(device_times_of(&synth.model, 0, LOOP_NONE, &times));
	assert_units(times.wall, (uint64_t)COUNT * EACH);
	assert_units(times.kernel, (uint64_t)COUNT * EACH / 2);
	assert_units(times.idle[DEVICE_IDLE_launch], COUNT * 990);
	assert_units(times.idle[DEVICE_IDLE_host], (uint64_t)COUNT * (EACH / 2 - 990));
	assert_units(times.kernels, COUNT);
	assert_int_equal(synth.model.devices.late, 0);
	synth_close(&synth);
}

/* Without the layer nothing is known. */
static void test_unknown(void **state)
{
	struct trace_buffer *main = synth_main(&synth);
	struct device_times times;

	(void)state;
	call(main, 1000, 1100, LAUNCH, LAUNCH, 0, 0);
	synth_read(&synth);
	assert_false(device_known(&synth.model.devices));
	assert_false(device_times_of(&synth.model, 0, LOOP_NONE, &times));
	synth_close(&synth);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_order_and_length),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
