#!/bin/bash
# The generated parts of traces/FORMAT.md, between <!-- NAME --> and <!-- end -->: tables from
# traces/schema.def, structures from traces/layout.h.
#
#   format_doc.sh           write them
#   format_doc.sh --check   say whether they are current
set -euo pipefail
cd "$(dirname "$0")/.."

document=traces/FORMAT.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CC:-gcc}" -std=gnu17 -I. -o "$work/tables" -x c - traces/schema.c <<'END'
#include <stdio.h>
#include <string.h>

#include "traces/schema.h"

static const char *const kinds[] = { "mark", "span", "loose", "leave" };
static const char *const types[] = { "u8", "u16", "u32", "u64", "i64", "str", "blob" };

/* A bar would end a table's cell. */
static void put_field(unsigned number, const char *name, const char *type, const char *doc)
{
	printf("%s`%s`%s%s%s", number ? "<br>" : "", name, *type ? " " : "", type, *doc ? " " : "");
	for (; *doc; doc++)
		printf(*doc == '|' ? "\\%c" : "%c", *doc);
}

static void events(void)
{
	puts("| code | event | kind | meaning | fields |\n|---|---|---|---|---|");
	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
		const struct trace_event_desc *event = &trace_event_descs[code];

		if (!event->name)
			continue;
		printf("| %u | %s | %s | %s | ", code, event->name, kinds[event->kind], event->doc);
		for (unsigned i = 0; i < event->field_count; i++)
			put_field(i, event->fields[i].name, "", event->fields[i].doc);
		puts(" |");
	}
}

static void records(void)
{
	puts("| type | record | meaning | fields |\n|---|---|---|---|");
	for (unsigned type = 0; type < TRACE_RECORD_TYPES; type++) {
		const struct trace_record_desc *record = &trace_record_descs[type];

		if (!record->name)
			continue;
		printf("| %u | %s | %s | ", type, record->name, record->doc);
		for (unsigned i = 0; i < record->field_count; i++)
			put_field(i, record->fields[i].name, types[record->fields[i].type],
				  record->fields[i].doc);
		puts(" |");
	}
}

static void categories(void)
{
	puts("| number | category | meaning |\n|---|---|---|");
#define CATEGORY_(number, NAME, doc) printf("| %d | %s | %s |\n", number, #NAME, doc);
	TRACE_CATEGORIES(CATEGORY_)
#undef CATEGORY_
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";

	if (!strcmp(part, "events"))
		events();
	else if (!strcmp(part, "records"))
		records();
	else if (!strcmp(part, "categories"))
		categories();
	else
		return 1;
	return 0;
}
END

# What belongs between the markers of this name.
part() {
	case $1 in
	events | records | categories) "$work/tables" "$1" ;;
	constants) code '#define TRACE_' ;;
	enums) code 'enum trace_' ;;
	trace_*) code "struct $1 {" ;;
	*) echo "format_doc: what is '$1' in $document?" >&2 && return 1 ;;
	esac
}

# The definitions in layout.h that begin so.
code() {
	echo '```c'
	awk -v start="$1" 'index($0, start) == 1 { on = 1 } on { print } /};/ || /^#/ { on = 0 }' traces/layout.h
	echo '```'
}

inside=
while IFS= read -r line; do
	if [[ $line == '<!-- end -->' ]]; then
		inside=
	elif [[ $line =~ ^'<!-- '([a-z_]+)' -->'$ ]]; then
		echo "$line"
		part "${BASH_REMATCH[1]}"
		inside=1
	fi
	[[ $inside ]] || echo "$line"
done <"$document" >"$work/new"
[[ ! $inside ]] || {
	echo "format_doc: a marker in $document has no end" >&2
	exit 1
}

if [[ ${1:-} == --check ]]; then
	diff -u "$document" "$work/new" >&2
elif ! cmp -s "$document" "$work/new"; then
	cat "$work/new" >"$document"
fi
