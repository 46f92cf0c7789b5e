/*
 * run.h: the traces of one run of a program: one file for each process.
 *
 * For cmd_*.c. Of several processes one is looked at in full: the one that launches most, or the chosen
 * one; of the others some figures are kept.
 */
#pragma once

#include "analyzer/coverage.h"
#include "analyzer/model.h"
#include "analyzer/options.h"

struct process {
	const char *path;
	struct trace_header header;
	struct trace_summary summary;
	struct model model;   /* of the process that is looked at; else empty */
	char *program, *rank; /* NULL: not known */
	uint64_t launches, ops, spans, lost;
	uint32_t threads;
	double wall_ns, wait_ns;
	double recorded_ns; /* until recording was stopped, before the process's end; else NAN */
	double lifetime_ns; /* of the process where recording was stopped earlier; NAN: not known */
	json_t *coverage;   /* see coverage.h */
};

struct run {
	struct process *processes;
	uint32_t count, room;
	struct process *chosen;
	char **paths;
	uint32_t path_count, path_room;
};

/* Fills `paths` with the files, and those in the folders. Returns STATUS_FINE, or another after saying why. */
int run_find(struct run *run, char **files, unsigned count, const char *command);

/*
 * Reads the files and folders. Returns STATUS_FINE, or another after saying why. Warns of what is damaged
 * or was lost.
 */
int run_load(struct run *run, const struct trace_options *options, const char *command);
void run_free(struct run *run);

/* Whether `a` is rather the one to look at than `b`. */
bool process_does_more(const struct process *a, const struct process *b);
