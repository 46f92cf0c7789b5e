/* op_names.c: see op_names.h. Reads as much of the Itanium C++ ABI's mangling as these names need. */
#include "analyzer/op_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/memory.h"

static const char *const bases[] = {
#define BASE(name) name,
#include "analyzer/op_names.def"
#undef BASE
};

struct part {
	const char *data;
	size_t length;
};

static int compare_base(const void *key, const void *base)
{
	const struct part *part = key;
	const char *name = *(const char *const *)base;
	size_t length = strlen(name);
	int order = memcmp(part->data, name, part->length < length ? part->length : length);

	return order ? order : part->length < length ? -1 : part->length > length;
}

static int is_base(const char *name, size_t length)
{
	struct part part = { name, length };

	return bsearch(&part, bases, sizeof(bases) / sizeof(*bases), sizeof(*bases),
		       compare_base) != NULL;
}

/* A <source-name>: its length in decimal, then itself. Returns what is behind it; NULL: there is none. */
static const char *source_name(const char *in, const char *end, struct part *part)
{
	size_t length = 0;

	if (in == end || *in < '1' || *in > '9')
		return NULL;
	for (; in < end && *in >= '0' && *in <= '9'; in++)
		if ((length = length * 10 + (size_t)(*in - '0')) > 4096)
			return NULL;
	if ((size_t)(end - in) < length)
		return NULL;
	*part = (struct part){ in, length };
	return in + length;
}

/*
 * The parts of a <nested-name> behind its N, up to `room`. Ends at the first thing that is no plain
 * name: template arguments, constructors, operators. *rest_p: where that is.
 */
static unsigned nested_parts(const char *in, const char *end, struct part *parts, unsigned room,
			     const char **rest_p)
{
	unsigned count = 0;

	while (in < end && (*in == 'K' || *in == 'V' || *in == 'r'))
		in++;
	if (end - in >= 2 && in[0] == 'S' && in[1] == 't') {
		parts[count++] = (struct part){ "std", 3 };
		in += 2;
	}
	for (const char *next; count < room && (next = source_name(in, end, &parts[count]));
	     in = next)
		count++;
	*rest_p = in;
	return count;
}

static int same(struct part part, const char *text)
{
	return part.length == strlen(text) && memcmp(part.data, text, part.length) == 0;
}

static char *copy(const char *data, size_t length)
{
	char *out = memory_zero(length + 1, 1);

	return memcpy(out, data, length);
}

/* The longest operator whose name `part` begins with; what follows the "_" behind it is the overload. */
static char *aten_name(struct part part)
{
	char *out = memory_zero(part.length + sizeof("aten::."), 1);
	size_t base = part.length;

	while (base &&
	       !((base == part.length || part.data[base] == '_') && is_base(part.data, base)))
		base--;
	if (!base || base + 1 >= part.length)
		base = part.length;
	sprintf(out, "aten::%.*s%s%.*s", (int)base, part.data, base < part.length ? "." : "",
		base < part.length ? (int)(part.length - base - 1) : 0,
		base < part.length ? part.data + base + 1 : "");
	return out;
}

static char *join(const struct part *parts, unsigned count)
{
	size_t length = 1;
	char *out;

	for (unsigned i = 0; i < count; i++)
		length += parts[i].length + 2;
	out = memory_zero(length, 1);
	length = 0;
	for (unsigned i = 0; i < count; i++)
		length += (size_t)sprintf(out + length, "%s%.*s", i ? "::" : "",
					  (int)parts[i].length, parts[i].data);
	return out;
}

#define PARTS_MAX 16

char *op_name_of_symbol(const char *symbol, size_t length)
{
	struct part parts[PARTS_MAX];
	const char *rest;
	unsigned count;

	if (length > 3 && !memcmp(symbol, "_ZN", 3)) {
		count = nested_parts(symbol + 3, symbol + length, parts, PARTS_MAX, &rest);
		if (count >= 3 && same(parts[0], "at") && same(parts[1], "_ops"))
			return aten_name(parts[2]);
		if (count)
			return join(parts, count);
	}
	return copy(symbol, length);
}

char *node_name_of_type(const char *type, size_t length)
{
	const char *end = type + length, *rest = type;
	struct part parts[PARTS_MAX], inner[PARTS_MAX];
	unsigned count = 0, inner_count = 0;

	if (length && *type == 'N')
		count = nested_parts(type + 1, end, parts, PARTS_MAX, &rest);
	else if (source_name(type, end, &parts[0]))
		count = 1;
	if (!count)
		return copy(type, length);
	/* CppNode<MyFunction>: what is inside says more. */
	if (rest < end && *rest == 'I') {
		if (rest + 1 < end && rest[1] == 'N')
			inner_count = nested_parts(rest + 2, end, inner, PARTS_MAX, &rest);
		else if (source_name(rest + 1, end, &inner[0]))
			inner_count = 1;
	}
	struct part last = parts[count - 1];
	if (!inner_count)
		return copy(last.data, last.length);
	struct part last_inner = inner[inner_count - 1];
	char *out = memory_zero(last.length + last_inner.length + 3, 1);
	sprintf(out, "%.*s<%.*s>", (int)last.length, last.data, (int)last_inner.length,
		last_inner.data);
	return out;
}
