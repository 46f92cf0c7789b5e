/* settings.c: see settings.h. */
#include "analyzer/settings.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/model.h"
#include "analyzer/syncs.h"

enum leaves_out { NOTHING, ALL, MEMORY, NODE_READS };

static const struct {
	const char *name, *why;
	enum leaves_out leaves_out;
} settings_known[SETTING_COUNT] = {
#define SETTING(NAME, variable, zero_is_off, leaves_out, why)                                      \
	[SETTING_##NAME] = { variable, why, leaves_out },
#include "traces/settings.def"
#undef SETTING
	[SETTING_ANOMALY] = { "detect_anomaly",
			      "autograd's anomaly mode reads whether each node made a NaN",
			      NODE_READS },
};

static bool names(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at += length)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

/* That the module was imported says nothing, and that it was called may have been to turn it off. */
static bool anomaly_may_be_on(const struct model *model)
{
	const struct definitions *definitions = &model->definitions;

	for (uint32_t i = 1; i < definitions->code_count; i++)
		if (strstr(definitions->codes[i].file, "torch/autograd/anomaly_mode.py") &&
		    strstr(definitions->codes[i].name, "__init__"))
			return true;
	return false;
}

/* A backward node, without Python in between, reads a value: no node does so for itself. */
static bool is_node_read(const struct finding_key *key)
{
	return key->kind == FINDING_SCALAR_READ && key->op_kind == OP_KIND_NODE;
}

unsigned settings_find(const struct model *model)
{
	const char *noted = definitions_info(&model->definitions, "settings");
	unsigned found = 0;

	for (unsigned i = SETTING_NONE + 1; noted && i < SETTING_ANOMALY; i++)
		found |= (unsigned)names(noted, settings_known[i].name) << i;
	if (!anomaly_may_be_on(model))
		return found;
	for (uint32_t i = 1; i < model->findings.count; i++)
		if (is_node_read(&model->findings.rows[i].key))
			return found | 1u << SETTING_ANOMALY;
	return found;
}

enum setting settings_cause(unsigned settings, const struct finding_key *key)
{
	for (unsigned i = SETTING_NONE + 1; i < SETTING_COUNT; i++) {
		enum leaves_out out = settings_known[i].leaves_out;

		if (settings >> i & 1 &&
		    (out == ALL || (out == MEMORY && key->kind == FINDING_MEMORY) ||
		     (out == NODE_READS && is_node_read(key))))
			return (enum setting)i;
	}
	return SETTING_NONE;
}

const char *setting_name(enum setting setting)
{
	return settings_known[setting].name;
}

enum setting settings_blinding(unsigned settings)
{
	for (unsigned i = SETTING_NONE + 1; i < SETTING_COUNT; i++)
		if (settings >> i & 1 && settings_known[i].leaves_out == ALL)
			return (enum setting)i;
	return SETTING_NONE;
}

static unsigned left_out(const struct syncs *syncs, enum setting setting)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < syncs->count; i++)
		count += syncs->rows[i].left_out == setting;
	return count;
}

json_t *settings_json(const struct syncs *syncs)
{
	json_t *json = json_array();

	for (unsigned i = SETTING_NONE + 1; i < SETTING_COUNT; i++)
		if (syncs->settings >> i & 1)
			json_array_append_new(json,
					      json_pack("{s:s, s:s, s:i}", "setting",
							settings_known[i].name, "why",
							settings_known[i].why, "left_out",
							(int)left_out(syncs, (enum setting)i)));
	return json;
}

void settings_print(const struct syncs *syncs)
{
	for (unsigned i = SETTING_NONE + 1; i < SETTING_COUNT; i++) {
		char *text, *rows = NULL;
		unsigned count = left_out(syncs, (enum setting)i);

		if (!(syncs->settings >> i & 1))
			continue;
		if (count &&
		    asprintf(&rows, "; %u place%s left out because of it, --format json has them",
			     count, count == 1 ? " is" : "s are") < 0)
			rows = NULL;
		if (asprintf(&text, "is on: %s%s", settings_known[i].why, rows ? rows : "") >= 0) {
			printf("%s%s", output_style(STYLE_WARNING), settings_known[i].name);
			output_wrapped(text, text_width(settings_known[i].name), 6);
			printf("%s\n", output_style(STYLE_PLAIN));
			free(text);
		}
		free(rows);
	}
}
