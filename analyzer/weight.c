/* weight.c: see weight.h. */
#include "analyzer/weight.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analyzer/calibration.h"
#include "analyzer/calltree.h"
#include "analyzer/definitions.h"

/* Costs of a span at the two intervals. */
struct cost {
	const struct record_CALIBRATION *close, *apart;
};

static bool is_kind(const struct record_CALIBRATION *record, const char *kind)
{
	return strlen(kind) == record->kind.length &&
	       !memcmp(record->kind.data, kind, record->kind.length);
}

/* The records of a kind with the shortest and the longest interval. */
static struct cost find(const struct record_CALIBRATION *records, unsigned count, const char *kind,
			uint32_t distance)
{
	struct cost cost = { NULL, NULL };

	for (unsigned i = 0; i < count; i++) {
		const struct record_CALIBRATION *record = &records[i];

		if (!is_kind(record, kind) || record->distance != distance)
			continue;
		if (!cost.close || record->interval_ns < cost.close->interval_ns)
			cost.close = record;
		if (!cost.apart || record->interval_ns >= cost.apart->interval_ns)
			cost.apart = record;
	}
	return cost;
}

/* Adds the rate of one event; `parts`: of so many a span has the cost. */
static uint8_t add(struct weights *weights, const struct cost *cost, double unit_ns, unsigned parts)
{
	double scale = WEIGHT_SCALE / (1000 * unit_ns * parts);
	struct weight_rate *rate = &weights->rates[weights->rate_count];

	if (!cost->close || weights->rate_count == WEIGHT_RATES_MAX)
		return 0;
	*rate = (struct weight_rate){
		.inside = (uint32_t)lround(cost->close->inside_ps * scale),
		.outside = (uint32_t)lround(cost->close->outside_ps * scale),
	};
	double *error = &weights->errors[weights->rate_count];
	*error = cost->close->error_ps * scale;
	if (cost->apart->interval_ns > cost->close->interval_ns) {
		double inside = (double)cost->apart->inside_ps - cost->close->inside_ps;
		double outside = (double)cost->apart->outside_ps - cost->close->outside_ps;

		rate->inside_more = (int32_t)fmax(fmin(inside * scale, INT32_MAX), INT32_MIN);
		rate->outside_more = (int32_t)fmax(fmin(outside * scale, INT32_MAX), INT32_MIN);
		*error = fmax(*error, cost->apart->error_ps * scale);
	}
	return (uint8_t)weights->rate_count++;
}

static bool is_frame(const struct record_CALIBRATION *record)
{
	return is_kind(record, "frame") || is_kind(record, "generator");
}

static void set_intervals(uint16_t apart[65], const struct record_CALIBRATION *records,
			  unsigned count, bool frames, double unit_ns)
{
	double least = INFINITY, most = 0;

	for (unsigned i = 0; i < count; i++) {
		if (is_frame(&records[i]) != frames)
			continue;
		least = fmin(least, records[i].interval_ns);
		most = fmax(most, records[i].interval_ns);
	}
	least = fmax(least, 1);
	/* Of 2^n to 2^(n+1) units, the middle. */
	for (unsigned bits = 1; most > least && bits < 65; bits++) {
		double ns = ldexp(0.75, (int)bits) * unit_ns;
		double part = log(ns / least) / log(most / least);

		apart[bits] = (uint16_t)(fmax(fmin(part, 1), 0) * WEIGHT_APART);
	}
}

static void set_events(struct weights *weights, const struct record_CALIBRATION *records,
		       unsigned count, double unit_ns)
{
	struct cost event = find(records, count, "event", 0), mark;
	uint8_t any = add(weights, &event, unit_ns, 2), any_mark = add(weights, &event, unit_ns, 1);

	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
		const struct trace_event_desc *desc = &trace_event_descs[code];
		char name[32] = "";

		for (unsigned i = 0; desc->name && desc->name[i] && i < sizeof(name) - 1; i++) {
			name[i] = (char)tolower(desc->name[i]);
			name[i + 1] = '\0';
		}
		struct cost cost = find(records, count, name, 0);
		bool loose = desc->kind == TRACE_KIND_LOOSE;

		weights->events[code] = code == TRACE_TARE ? 0 :
					cost.close ? add(weights, &cost, unit_ns, loose ? 1 : 2) :
					loose      ? any_mark :
						     any;
	}
	mark = find(records, count, "mark", 0);
	weights->mark = mark.close ? add(weights, &mark, unit_ns, 1) : any_mark;
}

static void set_frames(struct weights *weights, const struct record_CALIBRATION *records,
		       unsigned count, double unit_ns)
{
	static const char *const kinds[2] = { "frame", "generator" };

	for (unsigned generator = 0; generator < 2; generator++) {
		struct cost cost = find(records, count, kinds[generator], 0);
		uint8_t all = cost.close ? add(weights, &cost, unit_ns, 2) :
					   weights->events[TRACE_FRAME];

		memset(weights->frames[generator], all, WEIGHT_DISTANCES);
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned generator = is_kind(&records[i], kinds[1]);
		uint32_t distance = records[i].distance;

		if ((!generator && !is_kind(&records[i], kinds[0])) || !distance ||
		    distance > WEIGHT_DISTANCES)
			continue;
		struct cost cost = find(records, count, kinds[generator], distance);
		if (cost.close == &records[i])
			weights->frames[generator][distance - 1] = add(weights, &cost, unit_ns, 2);
	}
}

void weights_set(struct weights *weights, const struct record_CALIBRATION *records, unsigned count,
		 double unit_ns)
{
	enum weight_source source = weights->source;

	*weights = (struct weights){ .source = source, .rate_count = 1 };
	set_intervals(weights->apart[0], records, count, true, unit_ns);
	set_intervals(weights->apart[1], records, count, false, unit_ns);
	set_events(weights, records, count, unit_ns);
	set_frames(weights, records, count, unit_ns);
}

void weights_start(struct weights *weights, const struct definitions *definitions, double unit_ns)
{
	unsigned count = definitions->calibration_count;
	struct calibration kept;

	if (count && memcmp(definitions->calibrations[0].source.data, "start", 5)) {
		weights->source = WEIGHT_CALIBRATED;
	} else if (calibration_find(&kept, definitions)) {
		weights->source = WEIGHT_LATER;
		weights_set(weights, kept.records, kept.count, unit_ns);
		calibration_free(&kept);
		return;
	} else {
		weights->source = count ? WEIGHT_START : WEIGHT_UNKNOWN;
	}
	weights_set(weights, definitions->calibrations, count, unit_ns);
}

void weights_finish(struct weights *weights, const struct call_tree *tree)
{
	double weight = 0, error = 0;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		unsigned rate;

		if (node->kind >= TRACE_EVENT_CODES)
			continue;
		rate = node->kind == TRACE_FRAME ? weights->frames[0][0] :
						   weights->events[node->kind];
		weight += (double)node->count *
			  ((double)weights->rates[rate].inside + weights->rates[rate].outside);
		error += (double)node->count * weights->errors[rate];
	}
	weights->error = weight > 0 ? error / weight : 0;
}

const char *weights_source_text(const struct weights *weights)
{
	switch (weights->source) {
	case WEIGHT_UNKNOWN: return NULL;
	case WEIGHT_START: return "not calibrated: what C alone can tell";
	case WEIGHT_LATER: return "by this machine's calibration of that interpreter";
	case WEIGHT_CALIBRATED: return "calibrated";
	}
	return NULL;
}
