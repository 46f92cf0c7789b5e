/* run.c: see run.h. */
#include "analyzer/run.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/message.h"
#include "analyzer/process_ledger.h"

static void add_path(struct run *run, char *path)
{
	memory_grow(run->paths, run->path_count, run->path_room);
	run->paths[run->path_count++] = path;
}

static int is_trace_name(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".tare");
}

static int add_folder(struct run *run, const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_trace_name, alphasort);
	size_t length = strlen(folder);

	if (count < 0)
		return complain("%s: %s", folder, strerror(errno));
	while (length > 1 && folder[length - 1] == '/')
		length--;
	for (int i = 0; i < count; i++) {
		char *path;

		if (asprintf(&path, "%.*s/%s", (int)length, folder, entries[i]->d_name) >= 0)
			add_path(run, path);
		free(entries[i]);
	}
	free(entries);
	if (!count)
		return complain(
			"%s: no traces (*.tare) in that folder; 'tare record -o %s -- COMMAND' makes some",
			folder, folder);
	return STATUS_FINE;
}

/* What the command line runs: "train.py", "-m package", "-c"; the interpreter and its options go. */
static char *program_of(const char *command)
{
	char *copy = strdup(command), *word, *rest = copy, *program = NULL;
	bool first = true;

	while (!program && (word = strsep(&rest, " "))) {
		if (!*word || first) {
			first &= !*word;
			continue;
		}
		if (!strcmp(word, "-m") && rest) {
			char *module = strsep(&rest, " ");

			if (asprintf(&program, "-m %s", module) < 0)
				program = NULL;
		} else if (!strcmp(word, "-c")) {
			/* Its own command lines: what was spawned is in the parent's. */
			program = rest && !strncmp(rest, "from multiprocessing.", 21) ?
					  strndup(rest + 5, strcspn(rest + 5, " ")) :
					  strdup(word);
		} else if (!strcmp(word, "-X") || !strcmp(word, "-W")) {
			strsep(&rest, " ");
		} else if (*word != '-') {
			const char *slash = strrchr(word, '/');

			program = strdup(slash ? slash + 1 : word);
		}
	}
	if (!program) {
		const char *end = strchrnul(command, ' '), *start = end;

		while (start > command && start[-1] != '/')
			start--;
		program = strndup(start, (size_t)(end - start));
	}
	free(copy);
	return program;
}

/* Where the command line was left out. Free it; NULL: not known. */
static char *program_file(const char *executable)
{
	const char *slash = executable ? strrchr(executable, '/') : NULL;

	return executable ? strdup(slash ? slash + 1 : executable) : NULL;
}

static char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void describe(struct process *process)
{
	struct model *model = &process->model;
	const struct trace_header *header = &process->header;
	const char *command = definitions_info(&model->definitions, "command");
	struct ledger ledger = process_ledger_of(model);

	process->program = command ? program_of(command) :
				     program_file(definitions_info(&model->definitions, "exe"));
	process->rank = copy_of(definitions_info(&model->definitions, "rank"));
	process->spans = model->span_count;
	process->lost = header->lost_events > model->definitions.lost_events ?
				header->lost_events :
				model->definitions.lost_events;
	for (uint32_t i = 0; i < model->definitions.thread_count; i++)
		if (model->threads[i]) {
			process->launches += model->threads[i]->launches;
			process->ops += model->threads[i]->ops;
			process->threads++;
		}
	/* Not the sum of the ledger's lines: that they add up to it is what a ledger promises. */
	process->wall_ns = model_ns(model, (double)(model->end - model->open));
	process->wait_ns = model_ns(model, ledger.lines[LINE_wait]);
	process->recorded_ns = process->lifetime_ns = NAN;
	if (header->stopped != TRACE_STOP_NONE) {
		process->recorded_ns = process->wall_ns;
		if (header->ended != TRACE_END_NONE && header->end.units > header->open.units)
			process->lifetime_ns =
				model_ns(model, (double)(header->end.units - header->open.units));
	}
}

static bool is_wanted(const struct process *process, const struct trace_options *options)
{
	long rank = process->rank ? strtol(process->rank, NULL, 10) : -1;

	return (options->pid < 0 || process->header.pid == options->pid) &&
	       (options->rank < 0 || rank == options->rank);
}

bool process_does_more(const struct process *a, const struct process *b)
{
	return a->launches != b->launches ? a->launches > b->launches :
	       a->ops != b->ops           ? a->ops > b->ops :
					    a->spans > b->spans;
}

/* Reads one trace; keeps its model where it is the one to look at. */
static int load(struct run *run, const char *path, const struct trace_options *options)
{
	char message[512];
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	struct process *process = &run->processes[run->count];

	if (!reader)
		return complain("%s", message);
	run->count++;
	process->path = path;
	process->header = *trace_get_header(reader);
	model_load(&process->model, reader);
	process->summary = *trace_get_summary(reader);
	describe(process);
	process->coverage = coverage_lines(reader, process->lost);
	trace_close(reader);
	coverage_warn(process->coverage, path);
	if (!is_wanted(process, options) ||
	    (run->chosen && !process_does_more(process, run->chosen))) {
		model_free(&process->model);
		return STATUS_FINE;
	}
	if (run->chosen)
		model_free(&run->chosen->model);
	run->chosen = process;
	return STATUS_FINE;
}

int run_find(struct run *run, char **files, unsigned count, const char *command)
{
	int status = STATUS_FINE;

	if (!count)
		return complain("which trace? '%s FILE...', or a folder of traces", command);
	for (unsigned i = 0; i < count; i++) {
		struct stat file;

		if (stat(files[i], &file) == 0 && S_ISDIR(file.st_mode))
			status |= add_folder(run, files[i]);
		else
			add_path(run, strdup(files[i]));
	}
	return status;
}

int run_load(struct run *run, const struct trace_options *options, const char *command)
{
	int status = run_find(run, options->files, options->file_count, command);

	if (!options->file_count)
		return status;
	/* Pointers into it are kept: made once. */
	run->processes = memory_zero(run->path_count, sizeof(*run->processes));
	for (uint32_t i = 0; i < run->path_count; i++)
		status |= load(run, run->paths[i], options);
	/* One bad file among several good ones has been told; alone it is an error. */
	if (run->chosen)
		return run->count > 1 || status == STATUS_FINE ? STATUS_FINE : status;
	if (status != STATUS_FINE)
		return status;
	return options->rank >= 0 ? complain("no trace of rank %ld among them", options->rank) :
				    complain("no trace of process %ld among them", options->pid);
}

void run_free(struct run *run)
{
	for (uint32_t i = 0; i < run->count; i++) {
		free(run->processes[i].program);
		free(run->processes[i].rank);
		json_decref(run->processes[i].coverage);
	}
	if (run->chosen)
		model_free(&run->chosen->model);
	for (uint32_t i = 0; i < run->path_count; i++)
		free(run->paths[i]);
	free(run->paths);
	free(run->processes);
	*run = (struct run){ 0 };
}
