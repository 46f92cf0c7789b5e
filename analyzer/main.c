/* main.c: `tare COMMAND ...`: finds the subcommand in commands.def and hands the rest to it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/message.h"
#include "analyzer/options.h"
#include "traces/version.h"

#define COMMAND(name, help) int cmd_##name(int argc, char **argv);
#include "analyzer/commands.def"
#undef COMMAND

static const struct command {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, help) { #name, help, cmd_##name },
#include "analyzer/commands.def"
#undef COMMAND
	{ NULL, NULL, NULL },
};

static int help(FILE *out)
{
	fputs("Usage: tare COMMAND [OPTION...] [FILE...]\n"
	      "Weighs what every operation of a PyTorch program costs before it does any work.\n\n",
	      out);
	for (const struct command *command = commands; command->name; command++)
		fprintf(out, "  %-10s %s\n", command->name, command->help);
	fputs("\n'tare COMMAND --help' says the rest. FILE: traces, or folders of them.\n"
	      "Exit status: 0 fine, 1 a gate failed, 2 wrong usage or a trace that cannot be read.\n",
	      out);
	return STATUS_FINE;
}

/* What was printed must have arrived: a full disk is not a success. */
static int finish(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return complain("the output could not be written: %s", strerror(errno));
	return status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	char title[64];

	if (!name)
		return help(stderr), STATUS_WRONG;
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return finish(help(stdout));
	if (!strcmp(name, "version") || !strcmp(name, "--version")) {
		printf("tare %s\n", TARE_VERSION);
		return finish(STATUS_FINE);
	}
	for (const struct command *command = commands; command->name; command++)
		if (!strcmp(command->name, name)) {
			snprintf(title, sizeof(title), "tare %s", name);
			argv[1] = title;
			return finish(command->run(argc - 1, argv + 1));
		}
	return complain("'%s' is no command of tare; 'tare help' lists them", name);
}
