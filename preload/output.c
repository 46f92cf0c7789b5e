/*
 * output.c: the process's trace file: its name, its creation, what it says about the process.
 *
 * For runtime.c and init.c. No two processes write to one file, and none is ever overwritten: where
 * the name is taken, "-2", "-3", ... is put before its ending.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/join.h"
#include "preload/journal.h"
#include "preload/process.h"
#include "traces/version.h"

#pragma weak gnu_get_libc_version /* see process_start */

#define ENDING     ".tare"
#define ATTEMPTS   1000u
#define TEXT_BYTES 4096

enum { NOT_OPEN, OPENING, OPEN };
static uint32_t open_state;

/* Names of what a launcher tells about a process of a distributed run, see INFO. */
static const struct {
	const char *key, *variables[4];
} distributed[] = {
	{ "rank", { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID" } },
	{ "local_rank",
	  { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID" } },
	{ "world_size", { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS" } },
};
#define RANK 0

static const char *distributed_value(unsigned i)
{
	for (unsigned j = 0; j < 4; j++) {
		const char *value = getenv(distributed[i].variables[j]);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* A value that comes from outside, as a part of a file's name. */
static void add_name_part(struct text *name, const char *value)
{
	for (; *value; value++)
		text_add_bytes(name, *value == '/' ? "_" : value, 1);
}

static void add_expanded(struct text *name, const char *pattern)
{
	char host[256];

	for (; *pattern; pattern++) {
		if (*pattern != '%') {
			text_add_bytes(name, pattern, 1);
			continue;
		}
		switch (*++pattern) {
		case 'p': text_add_number(name, (uint64_t)getpid()); break;
		case 't': text_add_number(name, process.start_seconds); break;
		case 'h':
			if (gethostname(host, sizeof(host)) != 0)
				host[0] = '\0';
			host[sizeof(host) - 1] = '\0';
			add_name_part(name, host[0] ? host : "localhost");
			break;
		case 'r': {
			const char *rank = distributed_value(RANK);

			add_name_part(name, rank ? rank : "0");
			break;
		}
		case '%': text_add(name, "%"); break;
		default: /* not ours: as it stands */ text_add_bytes(name, "%", 1); pattern--;
		}
	}
}

/* TARE_OUTPUT as an absolute path. */
static void build_name(struct text *name)
{
	const char *pattern = process.knobs.output;
	struct stat status;

	if (*pattern != '/') {
		text_add(name, process.folder);
		text_add(name, "/");
	}
	add_expanded(name, pattern);
	bool folder = name->next[-1] == '/';
	if (!folder && stat(name->start, &status) == 0 && S_ISDIR(status.st_mode)) {
		text_add(name, "/");
		folder = true;
	}
	if (folder)
		add_expanded(name, knob_descs[KNOB_OUTPUT].initial);
}

/* The n-th name to try, from 1. */
static void numbered_name(struct text *name, const struct text *base, unsigned n)
{
	size_t length = text_length(base), ending = sizeof(ENDING) - 1;
	bool ends = length > ending && strcmp(base->next - ending, ENDING) == 0;
	size_t stem = ends ? length - ending : length;

	text_add_bytes(name, base->start, stem);
	if (n > 1) {
		text_add(name, "-");
		text_add_number(name, n);
	}
	text_add(name, base->start + stem);
}

/* The folder that `path` is in, where it is missing; not those around it. */
static bool make_folder(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct text text = text_in(folder, sizeof(folder));

	if (!slash || slash == path)
		return false;
	text_add_bytes(&text, path, (size_t)(slash - path));
	return mkdir(folder, 0777) == 0 || errno == EEXIST;
}

static int create(void)
{
	char base_room[PATH_MAX], room[PATH_MAX];
	struct text base = text_in(base_room, sizeof(base_room)),
		    name = text_in(room, sizeof(room));
	int error = ENAMETOOLONG;
	bool made_folder = false;

	build_name(&base);
	for (unsigned n = 1; n <= ATTEMPTS; n++) {
		name = text_in(room, sizeof(room));
		numbered_name(&name, &base, n);
		if (base.cut || name.cut)
			break;
		error = trace_file_create(&tare_process.file, name.start, process.load);
		if (error == ENOENT && !made_folder && make_folder(name.start)) {
			made_folder = true;
			n--;
		} else if (error != EEXIST) {
			break;
		}
	}
	if (error)
		journal_error(error, name.start);
	else
		journal_add("opened", name.start);
	tare_verbose(error ? "cannot create the trace " : "trace: ", name.start);
	return error;
}

bool process_is_open(void)
{
	return __atomic_load_n(&open_state, __ATOMIC_ACQUIRE) == OPEN;
}

bool process_open(bool *first_p)
{
	uint32_t state = NOT_OPEN;

	*first_p = false;
	if (!__atomic_compare_exchange_n(&open_state, &state, OPENING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_ACQUIRE)) {
		/* Not a hot path, and what the others do meanwhile would be lost. */
		while (state == OPENING) {
			sched_yield();
			state = __atomic_load_n(&open_state, __ATOMIC_ACQUIRE);
		}
		return state == OPEN;
	}
	process_complain();
	tare_process.file.max_bytes = process.knobs.max_bytes;
	if (create() != 0) {
		process_set_mode(PROCESS_OFF);
		__atomic_store_n(&open_state, NOT_OPEN, __ATOMIC_RELEASE);
		return false;
	}
	if (process.knobs.duration_ns) {
		uint64_t now = machine_clock_ns(CLOCK_MONOTONIC);
		uint64_t begin = process.load.monotonic_ns + process.knobs.delay_ns;

		tare_process.file.stop_at_ns =
			(now > begin ? now : begin) + process.knobs.duration_ns;
	}
	process_set_mode(PROCESS_RECORDS);
	__atomic_store_n(&open_state, OPEN, __ATOMIC_RELEASE);
	*first_p = true;
	return true;
}

void process_note_settings(void)
{
	static const struct {
		const char *variable;
		bool zero_is_off;
	} settings[] = {
#define SETTING(NAME, variable, zero_is_off, leaves_out, why) { variable, zero_is_off },
#include "traces/settings.def"
#undef SETTING
	};
	char room[256];
	struct text text = text_in(room, sizeof(room));

	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const char *value = getenv(settings[i].variable);

		if (!value || (settings[i].zero_is_off && (!*value || strcmp(value, "0") == 0)))
			continue;
		if (text_length(&text))
			text_add(&text, " ");
		text_add(&text, settings[i].variable);
	}
	if (text_length(&text))
		tare_note_info("settings", room);
}

void process_forget(void)
{
	open_state = NOT_OPEN;
}

static void describe(struct trace_buffer *buffer, const char *key, const char *value, size_t length)
{
	trace_define(buffer, TRACE_RECORD_INFO,
		     &(struct record_INFO){ .key = { key, (uint32_t)strlen(key) },
					    .value = { value, (uint32_t)length } });
}

/* The command line with spaces between the arguments, cut where it is long. */
static void describe_command(struct trace_buffer *buffer)
{
	char command[TEXT_BYTES];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, command, sizeof(command));

	if (fd >= 0)
		close(fd);
	while (length > 0 && command[length - 1] == '\0')
		length--;
	for (ssize_t i = 0; i < length; i++) {
		if (command[i] == '\0')
			command[i] = ' ';
	}
	if (length > 0)
		describe(buffer, "command", command, (size_t)length);
}

static void describe_layer(struct trace_buffer *buffer, const char *name, unsigned state,
			   const char *detail)
{
	trace_define(buffer, TRACE_RECORD_LAYER,
		     &(struct record_LAYER){ .layer = { name, (uint32_t)strlen(name) },
					     .state = (uint8_t)state,
					     .detail = { detail, (uint32_t)strlen(detail) } });
}

/* Frames say so themselves: lines are known without them. */
static void describe_layers(struct trace_buffer *buffer)
{
	static const struct {
		uint32_t layers;
		const char *name;
	} parts[] = {
		{ TARE_LAYER_OPS | TARE_LAYER_OPS_RECORD_FUNCTION, "ops" },
		{ TARE_LAYER_CUDA, "cuda" },
	};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!(tare_process.layers & parts[i].layers))
			describe_layer(buffer, parts[i].name, 0, "not asked for");
	if (tare_process.layers & TARE_LAYER_CUDA)
		describe_layer(buffer, "cuda.libraries", 1,
			       "calls of cuBLAS, cuDNN, NCCL, ...; what they launch is not seen");
}

void process_describe(struct trace_buffer *buffer)
{
	char value[TEXT_BYTES];
	ssize_t length;

	describe(buffer, "tare", TARE_VERSION, sizeof(TARE_VERSION) - 1);
	describe_layers(buffer);
	if (process.knobs.command_line)
		describe_command(buffer);
	describe(buffer, "cwd", process.folder, strlen(process.folder));
	length = readlink("/proc/self/exe", value, sizeof(value));
	if (length > 0)
		describe(buffer, "exe", value, (size_t)length);
	if (gethostname(value, sizeof(value)) == 0)
		describe(buffer, "host", value, strnlen(value, sizeof(value)));
	describe(buffer, "glibc", gnu_get_libc_version(), strlen(gnu_get_libc_version()));
	process_calibration(buffer);
	for (unsigned i = 0; i < sizeof(distributed) / sizeof(*distributed); i++) {
		const char *text = distributed_value(i);

		if (text)
			describe(buffer, distributed[i].key, text, strlen(text));
	}
}
