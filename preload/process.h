/*
 * process.h: what the files of preload/ that run the process's life share.
 *
 * For init.c, runtime.c, output.c, notes.c and libc_hooks.c; event sources use runtime.h.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "preload/runtime.h"
#include "traces/knobs.h"

enum process_mode {
	PROCESS_UNSTARTED = 0, /* our constructor has not run yet */
	PROCESS_IDLE,          /* no interpreter so far: only a CUDA call begins to record */
	PROCESS_WAITS,         /* like a forked child: an operator or a CUDA call begins */
	PROCESS_RECORDS,       /* any event does */
	PROCESS_OFF,           /* nothing is ever recorded */
};

struct process {
	uint32_t mode; /* enum process_mode, changed atomically */
	bool awaits_python;
	struct knobs knobs;   /* .output, .journal and .calibration point to the copies below */
	uint32_t wrong_knobs; /* bit n: the knob with that id had a value that cannot be read */
	pid_t pid;
	struct trace_clock_pair load;
	uint64_t start_seconds; /* CLOCK_REALTIME: for the file's name */
	char folder[PATH_MAX];  /* the working directory at start-up */
	char output[PATH_MAX];
	char journal[PATH_MAX];
	char calibration[PATH_MAX];
};

extern struct process process;

static inline enum process_mode process_mode(void)
{
	return (enum process_mode)__atomic_load_n(&process.mode, __ATOMIC_RELAXED);
}

static inline void process_set_mode(enum process_mode mode)
{
	__atomic_store_n(&process.mode, mode, __ATOMIC_RELAXED);
}

/* Says what is wrong with the knobs, once. For a process that is about to record. init.c */
void process_complain(void);

/* Looks for an interpreter that became ready and for libraries that were loaded. init.c */
void process_look(void);

/*
 * Creates the trace, once. False where there is none; *first_p: this call made it, and the thread has
 * to describe the process in it. output.c
 */
bool process_open(bool *first_p);
bool process_is_open(void);
/* What traces/settings.def names and is on. At the first call of CUDA, which looks at it then too. */
void process_note_settings(void);
void process_describe(struct trace_buffer *buffer);
/* In a forked child: the trace is the parent's. output.c */
void process_forget(void);

/* Writes what tare costs into the trace. own_cost.c */
void process_calibration(struct trace_buffer *buffer);
/* At the end of a process that `tare calibrate` runs: measures it. Between events. own_cost.c */
void process_measure(struct tare_thread *thread);

/* Writes the notes that are not in the trace yet. notes.c */
void notes_write(struct trace_buffer *buffer);
/* In a forked child: none is in its trace. notes.c */
void notes_forget(void);

/* runtime.c */
void thread_set_up(void);
/* In a forked child. `inside`: fork was called, by a signal handler, while our own code ran. */
void thread_fork_child(bool inside);
