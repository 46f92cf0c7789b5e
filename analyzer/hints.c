/* hints.c: what to do about a finding, from hints.def. */
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model.h"

static const struct {
	enum finding_kind kind;
	const char *op, *function, *text;
} hints[] = {
#define HINT(kind, op, function, text) { FINDING_##kind, op, function, text },
#include "analyzer/hints.def"
#undef HINT
};

static bool is_sync(uint32_t kind)
{
	return kind == FINDING_STREAM_SYNC || kind == FINDING_EVENT_SYNC ||
	       kind == FINDING_DEVICE_SYNC;
}

const char *finding_hint(const struct model *model, const struct finding *finding)
{
	const char *op = finding_op(model, finding);
	const char *function = model->definitions.codes[finding->key.code].name;

	/* What a library waits for in its native code is not known. */
	if (is_sync(finding->key.kind) && !finding->key.explicit)
		return NULL;
	for (unsigned i = 0; i < sizeof(hints) / sizeof(*hints); i++)
		if (hints[i].kind == (enum finding_kind)finding->key.kind &&
		    !strncmp(op ? op : "", hints[i].op, strlen(hints[i].op)) &&
		    strstr(function, hints[i].function))
			return hints[i].text;
	return NULL;
}
