/*
 * gpu_start.c: how the device's layer begins and ends in a process: finds CUPTI, takes it, gives it back.
 *
 * Nothing happens before the program's first CUDA call. Any error of CUPTI's means that there is no such
 * layer, with the reason in the trace, and nothing else.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti/gpu.h"

#define PATH_BYTES   1024
#define REASON_BYTES 200

struct gpu gpu;
bool tare_device_flush_due;

void cupti_python_ready(void);
void cupti_library_loaded(void);
void cupti_fork_child(void);

static void add(char *line, size_t room, const char *text)
{
	size_t used = strlen(line), bytes = strlen(text);

	if (bytes >= room - used)
		bytes = room - used - 1;
	memcpy(line + used, text, bytes);
	line[used + bytes] = '\0';
}

static void add_number(char *line, size_t room, uint64_t number)
{
	char digits[21], *digit = digits + sizeof(digits) - 1;

	*digit = '\0';
	do {
		*--digit = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	add(line, room, digit);
}

static void note_off(const char *why)
{
	tare_note_layer("gpu", 0, why);
	tare_verbose("no GPU activity: ", why);
}

/* ---------------------------------------------------------------- which CUPTI */

/* The one that the process has: two of them would be two clients of one driver. */
static int look_for_library(struct dl_phdr_info *info, size_t size, void *path)
{
	const char *base = strrchr(info->dlpi_name, '/');
	size_t bytes = strlen(info->dlpi_name) + 1;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, "libcupti", 8) != 0 || bytes > PATH_BYTES)
		return 0;
	memcpy(path, info->dlpi_name, bytes);
	return 1;
}

static int look_for_runtime(struct dl_phdr_info *info, size_t size, void *major)
{
	const char *at = strstr(info->dlpi_name, "libcudart.so.");

	(void)size;
	if (at)
		*(char *)major = at[13] && at[14] >= '0' && at[14] <= '9' ? at[14] : '0';
	return at != NULL;
}

/* No CUPTI in the process: the toolkit's that fits its runtime, 11, 12 or 13. */
static void *open_toolkit(char *path)
{
	static const char *const places[] = {
		"3libcupti.so.13",
		"2libcupti.so.12",
		"1libcupti.so.11.8",
		"1libcupti.so.11.7",
		"1libcupti.so.11.6",
		"0libcupti.so",
		"0/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
	};
	char major = '0';

	dl_iterate_phdr(look_for_runtime, &major);
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		void *handle = NULL;

		if (places[i][0] == '0' || major == '0' || places[i][0] == major)
			handle = dlopen(places[i] + 1, RTLD_NOW | RTLD_LOCAL);
		if (handle) {
			add(path, PATH_BYTES, places[i] + 1);
			return handle;
		}
	}
	return NULL;
}

/* Never closed. */
static const char *open_library(char *path)
{
	void *handle;

	path[0] = '\0';
	if (dl_iterate_phdr(look_for_library, path))
		handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	else
		handle = open_toolkit(path);
	if (!handle)
		return "no libcupti in the process, and none of its CUDA version is installed";
#define FUNCTION(field, name, parameters)                                                          \
	gpu.field = (cupti_result(*) parameters)dlsym(handle, #name);                              \
	if (!gpu.field)                                                                            \
		return "this libcupti has no " #name;
	CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
	return NULL;
}

/* ---------------------------------------------------------------- begin */

static void disable_kinds(void)
{
#define KIND(number, NAME, needed) gpu.disable(number);
	CUPTI_KINDS(KIND)
#undef KIND
}

/* What CUPTI takes for the time as long as nobody says otherwise. */
static uint64_t default_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void give_back(void)
{
	disable_kinds();
	gpu.unsubscribe(gpu.subscriber);
	gpu.register_clock(default_clock);
}

/* The subscription comes first: who does not get it must not take another's buffers away. */
static cupti_result take(const char **function_p)
{
	cupti_result result;

#define TRY(name, call)                                                                            \
	do {                                                                                       \
		*function_p = name;                                                                \
		result = (call);                                                                   \
		if (result != CUPTI_OK)                                                            \
			return result;                                                             \
	} while (0)

	TRY("cuptiSubscribe", gpu.subscribe(&gpu.subscriber, gpu_call, NULL));
#undef TRY
#define TRY(name, call)                                                                            \
	do {                                                                                       \
		*function_p = name;                                                                \
		result = (call);                                                                   \
		if (result != CUPTI_OK) {                                                          \
			give_back();                                                               \
			return result;                                                             \
		}                                                                                  \
	} while (0)

	TRY("cuptiActivityRegisterTimestampCallback", gpu.register_clock(gpu_clock));
	TRY("cuptiActivityRegisterCallbacks",
	    gpu.register_buffers(gpu_buffer_requested, gpu_buffer_completed));
	TRY("cuptiEnableCallback", gpu_calls_start());
#define KIND(number, NAME, needed)                                                                 \
	*function_p = "cuptiActivityEnable of " #NAME;                                             \
	result = gpu.enable(number);                                                               \
	if (result != CUPTI_OK && (needed)) {                                                      \
		give_back();                                                                       \
		return result;                                                                     \
	}
	CUPTI_KINDS(KIND)
#undef KIND
#undef TRY
	return CUPTI_OK;
}

static void note_error(const char *function, cupti_result result)
{
	char reason[REASON_BYTES] = "";
	const char *text = NULL;

	add(reason, sizeof(reason), function);
	add(reason, sizeof(reason), ": ");
	if (gpu.error_text(result, &text) == CUPTI_OK && text) {
		add(reason, sizeof(reason), text);
		add(reason, sizeof(reason), " (");
	} else {
		add(reason, sizeof(reason), "error (");
	}
	add_number(reason, sizeof(reason), (uint64_t)(unsigned)result);
	add(reason, sizeof(reason), result == 39 ? "): another tool uses CUPTI" : ")");
	note_off(reason);
}

static void note_on(const char *path)
{
	char detail[REASON_BYTES] = "CUPTI ";
	uint32_t version = 0;

	gpu.version(&version);
	add_number(detail, sizeof(detail), version);
	add(detail, sizeof(detail), ", ");
	add(detail, sizeof(detail), path);
	tare_note_layer("gpu", 1, detail);
}

/* Before the driver's own handler, which was registered earlier. */
static void at_exit(void)
{
	uint8_t state = tare_tls.state;

	tare_tls.state = TARE_INSIDE;
	if (gpu.generation == tare_generation)
		gpu_end(NULL);
	tare_tls.state = state;
}

static bool start(void)
{
	char path[PATH_BYTES];
	const char *why = NULL, *function = NULL;
	cupti_result result;

	if (!(tare_process.layers & TARE_LAYER_CUDA))
		why = "needs the layer cuda";
	else if (gpu.foreign)
		why = "something else in the process uses CUPTI";
	else if (getenv("CUDA_INJECTION64_PATH"))
		why = "another tool is attached (CUDA_INJECTION64_PATH)";
	if (!why)
		why = open_library(path);
	if (!why && !gpu_records_start())
		why = "no room for it in the trace";
	if (why) {
		note_off(why);
		return false;
	}
	result = take(&function);
	if (result != CUPTI_OK) {
		note_error(function, result);
		return false;
	}
	gpu_records_mark(TRACE_GPU_BEGIN);
	note_on(path);
	gpu.generation = tare_generation;
	atexit(at_exit);
	return true;
}

void tare_cuda_called(void)
{
	uint32_t idle = GPU_IDLE;
	int saved_errno = errno;

	if (!(tare_process.layers & TARE_LAYER_GPU) ||
	    !__atomic_compare_exchange_n(&gpu.state, &idle, GPU_BUSY, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&gpu.state, start() ? GPU_ON : GPU_OFF, __ATOMIC_RELEASE);
	errno = saved_errno;
}

/* ---------------------------------------------------------------- end */

void gpu_end(const char *why)
{
	uint32_t on = GPU_ON;
	int saved_errno = errno;

	if (!__atomic_compare_exchange_n(&gpu.state, &on, GPU_BUSY, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	tare_device_flush_due = false;
	gpu.flush(0);
	gpu.flush(CUPTI_FLUSH_FORCED);
	gpu_records_dropped();
	gpu_records_mark(TRACE_GPU_END);
	/* At the process's end CUPTI is left as it is: others' handlers come after ours. */
	if (why) {
		give_back();
		note_off(why);
	}
	__atomic_store_n(&gpu.state, GPU_OFF, __ATOMIC_RELEASE);
	errno = saved_errno;
}

void tare_device_flush(struct tare_thread *thread)
{
	uint32_t depth = thread->buffer->depth;
	int saved_errno = errno;

	if (!__atomic_exchange_n(&tare_device_flush_due, false, __ATOMIC_RELAXED) || !gpu_is_on())
		return;
	trace_enter(thread->buffer, tare_now(), TARE, 1);
	gpu.flush(0);
	gpu_records_dropped();
	trace_leave(thread->buffer, tare_now(), depth, 0);
	errno = saved_errno;
}

/* ---------------------------------------------------------------- as a source of events */

void cupti_python_ready(void)
{
	if (tare_process.layers & TARE_LAYER_GPU && gpu.state == GPU_IDLE)
		tare_note_layer("gpu", 0, "no CUDA function was called");
}

void cupti_library_loaded(void) {}

/* CUDA and CUPTI cannot be used in a child of a process that uses them. */
void cupti_fork_child(void)
{
	tare_device_flush_due = false;
	gpu_records_forget();
	gpu_calls_forget();
	if (gpu.state == GPU_IDLE)
		return;
	gpu.state = GPU_OFF;
	if (tare_process.layers & TARE_LAYER_GPU)
		tare_note_layer("gpu", 0, "not in a forked child");
}
