/*
 * replay.c: runs a fuzz target over files, where there is no libFuzzer.
 *
 *     TARGET FILE|FOLDER...
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long files;

static int replay(const char *path, const struct stat *status, int type)
{
	if (type != FTW_F)
		return type == FTW_NS;
	FILE *in = fopen(path, "rb");
	size_t size = (size_t)status->st_size;
	/* Exactly as long, so that a sanitizer sees what is read behind it. */
	uint8_t *data = malloc(size ? size : 1);

	if (!in || !data || fread(data, 1, size, in) != size) {
		perror(path);
		return 1;
	}
	LLVMFuzzerTestOneInput(data, size);
	files++;
	free(data);
	fclose(in);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (ftw(argv[i], replay, 16) != 0) {
			fprintf(stderr, "replay: %s: cannot be read\n", argv[i]);
			return 1;
		}
	printf("%lu files\n", files);
	return files ? 0 : 1;
}
