/*
 * waits.h: where the host waits for the device, by the calls seen.
 *
 * For walk.c, which tells it of calls; what was found goes into findings.h. That there is a wait comes
 * from the calls alone: a copy and a synchronise on the same stream by the same thread within one
 * operator, a synchronise of its own, a synchronous copy, an asynchronous one from or to memory that is
 * not pinned, an allocation. Of which kind it is, from the operators that are open. Calls that a capture
 * records run nothing, and queries never wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/findings.h"
#include "analyzer/queues.h"
#include "traces/reader.h"

struct model;
struct model_thread;
struct span;

#define WAIT_DEVICES 16u

/* Memory that some call told of, by address. */
enum memory_kind { MEMORY_UNKNOWN, MEMORY_PAGEABLE, MEMORY_PINNED, MEMORY_DEVICE, MEMORY_MANAGED };

struct memory_range {
	uint64_t start, end;
	uint8_t kind;
};

/* What is around a call: copies and synchronises of one operator have the same. */
struct wait_scope {
	uint32_t span;
	uint64_t enter;
};

/* The copy, synchronise or memory call that runs, or a copy that a synchronise may follow. */
struct wait_call {
	bool open, copied; /* copied: an asynchronous copy has returned */
	uint8_t code, category;
	uint8_t kind; /* enum finding_kind, if it is a wait */
	uint32_t function, span, device;
	uint64_t stream, pointer, bytes;
	uint64_t start, end;
	struct queued queued;
	uint64_t idle; /* copies: the gap behind, where that ended before a finding was made */
	bool pageable;
	uint8_t direction;
	uint32_t class;
	uint32_t stack; /* id of a STACK record; 0: none */
	uint64_t duration;
	struct wait_scope scope;
	struct finding_key key;
};

struct wait_thread {
	struct wait_call now, copy;
	uint32_t device;
	bool capturing;
};

struct wait_gap {
	uint64_t since;
	uint32_t finding;       /* 0: none */
	struct wait_call *copy; /* a copy that may come to be one */
};

struct waits {
	struct memory_range *ranges; /* by address, without overlaps */
	uint32_t range_count, range_room;
	struct memory_range *answers; /* to the program's own pointer queries; a ring */
	uint32_t answer_count, answer_room;
	struct wait_gap gaps[WAIT_DEVICES];
	struct queues queues;
	uint32_t thread_count; /* that records told of */
	uint32_t *groups; /* as definitions.threads: the first of that name, of the main one itself */
	uint8_t *designs; /* as definitions.codes: enum design + 1; 0: not looked at yet */
	bool all_memory;  /* no allocation can have been missed */
};

void waits_start(struct model *model);
void waits_free(struct waits *waits);

/* A launch, copy, set, synchronise or memory call has been pushed; another kind of call too. */
void waits_called(struct model *model, struct model_thread *thread, const struct trace_event *event,
		  unsigned category, uint32_t function);

/* It returned `address`. */
void waits_result(struct model *model, struct model_thread *thread, uint64_t value);

/* It was made there: id of a STACK record. */
void waits_stack(struct model_thread *thread, uint64_t stack);

/* It has ended, but is still on the stack. */
void waits_ended(struct model *model, struct model_thread *thread, uint32_t class,
		 uint64_t duration, uint64_t result, uint64_t now);

void waits_device(struct model_thread *thread, uint64_t device);

/* Copies that nothing followed. */
void waits_finish(struct model *model);
