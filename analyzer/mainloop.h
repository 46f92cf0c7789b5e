/*
 * mainloop.h: which loop a program's figures are per pass of, and what can be said of it.
 *
 * For cmd_*.c and findings.c, once a trace was read. The main loop: the outermost one of the main thread
 * with at least 3 passes and half of the time after the start-up; then inwards, as long as one loop in it
 * has most of its time and of its operators: from epochs to batches, from requests to tokens, but not from
 * a batch to its layers.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "analyzer/ledger.h"

struct model;

/* The node of the main loop; LOOP_NONE: there is none. */
uint32_t main_loop_find(const struct model *model);

/* The loop that "FILE:LINE" names, the one with most time; FILE may be the end of a path. */
uint32_t main_loop_named(const struct model *model, const char *place);

/* Others that it might have been, those with most time first. Returns how many. */
uint32_t main_loop_candidates(const struct model *model, uint32_t chosen, uint32_t *nodes,
			      uint32_t room);

/* Time between start-up and exit, without imports and what tare itself took, in clock units. */
double main_loop_scope(const struct model *model);

/* "train.py:31"; free it. */
char *loop_text(const struct model *model, uint32_t code, uint32_t loop);
uint32_t loop_line(const struct model *model, uint32_t code, uint32_t loop);

/* Of all its passes, without what tare itself took where that is known. */
double main_loop_ns(struct model *model, uint32_t node);

/* How many passes the model's main loop had; 0: it has none, or they cannot be told apart. */
uint64_t main_loop_passes(const struct model *model);

/* What the process did in all passes. False where it was not summed up. */
bool main_loop_ledger(struct model *model, uint32_t node, struct ledger *ledger);

/* One line about it, and one for others that it might have been. */
void main_loop_print(struct model *model, uint32_t node);

/* An element of the JSON's "loops". */
json_t *main_loop_json(struct model *model, uint32_t node);
