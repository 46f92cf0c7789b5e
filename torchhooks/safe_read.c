/*
 * safe_read.c: see safe_read.h.
 */
#include "torchhooks/safe_read.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel copies the set in before it looks at what to do with it, and -1 is nothing it can do. */
bool safe_read_word(uint64_t address, uint64_t *word)
{
	int saved_errno = errno;
	long result;

	if (address < 4096 || address % 8)
		return false;
	result = syscall(SYS_rt_sigprocmask, -1, address, NULL, 8);
	if (result == 0 || errno != EINVAL) {
		errno = saved_errno;
		return false;
	}
	errno = saved_errno;
	memcpy(word, (const void *)address, sizeof(*word));
	return true;
}

bool safe_read_text(uint64_t address, char *text, size_t room)
{
	uint64_t word = 0;
	char bytes[8];

	for (size_t i = 0; i < room; i++) {
		uint64_t at = address + i;

		if ((i == 0 || at % 8 == 0) && !safe_read_word(at & ~(uint64_t)7, &word))
			return false;
		memcpy(bytes, &word, sizeof(bytes));
		text[i] = bytes[at % 8];
		if (!text[i])
			return true;
	}
	return false;
}
