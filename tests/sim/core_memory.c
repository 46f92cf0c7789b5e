/*
 * The memory of host and devices: every allocation and registration, by address. Device memory is
 * ordinary memory of the process, reserved but not occupied until it is written, so that copies
 * really copy and an untouched device buffer reads as zeros.
 *
 * Has a lock of its own; nothing else is locked while it is held.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core.h"

static struct sim_region *regions; /* by base, disjoint */
static size_t region_count, region_room;
static uintptr_t arena = CORE_ARENA; /* where the next device memory goes, if that is free */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void core_memory_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* The number of regions that begin at or below p. */
static size_t position(uintptr_t p)
{
	size_t low = 0, high = region_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (regions[middle].base <= p)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct sim_region *find(uintptr_t p)
{
	size_t i = position(p);

	return i && p - regions[i - 1].base < regions[i - 1].size ? &regions[i - 1] : NULL;
}

static bool insert(const struct sim_region *r)
{
	if (region_count == region_room) {
		size_t room = region_room ? region_room * 2 : 256;
		struct sim_region *grown = realloc(regions, room * sizeof(*grown));

		if (!grown)
			return false;
		regions = grown;
		region_room = room;
	}
	size_t i = position(r->base);
	memmove(&regions[i + 1], &regions[i], (region_count - i) * sizeof(*regions));
	regions[i] = *r;
	region_count++;
	return true;
}

static struct sim_region erase(struct sim_region *r)
{
	struct sim_region gone = *r;
	size_t i = (size_t)(r - regions);

	region_count--;
	memmove(r, r + 1, (region_count - i) * sizeof(*regions));
	return gone;
}

static size_t whole_pages(size_t size)
{
	return (size + 4095) & ~(size_t)4095;
}

static size_t capacity(void)
{
	return (size_t)(sim_config()->memory_gb * 1e9);
}

static bool account(enum sim_memory type, int device, size_t size)
{
	size_t *used = &core.devices[device].memory_used;

	if (type != SIM_MEM_DEVICE)
		return true;
	if (size > capacity() - *used)
		return false;
	*used += size;
	return true;
}

int sim_alloc(enum sim_memory type, size_t size, unsigned flags, void **out)
{
	struct sim_region r = {
		.size = size,
		.type = type,
		.device = sim_device(),
		.flags = flags,
	};
	int rc = SIM_OUT_OF_MEMORY;

	*out = NULL;
	if (!size)
		return SIM_OK;
	if (size > SIZE_MAX / 2)
		return rc;
	core_use();
	pthread_mutex_lock(&lock);
	if (account(type, r.device, whole_pages(size))) {
		void *p = mmap(type == SIM_MEM_DEVICE ? (void *)arena : NULL, size,
			       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);

		r.base = (uintptr_t)p;
		if (r.base == arena)
			arena += whole_pages(size);
		if (p != MAP_FAILED && insert(&r)) {
			*out = p;
			rc = SIM_OK;
		} else {
			if (p != MAP_FAILED)
				munmap(p, size);
			if (type == SIM_MEM_DEVICE)
				core.devices[r.device].memory_used -= whole_pages(size);
		}
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void wait_for_device(int device)
{
	core_lock();
	uint64_t end = core.devices[device].busy_until;
	core_unlock();
	core_wait_until(end);
	core_waited(device);
}

int sim_free(enum sim_memory type, void *p, bool wait)
{
	struct sim_region region;
	int rc = SIM_INVALID_VALUE;

	if (!p)
		return SIM_OK;
	if (wait && sim_region_find(p, &region))
		wait_for_device(region.device);
	pthread_mutex_lock(&lock);
	struct sim_region *r = find((uintptr_t)p);
	bool right = r && r->base == (uintptr_t)p && !r->registered &&
		     (r->type == type || (r->type == SIM_MEM_MANAGED && type == SIM_MEM_DEVICE));
	if (right) {
		struct sim_region gone = erase(r);

		if (gone.type == SIM_MEM_DEVICE)
			core.devices[gone.device].memory_used -= whole_pages(gone.size);
		munmap(p, gone.size);
		rc = SIM_OK;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int sim_host_register(void *p, size_t size, unsigned flags)
{
	struct sim_region r = {
		.base = (uintptr_t)p,
		.size = size,
		.type = SIM_MEM_HOST,
		.device = sim_device(),
		.flags = flags,
		.registered = true,
	};
	int rc = SIM_INVALID_VALUE;

	if (!p || !size)
		return rc;
	pthread_mutex_lock(&lock);
	size_t next = position(r.base);
	bool overlaps = find(r.base) || (next < region_count && regions[next].base - r.base < size);
	if (overlaps)
		rc = SIM_HOST_ALREADY_REGISTERED;
	else
		rc = insert(&r) ? SIM_OK : SIM_OUT_OF_MEMORY;
	pthread_mutex_unlock(&lock);
	return rc;
}

int sim_host_unregister(void *p)
{
	int rc = SIM_HOST_NOT_REGISTERED;

	pthread_mutex_lock(&lock);
	struct sim_region *r = find((uintptr_t)p);
	if (r && r->base == (uintptr_t)p && r->registered) {
		erase(r);
		rc = SIM_OK;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

bool sim_region_find(const void *p, struct sim_region *out)
{
	pthread_mutex_lock(&lock);
	const struct sim_region *r = find((uintptr_t)p);
	if (r)
		*out = *r;
	pthread_mutex_unlock(&lock);
	return r != NULL;
}

void sim_memory_info(size_t *free, size_t *total)
{
	pthread_mutex_lock(&lock);
	*total = capacity();
	*free = *total - core.devices[sim_device()].memory_used;
	pthread_mutex_unlock(&lock);
}
