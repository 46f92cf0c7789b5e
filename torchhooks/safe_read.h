/*
 * safe_read.h: reads memory that may not be there.
 *
 * For torchhooks/, on cold paths: a system call for each word. Keeps the process from a fault where a
 * guess about torch's memory is wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The aligned 8 bytes at `address`. */
bool safe_read_word(uint64_t address, uint64_t *word);

/* A text with its zero byte; false also where it is longer than the room. */
bool safe_read_text(uint64_t address, char *text, size_t room);
