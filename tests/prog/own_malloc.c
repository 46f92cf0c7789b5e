/*
 * own_malloc.c: to preload: a malloc as hard on others as any: it must not be entered twice by one thread
 * (jemalloc hangs then), nor before its constructor has run; and what is freed is overwritten.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 16, CHUNK = 64 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;
static char *next, *end;

struct head {
	_Alignas(ALIGN) size_t bytes;
};

static struct head *head_of(void *block)
{
	return (struct head *)block - 1;
}

static void enter(void)
{
	if (inside++) {
		static const char text[] = "malloc was entered twice\n";

		(void)!write(2, text, sizeof(text) - 1);
		_exit(98);
	}
	pthread_mutex_lock(&lock);
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
	inside--;
}

static void *take(size_t bytes, size_t align)
{
	size_t all = bytes + align + sizeof(struct head) + ALIGN;
	void *result = NULL;

	if (all < bytes)
		return errno = ENOMEM, NULL;
	enter();
	if (!next || (size_t)(end - next) < all) {
		size_t room = all > CHUNK ? all : CHUNK;
		char *chunk = mmap(NULL, room, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (chunk != MAP_FAILED) {
			next = chunk;
			end = chunk + room;
		}
	}
	if (next && (size_t)(end - next) >= all) {
		uintptr_t at = ((uintptr_t)next + sizeof(struct head) + align - 1) & -align;

		head_of((void *)at)->bytes = bytes;
		next = (char *)((at + bytes + ALIGN - 1) & -(uintptr_t)ALIGN);
		result = (void *)at;
	} else {
		errno = ENOMEM;
	}
	leave();
	return result;
}

void *malloc(size_t bytes)
{
	return take(bytes, ALIGN);
}

/* Memory is never used again, so what the kernel gave is 0. */
void *calloc(size_t count, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(count, bytes, &all))
		return errno = ENOMEM, NULL;
	return take(all, ALIGN);
}

void free(void *block)
{
	if (!block)
		return;
	enter();
	size_t bytes = head_of(block)->bytes;
	memset(block, 0xdd, bytes < 4096 ? bytes : 4096);
	leave();
}

void *realloc(void *block, size_t bytes)
{
	size_t old = block ? head_of(block)->bytes : 0;
	void *new = take(bytes, ALIGN);

	if (new &&block) {
		memcpy(new, block, old < bytes ? old : bytes);
		free(block);
	}
	return new;
}

void *memalign(size_t align, size_t bytes)
{
	return take(bytes, align < ALIGN ? ALIGN : align);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

int posix_memalign(void **result, size_t align, size_t bytes)
{
	*result = memalign(align, bytes);
	return *result ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *block)
{
	return block ? head_of(block)->bytes : 0;
}
