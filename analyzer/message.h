/*
 * message.h: what the command says on stderr, one line each, and its exit statuses.
 *
 * For all of analyzer/. Control characters in what is said are escaped, so that a name from a trace
 * cannot drive the terminal.
 */
#pragma once

enum {
	STATUS_FINE = 0,
	STATUS_GATE = 1,  /* a gate failed */
	STATUS_WRONG = 2, /* wrong usage, or a trace that cannot be read */
};

/* "tare: ..." Returns STATUS_WRONG, so that `return complain(...)` ends a command. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "tare: warning: ..." */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
