/* message.c: see message.h. */
#include "analyzer/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/display.h"

static void say(const char *kind, const char *format, va_list arguments)
{
	char *message;

	if (vasprintf(&message, format, arguments) < 0)
		return;
	char *safe = text_escape(message);
	fflush(stdout);
	fprintf(stderr, "tare: %s%s\n", kind, safe);
	free(safe);
	free(message);
}

int complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("", format, arguments);
	va_end(arguments);
	return STATUS_WRONG;
}

void warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say("warning: ", format, arguments);
	va_end(arguments);
}
