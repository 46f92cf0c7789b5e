/*
 * node_type.c: classes of backward nodes.
 *
 * A class of C++ is known by its table of virtual functions. All nodes of Python's
 * torch.autograd.Function are of one such class, PyNode, and have a Python object of a class of its own.
 */
#include <string.h>

#include "torchhooks/id_cache.h"
#include "torchhooks/nodes.h"
#include "torchhooks/safe_read.h"

#define TYPES_BITS     11u
#define NAME_ROOM      1024u
#define OBJECT_TYPE    1u /* words: PyObject.ob_type */
#define TYPE_NAME      3u /* words: PyTypeObject.tp_name */
#define NODE_WORDS_MAX 64u
#define OBJECT_WORDS   40u

enum { DETAIL_PYTHON = 1 }; /* of a table of virtual functions: the class is in Python */

static struct id_entry type_entries[1u << TYPES_BITS];
static uint32_t last_type;
static struct id_cache types = {
	.bits = TYPES_BITS,
	.entries = type_entries,
	.last_id = &last_type,
};

/* `name`: mangled; a plain one is made so by its length in front. */
static uint32_t define(struct tare_thread *thread, uint64_t key, uint32_t detail, const char *name)
{
	struct record_NODE_TYPE record = {
		.type = id_cache_id(&types, id_cache_find(&types, key)),
		.name = { name, (uint32_t)strlen(name) },
	};

	trace_define(thread->buffer, TRACE_RECORD_NODE_TYPE, &record);
	id_cache_keep(&types, key, record.type, detail);
	return record.type;
}

/* The class's name, by the type_info before its table of virtual functions. Itanium C++ ABI, 2.5.2. */
TARE_COLD static struct id_found learn_class(struct tare_thread *thread, uint64_t vtable)
{
	uint32_t depth = thread->buffer->depth;
	char text[NAME_ROOM] = "?";
	const char *name = text;
	uint64_t type_info, at;
	struct id_found found;

	trace_enter(thread->buffer, tare_now(), TARE, 2);
	if (!safe_read_word(vtable - 8, &type_info) || !safe_read_word(type_info + 8, &at) ||
	    !safe_read_text(at, text, sizeof(text)))
		strcpy(text, "?");
	name += *name == '*'; /* marks names that are compared by address */
	found.detail = strcmp(name, "N5torch8autograd6PyNodeE") == 0 ? DETAIL_PYTHON : 0;
	found.id = define(thread, vtable, found.detail, name);
	trace_leave(thread->buffer, tare_now(), depth, 0);
	return found;
}

/*
 * Where PyNode has its object: the first word that leads to something whose type has a name, and that
 * has the node's address among its own fields. 0: not found.
 */
TARE_COLD static uint32_t find_object(const uint64_t *node)
{
	uint64_t object, type, name, word;
	char text[NAME_ROOM];

	for (uint32_t i = 4; i < NODE_WORDS_MAX && safe_read_word((uint64_t)&node[i], &object);
	     i++) {
		if (!safe_read_word(object + 8 * OBJECT_TYPE, &type) ||
		    !safe_read_word(type + 8 * TYPE_NAME, &name) ||
		    !safe_read_text(name, text, sizeof(text)))
			continue;
		for (uint32_t j = 2; j < OBJECT_WORDS && safe_read_word(object + 8 * j, &word);
		     j++) {
			if (word == (uint64_t)node)
				return i;
		}
	}
	return 0;
}

TARE_COLD static uint32_t learn_python_class(struct tare_thread *thread, uint64_t type)
{
	char text[NAME_ROOM], mangled[NAME_ROOM + 8], *out = mangled;
	uint32_t depth = thread->buffer->depth, id = 0;
	uint64_t name;

	trace_enter(thread->buffer, tare_now(), TARE, 2);
	if (safe_read_word(type + 8 * TYPE_NAME, &name) &&
	    safe_read_text(name, text, sizeof(text))) {
		size_t length = strlen(text);

		for (size_t digit = 1000; digit; digit /= 10) {
			if (length >= digit)
				*out++ = (char)('0' + length / digit % 10);
		}
		memcpy(out, text, length + 1);
		id = define(thread, type, 0, mangled);
	}
	trace_leave(thread->buffer, tare_now(), depth, 0);
	return id;
}

/* 0 where it cannot be told. */
static uint32_t python_type(struct tare_thread *thread, const uint64_t *node)
{
	static uint32_t object_word, attempts;
	uint32_t word = __atomic_load_n(&object_word, __ATOMIC_RELAXED);
	const uint64_t *object;
	struct id_found found;

	if (tare_unlikely(!word)) {
		if (__atomic_add_fetch(&attempts, 1, __ATOMIC_RELAXED) > 8)
			return 0;
		word = find_object(node);
		__atomic_store_n(&object_word, word, __ATOMIC_RELAXED);
	}
	if (!word || !(object = (const uint64_t *)node[word]))
		return 0;
	found = id_cache_find(&types, object[OBJECT_TYPE]);
	return tare_likely(found.defined) ? found.id :
					    learn_python_class(thread, object[OBJECT_TYPE]);
}

TARE_HOT uint32_t node_type(struct tare_thread *thread, const uint64_t *node)
{
	struct id_found found = id_cache_find(&types, node[0]);

	if (tare_unlikely(!found.defined))
		found = learn_class(thread, node[0]);
	if (tare_unlikely(found.detail == DETAIL_PYTHON)) {
		uint32_t python = python_type(thread, node);

		return python ? python : found.id;
	}
	return found.id;
}
