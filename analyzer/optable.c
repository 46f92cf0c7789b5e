/* optable.c: see optable.h. */
#include "analyzer/optable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/memory.h"

void op_table_start(struct op_table *table, struct calls *calls)
{
	table->calls = calls;
	memory_grow(table->rows, table->count, table->room);
	memory_grow(table->cells, table->cell_count, table->cell_room);
	table->count = table->cell_count = 1;
}

void op_table_free(struct op_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		struct op_distribution *distribution = table->rows[i].distribution;

		for (unsigned part = 0; distribution && part < OP_PART_COUNT; part++)
			histogram_free(&distribution->parts[part]);
		free(distribution);
	}
	free(table->rows);
	free(table->cells);
	hash_free(&table->index);
	*table = (struct op_table){ 0 };
}

uint32_t op_table_row(struct op_table *table, const struct op_key *key)
{
	uint64_t mixed = hash_mix((uint64_t)key->op << 32 | key->code,
				  (uint64_t)key->site << 32 | key->thread);
	struct op_key reduced = *key;
	uint32_t hash, probe, row;

	mixed = hash_mix(mixed, (uint64_t)key->user_code << 32 | key->user_site) ^ key->kind;
	hash = probe = (uint32_t)(mixed ^ mixed >> 32);
	while ((row = hash_next(&table->index, hash, &probe)))
		if (!memcmp(&table->rows[row].key, key, sizeof(*key)))
			return row;
	/* A full table keeps operators apart, but no places. */
	if (table->count >= OP_ROWS_MAX) {
		reduced = (struct op_key){ .kind = key->kind, .op = key->op };
		if (key->code || key->site || key->user_code || key->user_site || key->thread)
			return op_table_row(table, &reduced);
		if (table->count >= 2 * OP_ROWS_MAX)
			return 0;
	}
	memory_grow(table->rows, table->count, table->room);
	table->rows[table->count].key = reduced;
	hash_add(&table->index, hash, table->count);
	return table->count++;
}

static struct op_cell *cell_of(struct op_table *table, uint32_t *list, uint32_t class)
{
	for (uint32_t i = *list; i; i = table->cells[i].next)
		if (table->cells[i].class == class)
			return &table->cells[i];
	memory_grow(table->cells, table->cell_count, table->cell_room);
	table->cells[table->cell_count] = (struct op_cell){ .class = class, .next = *list };
	*list = table->cell_count;
	return &table->cells[table->cell_count++];
}

static enum op_part part_of_line(enum ledger_line line)
{
	switch (line) {
	case LINE_launch: return OP_launch;
	case LINE_copy: return OP_copy;
	case LINE_memory: return OP_memory;
	case LINE_library: return OP_library;
	default: return OP_framework;
	}
}

/* Above it a call's Python time is something else's. Found anew when there are twice as many calls. */
static uint64_t python_cap(struct op_distribution *distribution)
{
	const struct histogram *python = &distribution->parts[OP_python];

	if (python->count >= 2 * distribution->python_cap_at + 8) {
		distribution->python_cap_at = python->count;
		distribution->python_cap =
			(uint64_t)(OP_PYTHON_CAP * histogram_percentile(python, 0.1));
	}
	return distribution->python_cap_at ? distribution->python_cap : UINT64_MAX;
}

static void add_part(struct op_distribution *distribution, enum op_part part, uint64_t value)
{
	if (value)
		histogram_add(&distribution->parts[part], value);
}

static void add_known(struct op_distribution *distribution, uint64_t python, uint64_t framework,
		      uint64_t calls_fixed)
{
	uint64_t fixed = framework + calls_fixed, cap;

	if (python != OP_UNKNOWN) {
		histogram_add(&distribution->parts[OP_python], python);
		cap = python_cap(distribution);
		fixed += python < cap ? python : cap;
	}
	if (framework == OP_UNKNOWN)
		return;
	add_part(distribution, OP_framework, framework);
	add_part(distribution, OP_fixed, fixed);
}

static uint32_t to_pending(uint64_t value)
{
	return value == OP_UNKNOWN ? OP_PENDING_UNKNOWN : (uint32_t)value;
}

static uint64_t from_pending(uint32_t value)
{
	return value == OP_PENDING_UNKNOWN ? OP_UNKNOWN : value;
}

static bool fits_pending(uint64_t value)
{
	return value < OP_PENDING_UNKNOWN || value == OP_UNKNOWN;
}

static void flush(struct op_distribution *distribution)
{
	for (uint32_t i = 0; i < distribution->pending_count; i++) {
		const struct op_pending *pending = &distribution->pending[i];

		add_known(distribution, from_pending(pending->python),
			  from_pending(pending->framework), pending->calls_fixed);
	}
	distribution->pending_count = 0;
}

/* One call's parts go into the histograms, by the idle costs known so far. Zeros are left out. */
static void add_distribution(struct op_table *table, struct op_distribution *distribution,
			     const struct op_sample *sample)
{
	uint64_t framework = sample->framework, calls_fixed = 0, python = sample->python;

	if (sample->call_count) {
		double parts[OP_PART_COUNT] = { 0 };

		for (uint32_t i = 0; i < sample->call_count; i++) {
			const struct op_call *call = &sample->calls[i];
			double cost;

			parts[OP_wait] += calls_split(table->calls, call->class, call->count,
						      (double)call->sum, &cost);
			parts[part_of_line(calls_line(table->calls, call->class))] += cost;
		}
		if (framework != OP_UNKNOWN)
			framework += (uint64_t)(parts[OP_framework] + 0.5);
		for (unsigned part = OP_library; part < OP_PART_COUNT; part++) {
			uint64_t value = (uint64_t)(parts[part] + 0.5);

			add_part(distribution, (enum op_part)part, value);
			calls_fixed += part < OP_gil ? value : 0;
		}
	}
	add_part(distribution, OP_gil, sample->gil);
	if (!fits_pending(framework) || calls_fixed >= UINT32_MAX || !fits_pending(python)) {
		add_known(distribution, python, framework, calls_fixed);
		return;
	}
	distribution->pending[distribution->pending_count++] = (struct op_pending){
		.python = to_pending(python),
		.framework = to_pending(framework),
		.calls_fixed = (uint32_t)calls_fixed,
	};
	if (distribution->pending_count == OP_PENDING_MAX)
		flush(distribution);
}

void op_table_finish(struct op_table *table)
{
	for (uint32_t i = 1; i < table->count; i++)
		if (table->rows[i].distribution)
			flush(table->rows[i].distribution);
}

static void add_to_times(struct op_times *times, const struct op_sample *sample)
{
	times->gil += sample->gil;
	if (sample->framework != OP_UNKNOWN)
		times->framework += sample->framework;
	if (sample->python != OP_UNKNOWN)
		times->python += sample->python;
}

bool op_table_add(struct op_table *table, uint32_t number, const struct op_sample *sample)
{
	struct op_row *row = &table->rows[number];
	bool first = !row->has_first;
	struct op_times *sum = first ? &row->first : &row->sum;

	if (!row->calls++)
		row->first_time = sample->time;
	row->launches += sample->launches;
	for (uint32_t i = 0; i < sample->call_count; i++) {
		struct op_cell *cell = cell_of(table, &row->cells, sample->calls[i].class);

		*(first ? &cell->first_calls : &cell->calls) += sample->calls[i].count;
		*(first ? &cell->first_sum : &cell->sum) += sample->calls[i].sum;
	}
	if (!sample->known)
		return false;
	add_to_times(sum, sample);
	if (first) {
		row->has_first = true;
		row->first_python_known = sample->python != OP_UNKNOWN;
		row->first_framework_known = sample->framework != OP_UNKNOWN;
		return false;
	}
	row->timed++;
	row->python_known += sample->python != OP_UNKNOWN;
	row->framework_known += sample->framework != OP_UNKNOWN;
	if (!row->distribution)
		row->distribution = memory_zero(1, sizeof(*row->distribution));
	add_distribution(table, row->distribution, sample);
	return true;
}

void op_sum_add(struct op_table *table, struct op_sum *sum, const struct op_sample *sample)
{
	sum->timed++;
	add_to_times(&sum->times, sample);
	for (uint32_t i = 0; i < sample->call_count; i++) {
		struct op_cell *cell = cell_of(table, &sum->cells, sample->calls[i].class);

		cell->calls += sample->calls[i].count;
		cell->sum += sample->calls[i].sum;
	}
}

static void add_times(double *parts, const struct op_times *times)
{
	parts[OP_python] += (double)times->python;
	parts[OP_framework] += (double)times->framework;
	parts[OP_gil] += (double)times->gil;
}

static void add_fixed(double *parts)
{
	for (unsigned part = OP_python; part < OP_gil; part++)
		parts[OP_fixed] += parts[part];
}

static void add_cell(const struct op_table *table, uint32_t class, uint64_t calls, uint64_t sum,
		     double *parts)
{
	double cost;

	parts[OP_wait] += calls_split(table->calls, class, calls, (double)sum, &cost);
	parts[part_of_line(calls_line(table->calls, class))] += cost;
}

struct op_sums op_row_sums(const struct op_table *table, const struct op_row *row)
{
	struct op_sums sums = { .python_cap = INFINITY };

	add_times(sums.later, &row->sum);
	add_times(sums.first, &row->first);
	if (row->distribution && row->distribution->parts[OP_python].count) {
		const struct histogram *python = &row->distribution->parts[OP_python];

		sums.python_cap = OP_PYTHON_CAP * histogram_percentile(python, 0.1);
		sums.later[OP_python] =
			histogram_capped_sum(python, sums.later[OP_python], sums.python_cap);
		sums.first[OP_python] = fmin(sums.first[OP_python], sums.python_cap);
	}
	for (uint32_t i = row->cells; i; i = table->cells[i].next) {
		const struct op_cell *cell = &table->cells[i];

		add_cell(table, cell->class, cell->calls, cell->sum, sums.later);
		add_cell(table, cell->class, cell->first_calls, cell->first_sum, sums.first);
	}
	add_fixed(sums.later);
	add_fixed(sums.first);
	/* Of the others only Python is known: where a call was seen in one, so is its framework. */
	sums.fixed_known = sums.later[OP_fixed];
	if (row->framework_known < row->timed)
		sums.fixed_known -= sums.later[OP_python] / (double)row->timed *
				    (double)(row->timed - row->framework_known);
	return sums;
}

void op_sum_parts(const struct op_table *table, const struct op_row *row, const struct op_sum *sum,
		  double parts[OP_PART_COUNT])
{
	double capped = op_row_sums(table, row).later[OP_python];
	double part[OP_PART_COUNT] = { 0 };

	add_times(part, &sum->times);
	if (row->sum.python)
		part[OP_python] *= capped / (double)row->sum.python;
	for (uint32_t i = sum->cells; i; i = table->cells[i].next)
		add_cell(table, table->cells[i].class, table->cells[i].calls, table->cells[i].sum,
			 part);
	add_fixed(part);
	for (unsigned i = 0; i < OP_PART_COUNT; i++)
		parts[i] += part[i];
}
