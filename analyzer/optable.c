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
		for (unsigned part = 0; table->rows[i].histograms && part < OP_PART_COUNT; part++)
			histogram_free(&table->rows[i].histograms[part]);
		free(table->rows[i].histograms);
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

static struct op_cell *cell_of(struct op_table *table, struct op_row *row, uint32_t class)
{
	for (uint32_t i = row->cells; i; i = table->cells[i].next)
		if (table->cells[i].class == class)
			return &table->cells[i];
	memory_grow(table->cells, table->cell_count, table->cell_room);
	table->cells[table->cell_count] = (struct op_cell){ .class = class, .next = row->cells };
	row->cells = table->cell_count;
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
static uint64_t python_cap(struct op_row *row)
{
	const struct histogram *python = &row->histograms[OP_python];

	if (python->count >= 2 * row->python_cap_at + 8) {
		row->python_cap_at = python->count;
		row->python_cap = (uint64_t)(OP_PYTHON_CAP * histogram_percentile(python, 0.1));
	}
	return row->python_cap_at ? row->python_cap : UINT64_MAX;
}

/* One call's parts go into the histograms, by the idle costs known so far. */
static void add_distribution(struct op_table *table, struct op_row *row,
			     const struct op_sample *sample)
{
	double parts[OP_PART_COUNT] = {
		[OP_framework] = (double)sample->framework,

		[OP_gil] = (double)sample->gil,
	};

	for (uint32_t i = 0; i < sample->call_count; i++) {
		const struct op_call *call = &sample->calls[i];
		double cost;

		parts[OP_wait] += calls_split(table->calls, call->class, call->count,
					      (int64_t)call->sum, &cost);
		parts[part_of_line(calls_line(table->calls, call->class))] += cost;
	}
	for (unsigned part = OP_framework; part < OP_gil; part++)
		parts[OP_fixed] += parts[part];
	if (sample->python != OP_UNKNOWN) {
		histogram_add(&row->histograms[OP_python], sample->python);
		parts[OP_fixed] += fmin((double)sample->python, (double)python_cap(row));
	}
	/* Zeros are most: they are what is missing to `timed`. */
	for (unsigned part = OP_framework; part < OP_PART_COUNT; part++)
		if (parts[part] >= 0.5)
			histogram_add(&row->histograms[part], (uint64_t)(parts[part] + 0.5));
}

void op_table_add(struct op_table *table, uint32_t number, const struct op_sample *sample)
{
	struct op_row *row = &table->rows[number];
	bool first = !row->has_first;
	uint64_t *sum = first ? row->first : row->sum;

	if (!row->calls++)
		row->first_time = sample->time;
	row->launches += sample->launches;
	for (uint32_t i = 0; i < sample->call_count; i++) {
		struct op_cell *cell = cell_of(table, row, sample->calls[i].class);

		*(first ? &cell->first_calls : &cell->calls) += sample->calls[i].count;
		*(first ? &cell->first_sum : &cell->sum) += sample->calls[i].sum;
	}
	if (!sample->known)
		return;
	sum[OP_framework] += sample->framework;

	sum[OP_gil] += sample->gil;
	if (sample->python != OP_UNKNOWN)
		sum[OP_python] += sample->python;
	row->has_first = true;
	if (first) {
		row->first_python_known = sample->python != OP_UNKNOWN;
		return;
	}
	row->timed++;
	row->python_known += sample->python != OP_UNKNOWN;
	if (!row->histograms)
		row->histograms = memory_zero(OP_PART_COUNT, sizeof(*row->histograms));
	add_distribution(table, row, sample);
}

static void add_fixed(double *parts)
{
	for (unsigned part = OP_python; part < OP_gil; part++)
		parts[OP_fixed] += parts[part];
}

struct op_sums op_row_sums(const struct op_table *table, const struct op_row *row)
{
	struct op_sums sums = { .python_cap = INFINITY };

	for (unsigned part = 0; part < OP_PART_COUNT; part++) {
		sums.later[part] = (double)row->sum[part];
		sums.first[part] = (double)row->first[part];
	}
	if (row->histograms && row->histograms[OP_python].count) {
		const struct histogram *python = &row->histograms[OP_python];

		sums.python_cap = OP_PYTHON_CAP * histogram_percentile(python, 0.1);
		sums.later[OP_python] =
			histogram_capped_sum(python, sums.later[OP_python], sums.python_cap);
		sums.first[OP_python] = fmin(sums.first[OP_python], sums.python_cap);
	}
	for (uint32_t i = row->cells; i; i = table->cells[i].next) {
		const struct op_cell *cell = &table->cells[i];
		enum op_part part = part_of_line(calls_line(table->calls, cell->class));
		double cost;

		sums.later[OP_wait] += calls_split(table->calls, cell->class, cell->calls,
						   (int64_t)cell->sum, &cost);
		sums.later[part] += cost;
		sums.first[OP_wait] += calls_split(table->calls, cell->class, cell->first_calls,
						   (int64_t)cell->first_sum, &cost);
		sums.first[part] += cost;
	}
	add_fixed(sums.later);
	add_fixed(sums.first);
	return sums;
}
