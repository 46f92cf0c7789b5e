/*
 * fuzz_commands.c: any bytes as a trace, to every command that reads traces, with its options: it ends with
 * one of its statuses, JSON is JSON, text is UTF-8 without control characters, an error is one line.
 *
 * The input's last byte chooses the command line; without libFuzzer all are tried. Commands that take two traces
 * get the same cut short too.
 */
#include <jansson.h>
#include <sys/stat.h>

#include "analyzer/message.h"
#include "tests/fuzz/repair.h"

#define COMMAND(name, help) int cmd_##name(int argc, char **argv);
#include "analyzer/commands.def"
#undef COMMAND

#define TRACE "<" /* the trace */
#define OTHER ">" /* a shorter one */

#define ARGUMENTS_MAX 12

static const struct command_line {
	int (*run)(int argc, char **argv);
	const char *arguments[ARGUMENTS_MAX];
} command_lines[] = {
	{ cmd_report, { "report", TRACE } },
	{ cmd_report, { "report", "--top", "0", "--format", "json", TRACE } },
	{ cmd_report, { "report", "--format", "csv", TRACE } },
	{ cmd_report, { "report", "--format", "json", "--loop", "code0.py:1", TRACE } },
	{ cmd_report, { "report", TRACE, OTHER } },
	{ cmd_report, { "report", "--format", "json", "--rank", "0", OTHER, TRACE } },
	{ cmd_ops, { "ops", "--by", "op,site", "--nested", "--device", TRACE } },
	{ cmd_ops, { "ops", "--by", "line,thread", "--sort", "wait", "--format", "json", TRACE } },
	{ cmd_ops, { "ops", "--by", "module,op", "--nested", "--format", "csv", TRACE } },
	{ cmd_info, { "info", TRACE } },
	{ cmd_info, { "info", "--format", "json", TRACE, OTHER } },
	{ cmd_info, { "info", "--format", "csv", TRACE } },
	{ cmd_syncs, { "syncs", TRACE } },
	{ cmd_syncs, { "syncs", "--format", "json", "--fail-on", "hot,explicit", TRACE } },
	{ cmd_syncs, { "syncs", "--format", "csv", "--max-per-pass", "0", TRACE } },
	{ cmd_syncs,
	  { "syncs", "--fail-on", "hot,periodic,once,unknown,polling,memory", "--baseline", OTHER,
	    TRACE } },
	{ cmd_syncs,
	  { "syncs", "--format", "json", "--fail-on", "by-design,scalar-read", "--allow", OTHER,
	    "--baseline", TRACE, TRACE } },
	{ cmd_dump, { "dump", TRACE } },
	{ cmd_dump, { "dump", "--format", "json", TRACE, OTHER } },
	{ cmd_dump, { "dump", "--events", "--thread", "1", TRACE } },
};

static void check_utf8(const char *text, size_t length)
{
	/* All of it as one string: jansson takes valid UTF-8 alone. */
	json_t *string = json_stringn(text, length);

	check(string != NULL);
	json_decref(string);
}

/* For people and terminals. */
static void check_text(const char *text, size_t length)
{
	check_utf8(text, length);
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)text[i], next = (uint8_t)text[i + 1];

		check(byte >= ' ' || byte == '\n');
		check(byte != 0x7f && !(byte == 0xc2 && next < 0xa0));
	}
}

static void check_json(const char *text, size_t length)
{
	/* Numbers of 64 bits are more than jansson's integers hold. */
	const size_t flags = JSON_DISABLE_EOF_CHECK | JSON_DECODE_INT_AS_REAL;
	json_error_t error;
	size_t at = 0;

	while (at < length) {
		json_t *json = json_loadb(text + at, length - at, flags, &error);

		check(json != NULL);
		json_decref(json);
		at += (size_t)error.position;
		while (at < length && (text[at] == '\n' || text[at] == ' '))
			at++;
	}
}

static void run(const struct command_line *line, const char *trace, const char *other)
{
	char *arguments[ARGUMENTS_MAX + 1] = { 0 }, *printed = NULL, *complaints = NULL;
	FILE *real_out = stdout, *real_err = stderr;
	size_t printed_bytes = 0, complaint_bytes = 0;
	bool json = false, csv = false;
	int count = 0;

	for (; count < ARGUMENTS_MAX && line->arguments[count]; count++) {
		const char *argument = line->arguments[count];

		json |= !strcmp(argument, "json");
		csv |= !strcmp(argument, "csv");
		arguments[count] = strdup(!strcmp(argument, TRACE) ? trace :
					  !strcmp(argument, OTHER) ? other :
								     argument);
	}
	/* argp wants to change their order. */
	char *given[ARGUMENTS_MAX + 1];
	memcpy(given, arguments, sizeof(given));
	stdout = open_memstream(&printed, &printed_bytes);
	stderr = open_memstream(&complaints, &complaint_bytes);
	check(stdout && stderr);
	int status = line->run(count, given);
	fclose(stdout);
	fclose(stderr);
	stdout = real_out;
	stderr = real_err;

	check(status >= STATUS_FINE && status <= STATUS_WRONG);
	check(status != STATUS_WRONG || complaint_bytes > 0);
	check_text(complaints, complaint_bytes);
	check_utf8(printed, printed_bytes);
	if (json)
		check_json(printed, printed_bytes);
	else if (!csv)
		check_text(printed, printed_bytes);
	free(printed);
	free(complaints);
	for (int i = 0; i < count; i++)
		free(arguments[i]);
}

__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static void read_trace(const char *path, size_t size, FILE *out)
{
	const unsigned lines = sizeof(command_lines) / sizeof(*command_lines);
	size_t shorter = size - size / 8;
	uint8_t *data = malloc(size + 1);
	FILE *file = fopen(path, "r");
	char other[64];

	(void)out;
	/* What this machine keeps changes nothing. */
	setenv("XDG_CACHE_HOME", "/nowhere", 1);
	check(data && file && fread(data, 1, size, file) == size);
	fclose(file);
	int fd = file_of(data, shorter, other);
	for (unsigned line = 0; line < lines; line++)
		if (!LLVMFuzzerMutate || line == (size ? data[size - 1] % lines : 0))
			run(&command_lines[line], path, other);
	close(fd);
	free(data);
}
