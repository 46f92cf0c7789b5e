/* graph.c: see graph.h. */
#include "analyzer/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/mainloop.h"
#include "analyzer/model.h"
#include "analyzer/opview.h"
#include "analyzer/syncs.h"

#define HASH_FACTOR  0x9e3779b97f4a7c15u /* odd: powers of it never vanish */
#define WARM_PASSES  3   /* may be unlike the others: caches fill, kernels are tuned */
#define ALIKE        0.9 /* of the passes: others are told, but stand not in the way */
#define DEVICE_BOUND 0.2 /* waits in a pass, as in its headline */

/* ---------------------------------------------------------------- while the trace is read */

void graph_launched(struct model *model, const struct model_thread *thread, uint32_t function,
		    uint64_t stream)
{
	struct graph_launches *launches = &model->graph;
	const struct op_context *context =
		thread->context_count ? &thread->contexts[thread->context_count - 1] : NULL;
	const struct def_function *called = &model->definitions.functions[function];

	if (called->category == TRACE_CATEGORY_CAPTURE) {
		launches->counts.captures += !strncmp(called->name, "cudaStreamBegin", 15);
		return;
	}
	if (thread->wait.capturing)
		return;
	launches->counts.launches++;
	launches->counts.graphs += called->is_graph;
	launches->counts.host_functions += called->is_host_function;
	launches->counts.default_stream += !stream && !called->is_per_thread;
	launches->hash =
		launches->hash * HASH_FACTOR +
		hash_mix(function,
			 context ? (uint64_t)context->key.kind << 32 | context->key.op : 0);
}

static struct graph_counts counts_between(const struct graph_counts *from,
					  const struct graph_counts *to)
{
	return (struct graph_counts){
		.launches = to->launches - from->launches,
		.graphs = to->graphs - from->graphs,
		.host_functions = to->host_functions - from->host_functions,
		.default_stream = to->default_stream - from->default_stream,
		.captures = to->captures - from->captures,
	};
}

void graph_run_begins(const struct graph_launches *launches, struct graph_mark *mark)
{
	*mark = (struct graph_mark){
		.run = launches->counts,
		.pass_launches = launches->counts.launches,
		.pass_hash = launches->hash,
	};
}

static uint64_t power(uint64_t factor, uint64_t exponent)
{
	uint64_t result = 1;

	for (; exponent; exponent >>= 1, factor *= factor)
		if (exponent & 1)
			result *= factor;
	return result;
}

/* Beyond so many sequences the rarest makes place. */
static struct graph_sequence *sequence_of(struct graph_loop *graph, uint64_t hash,
					  uint64_t launches)
{
	struct graph_sequence *rarest = graph->sequences;

	for (uint32_t i = 0; i < graph->sequence_count; i++) {
		struct graph_sequence *sequence = &graph->sequences[i];

		if (sequence->hash == hash && sequence->launches == launches)
			return sequence;
		if (sequence->passes < rarest->passes)
			rarest = sequence;
	}
	if (graph->sequence_count < GRAPH_SEQUENCES)
		rarest = &graph->sequences[graph->sequence_count++];
	*rarest = (struct graph_sequence){ .hash = hash, .launches = launches };
	return rarest;
}

void graph_pass_ends(const struct graph_launches *launches, struct graph_mark *mark,
		     struct loop_node *node)
{
	struct graph_loop *graph = &node->graph;
	uint64_t count = launches->counts.launches - mark->pass_launches;
	uint64_t hash = launches->hash - mark->pass_hash * power(HASH_FACTOR, count);

	sequence_of(graph, hash, count)->passes++;
	if (!graph->passes || count < graph->launches_least)
		graph->launches_least = count;
	if (count > graph->launches_most)
		graph->launches_most = count;
	graph->passes++;
	mark->pass_launches = launches->counts.launches;
	mark->pass_hash = launches->hash;
}

void graph_run_ends(const struct graph_launches *launches, const struct graph_mark *mark,
		    struct loop_node *node)
{
	struct graph_counts more = counts_between(&mark->run, &launches->counts);

	node->graph.counts.launches += more.launches;
	node->graph.counts.graphs += more.graphs;
	node->graph.counts.host_functions += more.host_functions;
	node->graph.counts.default_stream += more.default_stream;
	node->graph.counts.captures += more.captures;
}

/* ---------------------------------------------------------------- what is said */

/* Things in the way, and what else has to be known. Names are those of the JSON. */
#define OBSTACLES(OBSTACLE)                                                                        \
	OBSTACLE(READS, "reads", "reads of device values")                                         \
	OBSTACLE(WAITS, "waits", "copies and synchronises that wait")                              \
	OBSTACLE(PAGEABLE, "pageable-copies", "copies of memory that is not pinned")               \
	OBSTACLE(MEMORY, "memory", "allocations and frees by the driver")                          \
	OBSTACLE(VARYING, "varying-launches", "launches that differ from pass to pass")            \
	OBSTACLE(HOST_FUNCTIONS, "host-functions", "functions launched on the host")

enum {
#define OBSTACLE_(NAME, name, text) OBSTACLE_##NAME,
	OBSTACLES(OBSTACLE_)
#undef OBSTACLE_
		OBSTACLE_COUNT,
};

static const char *const obstacle_names[] = {
#define OBSTACLE_(NAME, name, text) name,
	OBSTACLES(OBSTACLE_)
#undef OBSTACLE_
};

static const char *const obstacle_texts[] = {
#define OBSTACLE_(NAME, name, text) text,
	OBSTACLES(OBSTACLE_)
#undef OBSTACLE_
};

struct obstacle {
	double per_pass;
	const struct sync *most; /* the place with most of them; NULL: none */
};

struct answer {
	const struct loop_node *node;
	double passes, launches, launch_ns, host_ns, pass_ns, wait_share;
	struct obstacle obstacles[OBSTACLE_COUNT];
	unsigned obstacle_count;
	const struct graph_sequence *usual;
};

static unsigned obstacle_of(const struct sync *sync)
{
	switch (sync->finding->key.kind) {
	case FINDING_SCALAR_READ:
	case FINDING_SIZE_READ: return OBSTACLE_READS;
	case FINDING_PAGEABLE_COPY: return OBSTACLE_PAGEABLE;
	case FINDING_MEMORY: return OBSTACLE_MEMORY;
	default: return OBSTACLE_WAITS;
	}
}

static void add_waits(struct answer *answer, const struct syncs *syncs)
{
	for (uint32_t i = 0; i < syncs->count; i++) {
		const struct sync *sync = &syncs->rows[i];
		struct obstacle *obstacle = &answer->obstacles[obstacle_of(sync)];

		if (!sync->verdict.in_main || sync->verdict.class == CLASS_ONCE ||
		    sync->section >= SYNC_POLLING || isnan(sync->verdict.main_per_pass))
			continue;
		obstacle->per_pass += sync->verdict.main_per_pass;
		if (!obstacle->most ||
		    sync->verdict.main_per_pass > obstacle->most->verdict.main_per_pass)
			obstacle->most = sync;
	}
}

static void add_times(struct answer *answer, struct model *model, uint32_t loop)
{
	struct ledger ledger;

	answer->launch_ns = answer->host_ns = answer->pass_ns = answer->wait_share = NAN;
	if (!main_loop_ledger(model, loop, &ledger) || !(ledger.wall > ledger.lines[LINE_tare]))
		return;
	double host = ledger.lines[LINE_python_user] + ledger.lines[LINE_python_library] +
		      ledger.lines[LINE_framework] + ledger.lines[LINE_library] +
		      ledger.lines[LINE_launch];

	answer->launch_ns = model_ns(model, ledger.lines[LINE_launch] / answer->passes);
	answer->host_ns = model_ns(model, host / answer->passes);
	answer->pass_ns = model_ns(model, (ledger.wall - ledger.lines[LINE_tare]) / answer->passes);
	answer->wait_share = ledger.lines[LINE_wait] / ledger.wall;
}

/* False: there is nothing to say. */
static bool ask(struct answer *answer, const struct syncs *syncs)
{
	struct model *model = syncs->model;
	const struct loop_node *node = &model->loops.nodes[syncs->main_loop];
	const struct graph_loop *graph = &node->graph;

	if (!syncs->main_loop || !node->passes_known || !node->passes || !graph->passes ||
	    !graph->counts.launches)
		return false;
	*answer = (struct answer){ .node = node, .passes = (double)node->passes };
	answer->launches = (double)graph->counts.launches / answer->passes;
	answer->usual = graph->sequences;
	for (uint32_t i = 1; i < graph->sequence_count; i++)
		if (graph->sequences[i].passes > answer->usual->passes)
			answer->usual = &graph->sequences[i];
	add_waits(answer, syncs);
	add_times(answer, model, syncs->main_loop);
	if ((double)answer->usual->passes <
	    ALIKE * ((double)graph->passes - fmin(WARM_PASSES, (double)graph->passes / 2)))
		answer->obstacles[OBSTACLE_VARYING].per_pass =
			1 - (double)answer->usual->passes / (double)graph->passes;
	answer->obstacles[OBSTACLE_HOST_FUNCTIONS].per_pass =
		(double)graph->counts.host_functions / answer->passes;
	for (unsigned i = 0; i < OBSTACLE_COUNT; i++)
		answer->obstacle_count += answer->obstacles[i].per_pass > 0;
	return true;
}

static char *place_of(const struct model *model, const struct sync *sync)
{
	const struct finding_key *key = &sync->finding->key;

	return key->code ? site_text(model, key->code, key->site) : NULL;
}

static const char *status_of(const struct answer *answer)
{
	return answer->node->graph.counts.graphs ? "uses-graphs" :
	       answer->obstacle_count            ? "obstacles" :
						   "nothing-seen";
}

/* What a trace does not tell. Calls of libraries may be in it, what they launch never is. */
static json_t *unknown_json(void)
{
	return json_pack("[s,s,s]", "shapes, addresses and values that change",
			 "waits and launches by other ways than the CUDA runtime",
			 "what cuBLAS, cuDNN and NCCL launch");
}

json_t *graph_json(const struct syncs *syncs)
{
	const struct model *model = syncs->model;
	struct answer answer;
	json_t *json, *obstacles = json_array();

	if (!ask(&answer, syncs)) {
		json_decref(obstacles);
		return json_null();
	}
	const struct graph_loop *graph = &answer.node->graph;
	for (unsigned i = 0; i < OBSTACLE_COUNT; i++) {
		const struct obstacle *obstacle = &answer.obstacles[i];
		char *place = obstacle->most ? place_of(model, obstacle->most) : NULL;

		if (obstacle->per_pass > 0)
			json_array_append_new(obstacles, json_pack("{s:s, s:s, s:o, s:s?}", "kind",
								   obstacle_names[i], "text",
								   obstacle_texts[i], "per_pass",
								   json_real(obstacle->per_pass),
								   "site", place));
		free(place);
	}
	json = json_object();
	json_object_set_new(json, "status", json_string(status_of(&answer)));
	json_object_set_new(json, "obstacles", obstacles);
	json_object_set_new(json, "launches_per_pass", json_real(answer.launches));
	json_object_set_new(json, "graph_launches_per_pass",
			    json_real((double)graph->counts.graphs / answer.passes));
	json_object_set_new(json, "default_stream_per_pass",
			    json_real((double)graph->counts.default_stream / answer.passes));
	json_object_set_new(json, "captures", json_integer((json_int_t)graph->counts.captures));
	json_object_set_new(json, "launches_least",
			    json_integer((json_int_t)graph->launches_least));
	json_object_set_new(json, "launches_most", json_integer((json_int_t)graph->launches_most));
	json_object_set_new(json, "passes", json_integer((json_int_t)graph->passes));
	json_object_set_new(json, "passes_alike", json_integer((json_int_t)answer.usual->passes));
	json_object_set_new(json, "launch_ns", output_number(answer.launch_ns));
	json_object_set_new(json, "host_ns", output_number(answer.host_ns));
	json_object_set_new(json, "unknown", unknown_json());
	return json;
}

static void print_obstacles(FILE *text, const struct model *model, const struct answer *answer)
{
	const char *separator = "in the way: ";

	for (unsigned i = 0; i < OBSTACLE_COUNT; i++) {
		const struct obstacle *obstacle = &answer->obstacles[i];
		char *place = obstacle->most ? place_of(model, obstacle->most) : NULL;

		if (!(obstacle->per_pass > 0)) {
			free(place);
			continue;
		}
		fprintf(text, "%s%s", separator, obstacle_texts[i]);
		if (i == OBSTACLE_VARYING)
			fprintf(text, " (%lu to %lu; %lu of %lu passes are alike)",
				answer->node->graph.launches_least,
				answer->node->graph.launches_most, answer->usual->passes,
				answer->node->graph.passes);
		else
			fprintf(text, " (%.2f a pass%s%s)", obstacle->per_pass,
				place ? ", most at " : "", place ? place : "");
		separator = "; ";
		free(place);
	}
	if (!answer->obstacle_count)
		fputs("nothing was seen that stands in the way", text);
}

static void print_saving(FILE *text, const struct answer *answer)
{
	char launch[TEXT_NUMBER_ROOM], host[TEXT_NUMBER_ROOM], pass[TEXT_NUMBER_ROOM];

	if (isnan(answer->launch_ns))
		return;
	fprintf(text,
		". It would save at most what the host does: launching %s, in all %s of %s a pass",
		text_ns(launch, answer->launch_ns), text_ns(host, answer->host_ns),
		text_ns(pass, answer->pass_ns));
	if (answer->wait_share >= DEVICE_BOUND)
		fputs(", less where that hides behind the device's work", text);
}

static void print_launches(FILE *text, const struct answer *answer)
{
	const struct graph_counts *counts = &answer->node->graph.counts;
	double graphs = (double)counts->graphs / answer->passes;
	double others = (double)(counts->launches - counts->graphs) / answer->passes;

	if (counts->graphs)
		fprintf(text, "%.4g graph%s a pass, and ", graphs, graphs == 1 ? "" : "s");
	if (counts->graphs && !(others > 0))
		fputs("no launch outside", text);
	else
		fprintf(text, "%.4g launch%s %s%s; ", others, others == 1 ? "" : "es",
			counts->graphs ? "outside of it" : "a pass",
			counts->default_stream && !counts->graphs ?
				", on the default stream (a capture takes one of its own)" :
				"");
}

void graph_print(const struct syncs *syncs)
{
	const struct model *model = syncs->model;
	struct answer answer;
	char *out, *safe;
	size_t size;

	if (!ask(&answer, syncs))
		return;
	const struct graph_counts *counts = &answer.node->graph.counts;
	FILE *text = open_memstream(&out, &size);

	print_launches(text, &answer);
	if (counts->launches > counts->graphs)
		print_obstacles(text, model, &answer);
	if (!counts->graphs)
		print_saving(text, &answer);
	fputs(". Shapes and what libraries launch are not known", text);
	fclose(text);
	safe = text_escape(out);
	printf("\n%sas a CUDA graph%s", output_style(STYLE_HEADING), output_style(STYLE_PLAIN));
	output_wrapped(safe, 15, 10);
	putchar('\n');
	free(safe);
	free(out);
}
