/*
 * own_cost.c: what tare costs, as CALIBRATION records: from the file that `tare calibrate` keeps, else what
 * can be measured here in no time. And measuring what C alone can, for `tare calibrate` itself.
 *
 * For output.c and init.c.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/hook.h"
#include "preload/join.h"
#include "preload/process.h"
#include "traces/calibration_file.h"

#define HEAD_BYTES 4096u /* of our own image: its notes are in the first page */

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

static struct trace_str str(const char *text)
{
	return (struct trace_str){ text, (uint32_t)strlen(text) };
}

static void describe(struct trace_buffer *buffer, const char *key, const char *value)
{
	trace_define(buffer, TRACE_RECORD_INFO,
		     &(struct record_INFO){ .key = str(key), .value = str(value) });
}

/* ------------------------------------------------------------------------------- the kept file */

/* Static: this is done by one thread of a process, whose stack may be small. */
static char key[CALIBRATION_KEY_MAX], file[CALIBRATION_FILE_MAX];
static struct record_CALIBRATION records[CALIBRATION_WEIGHTS_MAX];

static unsigned read_file(const char *path, const char *its_key)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t bytes = fd < 0 ? -1 : read(fd, file, sizeof(file));

	if (fd >= 0)
		close(fd);
	return bytes > 0 ? calibration_parse(file, (size_t)bytes, its_key, records) : 0;
}

static unsigned read_kept(const char *processor, const char *build)
{
	char exe[PATH_MAX], path[PATH_MAX], name[CALIBRATION_NAME_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	struct text text = text_in(path, sizeof(path));

	if (length <= 0)
		return 0;
	exe[length] = '\0';
	if (!calibration_key(key, exe, processor, build) ||
	    !calibration_folder(path, sizeof(path), getenv("XDG_CACHE_HOME"), getenv("HOME")))
		return 0;
	calibration_name(name, key);
	text.next += strlen(path);
	text_add(&text, "/");
	text_add(&text, name);
	return text.cut ? 0 : read_file(path, key);
}

/* ------------------------------------------------------------------------------- at start */

#define START_SPANS  128u
#define START_ROUNDS 8u

static double unit_ps(void)
{
	const struct trace_header *header = tare_process.file.header;
	double ns = (double)(header->open.monotonic_ns - header->load.monotonic_ns);
	double units = (double)(header->open.units - header->load.units);

	return ns > 0 && units > 0 ? 1000 * ns / units : 1000;
}

/* A look at the clock and an event, into memory that nobody reads: some 30 us in all. */
static void measure_start(struct trace_buffer *buffer)
{
	static struct trace_buffer scratch;
	static uint8_t area[TRACE_TIMES_ROOM + 8 * START_SPANS];
	uint64_t least = UINT64_MAX;

	for (unsigned round = 0; round < START_ROUNDS; round++) {
		uint64_t start = tare_now();

		scratch = (struct trace_buffer){
			.times = area,
			.time_next = area,
			.id_next = area + TRACE_TIMES_ROOM,
			.file = &tare_process.file,
			.live = &scratch.sink,
			.last_time = start,
		};
		for (unsigned i = 0; i < START_SPANS; i++) {
			trace_enter(&scratch, tare_now(), CALL, 1, 1);
			trace_leave(&scratch, tare_now(), 0, 0);
		}
		uint64_t took = tare_now() - start;
		least = took < least ? took : least;
	}
	uint32_t half = (uint32_t)((double)least * unit_ps() / START_SPANS / 2);
	trace_define(buffer, TRACE_RECORD_CALIBRATION,
		     &(struct record_CALIBRATION){ .kind = str("event"),
						   .inside_ps = half,
						   .outside_ps = half,
						   .error_ps = half,
						   .source = str("start") });
}

void process_calibration(struct trace_buffer *buffer)
{
	const char *knob = process.calibration;
	char processor[64], build[41];
	unsigned count;

	calibration_processor(processor);
	calibration_build(&__ehdr_start, HEAD_BYTES, build);
	describe(buffer, "processor", processor);
	describe(buffer, "build", build);
	if (strcmp(knob, CALIBRATION_NONE) == 0 || strcmp(knob, CALIBRATION_MEASURE) == 0)
		return;
	count = *knob ? read_file(knob, NULL) : read_kept(processor, build);
	for (unsigned i = 0; i < count; i++)
		trace_define(buffer, TRACE_RECORD_CALIBRATION, &records[i]);
	if (!count)
		measure_start(buffer);
}

/* ------------------------------------------------------------------------------- for tare calibrate */

#define SPANS  500u
#define ROUNDS 60u

static struct hook_library no_library = { .soname = "", .told = true };
static struct hook hook = { .library = &no_library, .name = "calibrate" };

/* One span of each kind, as the wrappers make it. Returns the time from its enter to its leave. */
#define HOOKED(EVENT, ...)                                                                         \
	static uint64_t one_##EVENT(struct tare_thread *thread)                                    \
	{                                                                                          \
		uint64_t span =                                                                    \
			hook_enter_##EVENT(&hook, __builtin_frame_address(0), ##__VA_ARGS__);      \
		uint64_t enter = thread->buffer->last_time;                                        \
                                                                                                   \
		hook_leave(span, 0, HOOK_NO_VALUE);                                                \
		return thread->buffer->last_time - enter;                                          \
	}

HOOKED(CALL)
HOOKED(LAUNCH, NULL)
HOOKED(COPY, NULL, 1, 4096, &hook, &hook)
HOOKED(SET, NULL, 4096, &hook)
HOOKED(MEMORY, NULL, 4096)
HOOKED(SYNC, NULL)

static uint64_t one_mark(struct tare_thread *thread)
{
	trace_put(thread->buffer, tare_now(), DEVICE, 0);
	return 0;
}

static uint64_t one_gil(struct tare_thread *thread)
{
	uint32_t depth = thread->buffer->depth;
	uint64_t now = tare_now();

	trace_enter(thread->buffer, now, GIL, 0);
	trace_leave(thread->buffer, now, depth, 0);
	return 0;
}

struct kind {
	const char *name;
	tare_calibrate_one *one;
};

static struct kind kinds[16] = {
	{ "call", one_CALL }, { "launch", one_LAUNCH }, { "copy", one_COPY },
	{ "set", one_SET },   { "memory", one_MEMORY }, { "sync", one_SYNC },
	{ "mark", one_mark }, { "gil", one_gil },
};

void tare_calibrates(const char *name, tare_calibrate_one *one)
{
	unsigned i = 0;

	while (i < sizeof(kinds) / sizeof(*kinds) - 1 && kinds[i].name)
		i++;
	kinds[i] = (struct kind){ name, one };
}

static uint64_t median(uint64_t *values)
{
	for (unsigned i = 1; i < ROUNDS; i++)
		for (unsigned j = i; j && values[j] < values[j - 1]; j--) {
			uint64_t higher = values[j - 1];

			values[j - 1] = values[j];
			values[j] = higher;
		}
	return values[ROUNDS / 2];
}

static void measure_kind(struct tare_thread *thread, const struct kind *kind, double unit)
{
	static uint64_t all[ROUNDS], insides[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t inside = 0, start = tare_now();

		for (unsigned i = 0; i < SPANS; i++)
			inside += kind->one(thread);
		all[round] = tare_now() - start;
		insides[round] = inside;
	}
	double scale = unit / SPANS, spread;
	double sum = (double)median(all) * scale, inside = (double)median(insides) * scale;
	spread = (double)(all[ROUNDS * 3 / 4] - all[ROUNDS / 4]) * scale;
	inside = inside < sum ? inside : sum;
	trace_define(thread->buffer, TRACE_RECORD_CALIBRATION,
		     &(struct record_CALIBRATION){ .kind = str(kind->name),
						   .inside_ps = (uint32_t)inside,
						   .outside_ps = (uint32_t)(sum - inside),
						   .error_ps = (uint32_t)spread,
						   .source = str(CALIBRATION_MEASURE) });
}

/*
 * How much more one takes where the program has used the caches for itself since the last: told by an interval,
 * which tare calibrate does not look at.
 */
#define APART_SPANS 8u
#define APART_BYTES (256u << 10)

static uint64_t time_some(struct tare_thread *thread, const struct kind *kind, bool apart)
{
	static uint8_t others[APART_BYTES];
	static uint64_t all[ROUNDS];

	for (unsigned round = 0; round < ROUNDS; round++) {
		all[round] = 0;
		for (unsigned i = 0; i < APART_SPANS; i++) {
			for (unsigned at = 0; apart && at < APART_BYTES; at += 64)
				((volatile uint8_t *)others)[at]++;
			uint64_t start = tare_now();
			kind->one(thread);
			all[round] += tare_now() - start;
		}
	}
	return median(all);
}

static void measure_apart(struct tare_thread *thread, const struct kind *kind, double unit)
{
	uint64_t close = time_some(thread, kind, false), apart = time_some(thread, kind, true);
	uint64_t more = apart > close ? apart - close : 0;

	trace_define(thread->buffer, TRACE_RECORD_CALIBRATION,
		     &(struct record_CALIBRATION){
			     .kind = str(kind->name),
			     .interval_ns = 1000,
			     .outside_ps = (uint32_t)((double)more * unit / APART_SPANS),
			     .source = str(CALIBRATION_MEASURE) });
}

/* At the process's end: the interpreter must not be asked for sites any more. */
void process_measure(struct tare_thread *thread)
{
	if (strcmp(process.calibration, CALIBRATION_MEASURE) != 0)
		return;
	tare_python_site = NULL;
	hook.generation = tare_generation;
	hook.function = 1;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds) && kinds[i].name; i++)
		measure_kind(thread, &kinds[i], unit_ps());
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds) && kinds[i].name; i++)
		measure_apart(thread, &kinds[i], unit_ps());
}
