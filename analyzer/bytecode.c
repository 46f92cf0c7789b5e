/* bytecode.c: see bytecode.h. */
#include "analyzer/bytecode.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/lines.h"
#include "analyzer/memory.h"

#define LOOPS_MAX (BYTECODE_ASIDE - 1)
#define NOWHERE   UINT32_MAX

/* Each jump back takes as long to follow as the code is long: no program's has so many, and is so long. */
#define JUMPS_MAX 64u
#define WORK_MAX  (1u << 24) /* jumps * units */

/* What an instruction does to the flow. IF: it may also go on. QUIET: no loop. */
enum flow {
	FLOW_ON,
	FLOW_STOP,
	FLOW_ABS,
	FLOW_ABS_IF,
	FLOW_FORTH,
	FLOW_FORTH_IF,
	FLOW_BACK,
	FLOW_BACK_IF,
	FLOW_BACK_QUIET,
	FLOW_EXTEND,
	FLOW_HANDLER
};

enum version { V39, V310, V311, V312, V313, V314, VERSIONS };

/* Opcodes by version; 0: there is none. */
static const struct {
	enum flow flow;
	uint8_t opcode[VERSIONS];
	bool iterates; /* asks an iterator: a loop that begins with it is a `for` */
} opcodes[] = {
	/* clang-format off */
	/*                    3.9  3.10 3.11 3.12 3.13 3.14 */
	{ FLOW_EXTEND,     { 144, 144, 144, 144,  71,  69 }, false }, /* EXTENDED_ARG */
	{ FLOW_HANDLER,    {   0,   0,  35,  35,  33,  32 }, false }, /* PUSH_EXC_INFO */
	{ FLOW_STOP,       {  83,  83,  83,  83,  36,  35 }, false }, /* RETURN_VALUE */
	{ FLOW_STOP,       {   0,   0,   0, 121, 103,   0 }, false }, /* RETURN_CONST */
	{ FLOW_STOP,       { 130, 130, 130, 130, 101, 104 }, false }, /* RAISE_VARARGS */
	{ FLOW_STOP,       {  48, 119, 119, 119, 102, 105 }, false }, /* RERAISE */
	{ FLOW_FORTH_IF,   {  93,  93,  93,  93,  72,  70 }, true  }, /* FOR_ITER */
	{ FLOW_FORTH,      { 110, 110, 110, 110,  79,  77 }, false }, /* JUMP_FORWARD */
	{ FLOW_ABS,        { 113, 113,   0,   0,   0,   0 }, false }, /* JUMP_ABSOLUTE */
	{ FLOW_ABS_IF,     { 111, 111,   0,   0,   0,   0 }, false }, /* JUMP_IF_FALSE_OR_POP */
	{ FLOW_ABS_IF,     { 112, 112,   0,   0,   0,   0 }, false }, /* JUMP_IF_TRUE_OR_POP */
	{ FLOW_ABS_IF,     { 114, 114,   0,   0,   0,   0 }, false }, /* POP_JUMP_IF_FALSE */
	{ FLOW_ABS_IF,     { 115, 115,   0,   0,   0,   0 }, false }, /* POP_JUMP_IF_TRUE */
	{ FLOW_ABS_IF,     { 121, 121,   0,   0,   0,   0 }, false }, /* JUMP_IF_NOT_EXC_MATCH */
	{ FLOW_FORTH_IF,   { 122, 122,   0,   0,   0,   0 }, false }, /* SETUP_FINALLY */
	{ FLOW_FORTH_IF,   { 143, 143,   0,   0,   0,   0 }, false }, /* SETUP_WITH */
	{ FLOW_FORTH_IF,   { 154, 154,   0,   0,   0,   0 }, false }, /* SETUP_ASYNC_WITH */
	{ FLOW_FORTH_IF,   {   0,   0, 111,   0,   0,   0 }, false }, /* JUMP_IF_FALSE_OR_POP */
	{ FLOW_FORTH_IF,   {   0,   0, 112,   0,   0,   0 }, false }, /* JUMP_IF_TRUE_OR_POP */
	{ FLOW_FORTH_IF,   {   0,   0, 114, 114,  97, 100 }, false }, /* POP_JUMP_(FORWARD_)IF_FALSE */
	{ FLOW_FORTH_IF,   {   0,   0, 115, 115, 100, 103 }, false }, /* POP_JUMP_(FORWARD_)IF_TRUE */
	{ FLOW_FORTH_IF,   {   0,   0, 128, 128,  99, 102 }, false }, /* POP_JUMP_(FORWARD_)IF_NOT_NONE */
	{ FLOW_FORTH_IF,   {   0,   0, 129, 129,  98, 101 }, false }, /* POP_JUMP_(FORWARD_)IF_NONE */
	{ FLOW_FORTH_IF,   {   0,   0, 123, 123, 104, 106 }, false }, /* SEND */
	{ FLOW_BACK,       {   0,   0, 140, 140,  77,  75 }, false }, /* JUMP_BACKWARD */
	{ FLOW_BACK_QUIET, {   0,   0, 134, 134,  78,  76 }, false }, /* JUMP_BACKWARD_NO_INTERRUPT */
	{ FLOW_BACK_IF,    {   0,   0, 173,   0,   0,   0 }, false }, /* POP_JUMP_BACKWARD_IF_NOT_NONE */
	{ FLOW_BACK_IF,    {   0,   0, 174,   0,   0,   0 }, false }, /* POP_JUMP_BACKWARD_IF_NONE */
	{ FLOW_BACK_IF,    {   0,   0, 175,   0,   0,   0 }, false }, /* POP_JUMP_BACKWARD_IF_FALSE */
	{ FLOW_BACK_IF,    {   0,   0, 176,   0,   0,   0 }, false }, /* POP_JUMP_BACKWARD_IF_TRUE */
	/* clang-format on */
};

#define OPCODES (sizeof(opcodes) / sizeof(*opcodes))

/* An instruction, at its first code unit (EXTENDED_ARGs included); the rest of it has next 0. */
struct step {
	uint32_t next; /* the instruction that follows; 0: none begins here */
	uint32_t target;
	uint8_t flow;
	bool iterates;
};

static bool goes_on(const struct step *step)
{
	return step->flow != FLOW_STOP && step->flow != FLOW_ABS && step->flow != FLOW_FORTH &&
	       step->flow != FLOW_BACK && step->flow != FLOW_BACK_QUIET;
}

static enum version version_of(uint32_t python)
{
	return python >= 0x0309 && python <= 0x030e ? (enum version)(python - 0x0309) : VERSIONS;
}

static uint32_t target_of(enum flow flow, enum version version, uint64_t argument, uint32_t next)
{
	uint64_t units = version == V39 ? argument / 2 : argument;

	switch (flow) {
	case FLOW_ABS:
	case FLOW_ABS_IF: return units < NOWHERE ? (uint32_t)units : NOWHERE;
	case FLOW_FORTH:
	case FLOW_FORTH_IF: return units < NOWHERE - next ? next + (uint32_t)units : NOWHERE;
	case FLOW_BACK:
	case FLOW_BACK_IF:
	case FLOW_BACK_QUIET: return units <= next ? next - (uint32_t)units : NOWHERE;
	default: return NOWHERE;
	}
}

/* One step for each unit; NULL: the version is not known. */
static struct step *decode(enum version version, struct trace_str bytecode, uint32_t units)
{
	const uint8_t *code = (const uint8_t *)bytecode.data;
	uint8_t row_of[256] = { 0 };
	struct step *steps;
	uint32_t start = 0;
	uint64_t argument = 0;

	if (version == VERSIONS)
		return NULL;
	for (uint8_t i = 0; i < OPCODES; i++)
		row_of[opcodes[i].opcode[version]] = i + 1;
	row_of[0] = 0;
	steps = memory_zero(units + 1, sizeof(*steps));
	for (uint32_t unit = 0, next; unit < units; unit = next) {
		uint8_t row = row_of[code[2 * unit]];
		enum flow flow = row ? opcodes[row - 1].flow : FLOW_ON;

		next = unit + 1;
		argument = (argument << 8 | code[2 * unit + 1]) & UINT32_MAX;
		if (flow == FLOW_EXTEND && next < units)
			continue;
		/* The caches of an instruction are empty: opcode 0. */
		while (version >= V311 && next < units && !code[2 * next])
			next++;
		steps[start].next = next;
		steps[start].flow = (uint8_t)flow;
		steps[start].iterates = row && opcodes[row - 1].iterates;
		steps[start].target = target_of(flow, version, argument, next);
		if (steps[start].target >= units)
			steps[start].target = NOWHERE;
		start = next;
		argument = 0;
	}
	return steps;
}

struct search {
	const struct step *steps;
	uint32_t units;
	uint32_t *stack;
	uint8_t *seen;
};

static void visit(struct search *search, uint32_t *top, uint32_t unit, uint32_t from, uint32_t to)
{
	if (unit >= from && unit <= to && unit < search->units && !search->seen[unit]) {
		search->seen[unit] = 1;
		search->stack[(*top)++] = unit;
	}
}

/* Whether `start` leads to `goal` within [from, to], without `avoid`. */
static bool leads_to(struct search *search, uint32_t start, uint32_t goal, uint32_t from,
		     uint32_t to, uint32_t avoid)
{
	uint32_t top = 0;

	memset(search->seen, 0, search->units);
	if (avoid < search->units)
		search->seen[avoid] = 1;
	visit(search, &top, start, from, to);
	while (top) {
		uint32_t unit = search->stack[--top];
		const struct step *step = &search->steps[unit];

		if (unit == goal)
			return true;
		if (!step->next)
			continue;
		if (goes_on(step))
			visit(search, &top, step->next, from, to);
		if (step->target != NOWHERE)
			visit(search, &top, step->target, from, to);
	}
	return false;
}

static bool search_start(struct search *search, enum version version, struct trace_str bytecode)
{
	search->units = bytecode.length / 2;
	search->steps = decode(version, bytecode, search->units);
	if (!search->steps)
		return false;
	search->stack = memory_zero(search->units, sizeof(*search->stack));
	search->seen = memory_zero(search->units, 1);
	return true;
}

static void search_end(struct search *search)
{
	free((void *)search->steps);
	free(search->stack);
	free(search->seen);
}

static bool jumps_back(const struct step *step, uint32_t unit)
{
	return step->next && step->target <= unit && step->flow != FLOW_BACK_QUIET;
}

static uint32_t least_line(uint32_t known, uint32_t python, uint32_t first_line,
			   struct trace_str lines, uint32_t unit)
{
	int32_t line = lines_lookup(python, first_line, lines, unit);

	return line > 0 && (!known || (uint32_t)line < known) ? (uint32_t)line : known;
}

static int compare(const void *left, const void *right)
{
	const struct code_loop *a = left, *b = right;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->last > b->last ? -1 : a->last < b->last;
}

/* A `while` whose test is there twice has two: one that `continue` closes around one of the rest. */
static bool is_same_while(const struct step *steps, const struct code_loop *outer,
			  const struct code_loop *inner)
{
	return outer->line == inner->line && !steps[outer->first].iterates &&
	       !steps[inner->first].iterates;
}

/* Nests the sorted loops, joins those that are one, and fills `at`. */
static void nest(struct code_loops *loops, const struct step *steps)
{
	uint32_t count = 1;

	for (uint32_t i = 1; i < loops->count; i++) {
		struct code_loop loop = loops->loops[i];
		uint32_t outer = count - 1;

		while (outer && loops->loops[outer].last < loop.first)
			outer = loops->loops[outer].outer;
		if (outer && is_same_while(steps, &loops->loops[outer], &loop)) {
			loops->loops[outer].head = loop.head;
			if (loop.last > loops->loops[outer].last)
				loops->loops[outer].last = loop.last;
			continue;
		}
		loop.outer = (uint16_t)outer;
		loop.depth = outer ? loops->loops[outer].depth + 1 : 0;
		loops->loops[count++] = loop;
	}
	loops->count = count;
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t unit = loops->loops[i].first; unit <= loops->loops[i].last; unit++)
			loops->at[unit] = (uint16_t)i;
}

/* Handlers behind the rest that jump back into a loop belong to it. */
static void add_handlers(struct code_loops *loops, const struct step *steps)
{
	uint32_t handler = NOWHERE;

	for (uint32_t unit = 0; unit < loops->units; unit++) {
		const struct step *step = &steps[unit];
		uint16_t loop;

		if (!step->next)
			continue;
		if (step->flow == FLOW_HANDLER)
			handler = unit;
		if (handler == NOWHERE || step->target > unit)
			continue;
		loop = loops->at[step->target];
		if (!loop || loop & BYTECODE_ASIDE || handler <= loops->loops[loop].last)
			continue;
		for (uint32_t i = handler; i < step->next && i < loops->units; i++)
			if (!loops->at[i])
				loops->at[i] = loop | BYTECODE_ASIDE;
	}
}

static void add_loop(struct code_loops *loops, uint32_t *room, struct code_loop loop)
{
	for (uint32_t i = 1; i < loops->count; i++)
		if (loops->loops[i].first == loop.first) {
			if (loop.last > loops->loops[i].last)
				loops->loops[i].last = loop.last;
			if (loop.line &&
			    (!loops->loops[i].line || loop.line < loops->loops[i].line))
				loops->loops[i].line = loop.line;
			return;
		}
	if (loops->count >= LOOPS_MAX)
		return;
	memory_grow(loops->loops, loops->count, *room);
	loops->loops[loops->count++] = loop;
}

bool bytecode_loops(struct code_loops *loops, uint32_t python, uint32_t first_line,
		    struct trace_str lines, struct trace_str bytecode)
{
	struct search search;
	uint32_t room = 0;
	uint64_t jumps = 0;

	*loops = (struct code_loops){ .count = 1, .units = bytecode.length / 2 };
	if (!search_start(&search, version_of(python), bytecode))
		return false;
	for (uint32_t unit = 0; unit < loops->units; unit++) {
		uint32_t first = search.steps[unit].target, line;

		if (!jumps_back(&search.steps[unit], unit))
			continue;
		if (++jumps > JUMPS_MAX && jumps * loops->units > WORK_MAX) {
			search_end(&search);
			bytecode_loops_free(loops);
			return false;
		}
		if (!leads_to(&search, first, unit, 0, loops->units, NOWHERE))
			continue;
		memory_grow(loops->loops, loops->count, room);
		uint32_t next = search.steps[first].next;

		line = least_line(0, python, first_line, lines, first);
		line = least_line(line, python, first_line, lines, unit);
		add_loop(loops, &room,
			 (struct code_loop){ .first = first,
					     .last = unit,
					     .head = first,
					     .asks_until = search.steps[first].iterates ? next :
											  first,
					     .line = line });
	}
	if (loops->count > 1) {
		qsort(loops->loops + 1, loops->count - 1, sizeof(*loops->loops), compare);
		loops->at = memory_zero(loops->units, sizeof(*loops->at));
		nest(loops, search.steps);
		add_handlers(loops, search.steps);
	}
	search_end(&search);
	return loops->count > 1;
}

void bytecode_loops_free(struct code_loops *loops)
{
	free(loops->loops);
	free(loops->at);
	*loops = (struct code_loops){ 0 };
}

bool bytecode_delegates(uint32_t python, struct trace_str bytecode, uint32_t unit)
{
	/* YIELD_FROM, then SEND. */
	static const uint8_t opcode[VERSIONS] = { 72, 72, 123, 123, 104, 106 };
	enum version version = version_of(python);

	if (version == VERSIONS || unit >= bytecode.length / 2)
		return false;
	/* Its cache, of opcode 0. */
	if (version > V310 && unit && !bytecode.data[2 * unit])
		unit--;
	return (uint8_t)bytecode.data[2 * unit] == opcode[version];
}

/* A site may be in an instruction's caches or behind its EXTENDED_ARGs. */
static uint32_t start_of(const struct search *search, uint32_t unit)
{
	while (unit && unit < search->units && !search->steps[unit].next)
		unit--;
	return unit;
}

bool bytecode_between(const struct code_loops *loops, uint32_t number, uint32_t python,
		      struct trace_str bytecode, uint32_t unit, uint32_t other)
{
	const struct code_loop *loop = &loops->loops[number];
	struct search search;
	bool between;

	if (!search_start(&search, version_of(python), bytecode))
		return false;
	unit = start_of(&search, unit);
	other = start_of(&search, other);
	between = unit < search.units && unit != other;
	if (between && goes_on(&search.steps[unit]))
		between = !leads_to(&search, search.steps[unit].next, unit, loop->first, loop->last,
				    other);
	if (between && search.steps[unit].target != NOWHERE)
		between = !leads_to(&search, search.steps[unit].target, unit, loop->first,
				    loop->last, other);
	search_end(&search);
	return between;
}

bool bytecode_always(const struct code_loops *loops, uint32_t number, uint32_t python,
		     struct trace_str bytecode, uint32_t unit)
{
	const struct code_loop *loop = &loops->loops[number];
	struct search search;
	bool always = true;

	if (!search_start(&search, version_of(python), bytecode))
		return false;
	unit = start_of(&search, unit);
	for (uint32_t from = loop->first; always && from <= loop->last && from < search.units;
	     from++)
		if (jumps_back(&search.steps[from], from) &&
		    (search.steps[from].target == loop->first ||
		     search.steps[from].target == loop->head))
			always =
				!leads_to(&search, loop->head, from, loop->first, loop->last, unit);
	search_end(&search);
	return always;
}

uint32_t bytecode_constant_list(uint32_t python, struct trace_str bytecode, uint32_t unit)
{
	/* BUILD_LIST 0, LOAD_CONST (a tuple), LIST_EXTEND 1; of 3.14 not known. */
	static const uint8_t opcodes_of[VERSIONS][3] = {
		[V39] = { 103, 100, 162 },  [V310] = { 103, 100, 162 }, [V311] = { 103, 100, 162 },
		[V312] = { 103, 100, 162 }, [V313] = { 47, 83, 81 },
	};
	enum version version = version_of(python);
	const uint8_t *bytes = (const uint8_t *)bytecode.data;
	uint32_t units = bytecode.length / 2;

	if (version == VERSIONS || !opcodes_of[version][0])
		return 0;
	for (; units >= 3 && unit <= units - 3; unit++) {
		const uint8_t *at = bytes + 2 * (size_t)unit;
		const uint8_t *wanted = opcodes_of[version];

		if (at[0] == wanted[0] && !at[1] && at[2] == wanted[1] && at[4] == wanted[2] &&
		    at[5] == 1)
			return unit + 3;
	}
	return 0;
}

uint32_t bytecode_straight_end(uint32_t python, struct trace_str bytecode, uint32_t unit)
{
	uint32_t units = bytecode.length / 2, end = unit;
	struct step *steps = decode(version_of(python), bytecode, units);

	if (!steps)
		return unit;
	while (end < units && (!steps[end].next || steps[end].flow == FLOW_ON))
		end++;
	/* Where it ends, the last instruction still runs. */
	end += end < units;
	for (uint32_t from = 0; from < units; from++)
		if (steps[from].next && steps[from].target > unit && steps[from].target < end)
			end = steps[from].target;
	free(steps);
	return end;
}
