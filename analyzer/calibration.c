/* calibration.c: see calibration.h. */
#include "analyzer/calibration.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/definitions.h"
#include "analyzer/launch.h"
#include "analyzer/memory.h"

#define HEAD_BYTES 65536u /* of an ELF file: its notes are there */

/* The first bytes of a file; free them. NULL: it cannot be read. */
static char *read_head(const char *path, size_t room, size_t *bytes_p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *data = fd < 0 ? NULL : memory_zero(room + 1, 1);
	ssize_t bytes;

	*bytes_p = 0;
	while (data && *bytes_p < room && (bytes = read(fd, data + *bytes_p, room - *bytes_p)) > 0)
		*bytes_p += (size_t)bytes;
	if (fd >= 0)
		close(fd);
	return data;
}

bool calibration_read(struct calibration *calibration, const char *path, const char *key)
{
	size_t bytes;

	*calibration =
		(struct calibration){ .text = read_head(path, CALIBRATION_FILE_MAX, &bytes) };
	if (calibration->text)
		calibration->count =
			calibration_parse(calibration->text, bytes, key, calibration->records);
	if (!calibration->count)
		calibration_free(calibration);
	return calibration->count;
}

void calibration_free(struct calibration *calibration)
{
	free(calibration->text);
	*calibration = (struct calibration){ 0 };
}

static bool place(char path[PATH_MAX], char key[CALIBRATION_KEY_MAX], const char *exe,
		  const char *processor, const char *build)
{
	char folder[PATH_MAX], name[CALIBRATION_NAME_MAX];

	if (!calibration_key(key, exe, processor, build) ||
	    !calibration_folder(folder, sizeof(folder), getenv("XDG_CACHE_HOME"), getenv("HOME")))
		return false;
	calibration_name(name, key);
	return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

bool calibration_find(struct calibration *calibration, const struct definitions *definitions)
{
	const char *exe = definitions_info(definitions, "exe");
	const char *processor = definitions_info(definitions, "processor");
	const char *build = definitions_info(definitions, "build");
	char path[PATH_MAX], key[CALIBRATION_KEY_MAX];

	return exe && processor && build && place(path, key, exe, processor, build) &&
	       calibration_read(calibration, path, key);
}

bool calibration_place(char path[PATH_MAX], char key[CALIBRATION_KEY_MAX], const char *exe,
		       const char *library, const char **why_p)
{
	char processor[64], build[41], folder[PATH_MAX];
	size_t bytes;
	char *head = read_head(library, HEAD_BYTES, &bytes);

	if (!calibration_folder(folder, sizeof(folder), getenv("XDG_CACHE_HOME"), getenv("HOME"))) {
		*why_p = "neither XDG_CACHE_HOME nor HOME names a folder";
		free(head);
		return false;
	}
	calibration_build(head, head ? bytes : 0, build);
	calibration_processor(processor);
	free(head);
	*why_p = "the interpreter cannot be looked at, or its path is too long";
	return place(path, key, exe, processor, build);
}

static bool is_python(const char *path)
{
	const char *name = strrchr(path, '/');

	return !strncmp(name ? name + 1 : path, "python", 6) ||
	       !strncmp(name ? name + 1 : path, "pypy", 4);
}

/* "#!/usr/bin/env -S python3 -u": what follows #!, without env and options. NULL: none. */
static char *first_line_command(char *head)
{
	char *line = strncmp(head, "#!", 2) ? NULL : head + 2, *word;

	if (line)
		line[strcspn(line, "\n")] = '\0';
	while ((word = line ? strsep(&line, " \t\r") : NULL)) {
		const char *slash = strrchr(word, '/');

		if (*word && *word != '-' && strcmp(slash ? slash + 1 : word, "env"))
			return word;
	}
	return NULL;
}

char *calibration_interpreter(const char *command)
{
	char path[PATH_MAX], *head, *word, *found = NULL;
	size_t bytes;

	if (!launch_find_command(command, path))
		return NULL;
	head = read_head(path, 512, &bytes);
	word = head ? first_line_command(head) : NULL;
	if (word && !launch_find_command(word, path))
		*path = '\0';
	if (is_python(path))
		found = realpath(path, NULL);
	free(head);
	return found;
}
