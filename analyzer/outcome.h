/*
 * outcome.h: what `tare record` says at the end: where the traces are, or why there are none.
 *
 * For cmd_record.c.
 */
#pragma once

#include <stdio.h>

#include "analyzer/watch.h"

/* `journal`: what the processes told, see preload/journal.h. `command`: as it was asked for. */
void outcome_say(FILE *journal, const char *command, const struct watch *watch);
