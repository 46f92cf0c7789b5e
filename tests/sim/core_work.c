/*
 * What a program gives a device to do: kernels, copies, sets, host functions. Device time passes on
 * the stream's timeline; the bytes themselves move at once, on the calling thread, which nothing
 * can tell apart because simulated kernels compute nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core.h"

/* A pageable source up to this size is staged and the call returns; a larger one is waited for. */
enum { STAGED_BYTES = 64 << 10 };

/* A read of at most this much gives zeros where the values are not known, see core_values.c. */
enum { SMALL_READ = 8 };

/* Zeroing at least this much device memory gives the pages back instead of writing them. */
enum { DROP_BYTES = 1 << 20, PAGE = 4096 };

static size_t span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
	return (depth - 1) * slice + (height - 1) * pitch + width;
}

static void copy_run(const struct sim_copy *c)
{
	size_t bytes = span(c->width, c->height, c->depth, c->src_pitch, c->src_slice);
	bool from_device = c->column == SIM_D2H || c->column == SIM_D2D;
	bool known = !from_device || core_values_known(c->src, bytes);

	if (c->column == SIM_D2H && bytes <= SMALL_READ && !known) {
		memset(c->dst, 0, bytes);
		return;
	}
	if (c->column == SIM_H2D || c->column == SIM_D2D) {
		size_t room = span(c->width, c->height, c->depth, c->dst_pitch, c->dst_slice);

		if (known)
			core_values_set(c->dst, room);
		else
			core_values_forget(c->dst, room);
	}
	core_unlock();
	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memmove(c->dst + z * c->dst_slice + y * c->dst_pitch,
				c->src + z * c->src_slice + y * c->src_pitch, c->width);
	core_lock();
}

static void fill_row(char *p, size_t bytes, const struct sim_set *set)
{
	if (set->size == 1) {
		memset(p, (int)set->value, bytes);
		return;
	}
	for (size_t i = 0; i + set->size <= bytes; i += set->size)
		memcpy(p + i, &set->value, set->size);
}

/* Zeroes a large piece of device memory without touching it. */
static bool drop_pages(const struct sim_set *set)
{
	uintptr_t begin = (uintptr_t)set->dst, end = begin + set->width;
	uintptr_t first = (begin + PAGE - 1) & -(uintptr_t)PAGE, last = end & -(uintptr_t)PAGE;
	struct sim_region r;

	if (set->value || set->height * set->depth != 1 || set->width < DROP_BYTES ||
	    !sim_region_find(set->dst, &r) || r.type != SIM_MEM_DEVICE)
		return false;
	if (madvise((void *)first, last - first, MADV_DONTNEED))
		return false;
	memset(set->dst, 0, first - begin);
	memset((void *)last, 0, end - last);
	return true;
}

static void set_run(const struct sim_set *set)
{
	core_values_set(set->dst,
			span(set->width, set->height, set->depth, set->pitch, set->slice));
	core_unlock();
	bool dropped = drop_pages(set);
	for (size_t z = 0; !dropped && z < set->depth; z++)
		for (size_t y = 0; y < set->height; y++)
			fill_row(set->dst + z * set->slice + y * set->pitch, set->width, set);
	core_lock();
}

void core_work_run(struct sim_stream *s, const struct sim_work *work, uint64_t end)
{
	switch (work->kind) {
	case SIM_KERNEL: core_values_touched(work->touched); break;
	case SIM_COPY: copy_run(&work->copy); break;
	case SIM_SET: set_run(&work->set); break;
	case SIM_HOST: core_host_call(s, end, work->host.call, work->host.arg); break;
	}
}

int sim_submit(struct sim_stream *s, const struct sim_work *work)
{
	core_lock();
	if (s->capture) {
		int rc = core_capture_add(s, work);

		core_unlock();
		return rc;
	}
	uint64_t end = core_append(s, core_queue_room(s), work->ns);
	core_observe_work(s, work, end, 0, 0);
	core_work_run(s, work, end);
	core_unlock();
	if (sim_config()->blocking)
		core_wait_until(end);
	return SIM_OK;
}

int sim_launch(struct sim_stream *s, const char *name, uint64_t ns,
	       const struct sim_touched *touched)
{
	return sim_submit(s,
			  &(struct sim_work){
				  .kind = SIM_KERNEL, .ns = ns, .name = name, .touched = touched });
}

static uint64_t table_ns(const char *name, double fallback_us)
{
	static const char *table;
	double us = fallback_us;

	if (!table) {
		table = getenv("TARE_SIM_KERNELS");
		if (!table)
			table = "";
	}
	if (name)
		core_table_find(table, name, false, &us);
	return (uint64_t)(us * 1000);
}

uint64_t sim_kernel_ns(const char *name)
{
	return table_ns(name, sim_config()->kernel_us);
}

uint64_t sim_library_ns(const char *name)
{
	return table_ns(name, sim_config()->library_us);
}

/* Whether p is memory of the simulator, or registered with it, for so many bytes. */
static bool known(const void *p, size_t bytes, struct sim_region *r)
{
	if (sim_region_find(p, r) && (uintptr_t)p - r->base + bytes <= r->size)
		return true;
	r->type = SIM_MEM_NONE;
	return false;
}

static bool on_device(const struct sim_region *r)
{
	return r->type == SIM_MEM_DEVICE || r->type == SIM_MEM_MANAGED;
}

static uint64_t copy_ns(size_t bytes, double gbps)
{
	return (uint64_t)(sim_config()->copy_us * 1000 + (double)bytes / gbps);
}

int sim_copy(struct sim_stream *s, const struct sim_copy *copy, bool async)
{
	struct sim_work work = { .kind = SIM_COPY, .copy = *copy };
	struct sim_copy *c = &work.copy;
	struct sim_region dst, src;
	size_t bytes = c->width * c->height * c->depth;

	if (!bytes)
		return SIM_OK;
	if (!c->dst || !c->src)
		return SIM_INVALID_VALUE;
	known(c->dst, span(c->width, c->height, c->depth, c->dst_pitch, c->dst_slice), &dst);
	known(c->src, span(c->width, c->height, c->depth, c->src_pitch, c->src_slice), &src);
	if (c->column == SIM_DEFAULT)
		c->column = on_device(&src) ? (on_device(&dst) ? SIM_D2D : SIM_D2H) :
					      (on_device(&dst) ? SIM_H2D : SIM_H2H);

	bool from_device = c->column == SIM_D2H || c->column == SIM_D2D;
	bool to_device = c->column == SIM_H2D || c->column == SIM_D2D;
	if ((from_device && src.type == SIM_MEM_NONE) || (to_device && dst.type == SIM_MEM_NONE))
		return SIM_INVALID_VALUE;
	work.ns = copy_ns(bytes, from_device && to_device ? sim_config()->device_gbps :
							    sim_config()->copy_gbps);

	bool pageable = (from_device ? dst.type : src.type) == SIM_MEM_NONE;
	if (from_device != to_device && !s->capture)
		core_lines_add(core_called(), c->column, bytes, pageable);
	c->from = src.type;
	c->to = dst.type;
	c->async = async;

	int rc = async ? SIM_OK : sim_capture_check();
	if (!rc)
		rc = sim_submit(s, &work);
	if (rc)
		return rc;

	bool waits = !(from_device && to_device) &&
		     (!async || c->column == SIM_H2H ||
		      (pageable && (from_device || bytes > STAGED_BYTES)));
	return waits && !s->capture ? core_stream_wait(s) : SIM_OK;
}

int sim_set(struct sim_stream *s, const struct sim_set *set)
{
	struct sim_work work = { .kind = SIM_SET, .set = *set };
	size_t bytes = set->width * set->height * set->depth;
	struct sim_region dst;

	if (!bytes)
		return SIM_OK;
	if (!known(set->dst, span(set->width, set->height, set->depth, set->pitch, set->slice),
		   &dst))
		return SIM_INVALID_VALUE;
	work.ns = copy_ns(bytes, sim_config()->device_gbps);
	work.set.to = dst.type;
	return sim_submit(s, &work);
}
