/*
 * notes.c: INFO and LAYER records that outlive a trace: kept, and repeated in a forked child's.
 *
 * A note is made before a trace exists, or by a thread that has no buffer: then it waits for the next
 * thread that starts, or for the process's end. No lock: a place is taken by counting.
 */
#include <string.h>

#include "preload/join.h"
#include "preload/journal.h"
#include "preload/process.h"

#define NOTES_MAX    64u
#define LAYER_FAILED 2u

struct note {
	bool complete; /* set last, atomically */
	bool is_layer;
	uint8_t state;
	char key[32];
	char value[216];
};

static struct note notes[NOTES_MAX];
static uint32_t note_count;   /* places taken, may be larger than NOTES_MAX */
static uint32_t note_written; /* notes that are in the trace */

static struct trace_str str_of(const char *string)
{
	return (struct trace_str){ string, (uint32_t)strlen(string) };
}

void notes_write(struct trace_buffer *buffer)
{
	uint32_t i = __atomic_load_n(&note_written, __ATOMIC_RELAXED);

	while (i < NOTES_MAX && __atomic_load_n(&notes[i].complete, __ATOMIC_ACQUIRE)) {
		const struct note *note = &notes[i];

		if (!__atomic_compare_exchange_n(&note_written, &i, i + 1, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue; /* another thread took it; i is where to go on */
		if (!note->key[0]) {
			; /* never finished, see notes_forget */
		} else if (note->is_layer) {
			trace_define(buffer, TRACE_RECORD_LAYER,
				     &(struct record_LAYER){ .layer = str_of(note->key),
							     .state = note->state,
							     .detail = str_of(note->value) });
		} else {
			trace_define(buffer, TRACE_RECORD_INFO,
				     &(struct record_INFO){ .key = str_of(note->key),
							    .value = str_of(note->value) });
		}
		i++;
	}
}

/* What another thread was adding at the fork nobody will finish here: those behind it would wait for it. */
void notes_forget(void)
{
	for (uint32_t i = 0; i < note_count && i < NOTES_MAX; i++)
		if (!notes[i].complete) {
			notes[i].key[0] = '\0';
			notes[i].complete = true;
		}
	note_written = 0;
}

/* Whether the newest note of that key says the same. */
static bool already_noted(bool is_layer, const char *key, unsigned state, const char *value)
{
	uint32_t count = __atomic_load_n(&note_count, __ATOMIC_RELAXED);

	for (uint32_t i = count < NOTES_MAX ? count : NOTES_MAX; i > 0; i--) {
		const struct note *note = &notes[i - 1];

		if (__atomic_load_n(&note->complete, __ATOMIC_ACQUIRE) &&
		    note->is_layer == is_layer && strcmp(note->key, key) == 0)
			return note->state == state &&
			       strncmp(note->value, value, sizeof(note->value) - 1) == 0;
	}
	return false;
}

static void journal_failed(const struct note *note)
{
	char line[sizeof(note->key) + sizeof(note->value) + 2];
	struct text text = text_in(line, sizeof(line));

	text_add(&text, note->key);
	text_add(&text, ": ");
	text_add(&text, note->value);
	journal_add("layer", line);
}

static void note_add(bool is_layer, const char *key, unsigned state, const char *value)
{
	if (already_noted(is_layer, key, state, value))
		return;
	uint32_t place = __atomic_fetch_add(&note_count, 1, __ATOMIC_RELAXED);
	if (place >= NOTES_MAX)
		return;
	struct note *note = &notes[place];
	struct text text = text_in(note->key, sizeof(note->key));
	text_add(&text, key);
	text = text_in(note->value, sizeof(note->value));
	text_add(&text, value);
	note->is_layer = is_layer;
	note->state = (uint8_t)state;
	__atomic_store_n(&note->complete, true, __ATOMIC_RELEASE);
	if (is_layer && state == LAYER_FAILED)
		journal_failed(note);

	if (tare_tls.thread && (tare_tls.state == TARE_ON || tare_tls.state == TARE_INSIDE)) {
		uint8_t state_before = tare_tls.state;

		tare_tls.state = TARE_INSIDE;
		notes_write(tare_tls.thread->buffer);
		tare_tls.state = state_before;
	}
}

void tare_note_info(const char *key, const char *value)
{
	note_add(false, key, 0, value);
}

void tare_note_layer(const char *layer, unsigned state, const char *detail)
{
	note_add(true, layer, state, detail);
}
