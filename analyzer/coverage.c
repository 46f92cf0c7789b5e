/* coverage.c: see coverage.h. */
#include "analyzer/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/message.h"
#include "analyzer/table.h"

/* Before a process records at all, its interpreter starts: later than that is a delay. */
#define BEGIN_NS 500e6
#define BEGINS   "begins "

static void add(json_t *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(json_t *lines, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	json_t *line = json_vsprintf(format, arguments);
	if (line)
		json_array_append_new(lines, line);
	va_end(arguments);
}

/* " of 5.0 s" where it is known when the process ended. */
static const char *of_all(char *room, size_t size, const struct trace_header *header,
			  double unit_ns, double begin_ns)
{
	char all[TEXT_NUMBER_ROOM];

	*room = '\0';
	if (header->ended != TRACE_END_NONE && header->end.units > header->open.units)
		snprintf(room, size, " of %s",
			 text_ns(all, (double)(header->end.units - header->open.units) * unit_ns +
					      begin_ns));
	return room;
}

json_t *coverage_lines(const struct trace_reader *reader, uint64_t lost)
{
	const struct trace_header *header = trace_get_header(reader);
	const struct trace_summary *summary = trace_get_summary(reader);
	double unit_ns = trace_unit_ns(reader);
	double begin_ns = (double)(int64_t)(header->open.monotonic_ns - header->load.monotonic_ns);
	double read_ns = summary->last_time > header->open.units ?
				 (double)(summary->last_time - header->open.units) * unit_ns :
				 0;
	char begin[TEXT_NUMBER_ROOM], length[TEXT_NUMBER_ROOM], all[TEXT_NUMBER_ROOM + 8];
	const char *reason = trace_stop_text(header);
	json_t *lines = json_array();

	/* A clock that was set, or a header that is forged. */
	if (!(begin_ns >= BEGIN_NS && begin_ns < 1e18))
		begin_ns = 0;
	of_all(all, sizeof(all), header, unit_ns, begin_ns);
	text_ns(length, read_ns);
	text_ns(begin, begin_ns);
	if (reason && begin_ns > 0)
		add(lines, "covers %s%s, from %s after the start on: %s", length, all, begin,
		    reason);
	else if (reason)
		add(lines, "covers the first %s%s: %s", length, all, reason);
	else if (begin_ns > 0)
		add(lines, BEGINS "%s after the start of the process", begin);
	if (summary->missing_blocks)
		add(lines,
		    "is cut off or damaged, read as far as it goes: %s%s, and %lu pieces of it are "
		    "missing",
		    length, all, summary->missing_blocks);
	else if (summary->truncated)
		add(lines, "is cut off or damaged, read as far as it goes: %s%s", length, all);
	if (header->unseen_threads)
		add(lines,
		    "has nothing of %u threads: there were more than 4096 at once, or no file "
		    "descriptor or memory was left for them",
		    header->unseen_threads);
	if (lost > header->unseen_threads)
		add(lines, "lost %lu events", lost - header->unseen_threads);
	/* Now and then one, between processors whose counters are not quite the same, is no matter. */
	if (header->negative_steps > summary->events / 1000)
		add(lines,
		    "has wrong times: the clock was set back, %lu events are later than they seem",
		    header->negative_steps);
	return lines;
}

void coverage_print(const json_t *lines)
{
	const json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		char *text = text_escape(json_string_value(line));

		printf("%sthe trace", output_style(STYLE_WARNING));
		output_wrapped(text, 9, 6);
		printf("%s\n", output_style(STYLE_PLAIN));
		free(text);
	}
}

void coverage_warn(const json_t *lines, const char *path)
{
	const json_t *line;
	char *all;
	size_t size, i;
	FILE *text = open_memstream(&all, &size);

	/* To begin late is no trouble: children wait for their first operator. */
	json_array_foreach(lines, i,
			   line) if (strncmp(json_string_value(line), BEGINS, strlen(BEGINS)) != 0)
		fprintf(text, "%s%s", ftell(text) ? "; " : "", json_string_value(line));
	fclose(text);
	if (size)
		warn("%s: %s", path, all);
	free(all);
}
