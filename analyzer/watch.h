/*
 * watch.h: looks for Pythons below a process that LD_PRELOAD does not reach, while it runs.
 *
 * For launch.c and outcome.c: what took LD_PRELOAD out of the environment is not in any trace. From outside,
 * by /proc alone; it ends with the first trace that the journal tells of.
 */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct watch {
	const char *library; /* path of libtare.so */
	int journal;         /* descriptor; -1: none */
	/* The first Python that it was not preloaded into; pid 0: none was seen. */
	struct watch_found {
		pid_t pid, parent;
		char path[PATH_MAX]; /* of its file */
		bool foreign;        /* of another user: nothing else is known */
	} found;
	/* Its own. */
	pid_t root, empty;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool runs, ends;
};

void watch_start(struct watch *watch, pid_t root);
/* After that `found` may be read. */
void watch_stop(struct watch *watch);
