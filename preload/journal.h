/*
 * journal.h: what a process tells `tare record`, which runs it: a line each in TARE_JOURNAL's file.
 *
 * For preload/. Without that file nothing is done. Lines: "loaded PID EXECUTABLE" at start-up,
 * "python PID VERSION" when an interpreter is ready, "layer PID NAME: WHY" where one cannot be recorded,
 * "opened PID PATH" of the trace, "failed PID ERRNO PATH" where it cannot be made.
 */
#pragma once

void journal_add(const char *what, const char *text);
void journal_error(int error, const char *path);

/* The start-up's line. */
void journal_loaded(void);
