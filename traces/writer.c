/*
 * writer.c: creates the trace file, maps its live blocks, and appends finished frames.
 *
 * Runs inside the traced process, see writer.h. No descriptor stays open: each write opens the file,
 * checks that it is still ours, appends with one write and closes it, so that a program that closes
 * or reuses descriptors can never make us write into a file of its own.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "traces/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#include "traces/crc32c.h"

/*
 * Times repeat so little that looking for it is not worth it: at this level zstd hardly does, and packs
 * the bytes alone. Level 1 for both would make blocks 3 % smaller and take half as long again.
 * A window as small as this costs 0.3 % of the size and saves 120 KB a thread.
 */
#define ZSTD_LEVEL_TIMES -32
#define ZSTD_LEVEL_IDS   1
#define ZSTD_WINDOW_LOG  15
#define ZSTD_HASH_LOG    13
#define LIVE_FRAME_BYTES (sizeof(struct trace_frame) + TRACE_PAGE + TRACE_SLOT_BYTES)
#define LARGEST(a, b)    ((a) > (b) ? (a) : (b))
#define SCRATCH_BYTES                                                                              \
	(sizeof(struct trace_frame) +                                                              \
	 LARGEST(ZSTD_COMPRESSBOUND(TRACE_TIMES_ROOM) + ZSTD_COMPRESSBOUND(TRACE_IDS_ROOM),        \
		 ZSTD_COMPRESSBOUND(TRACE_DEFS_ROOM)))

/*
 * Private memory of a slot: the buffer, the scratch space, the compressor's context, which takes 181 144
 * bytes with zstd 1.5.4. With less than it wants blocks would be written uncompressed.
 */
#define ZSTD_BYTES            (192u << 10)
#define BUFFER_SCRATCH_OFFSET ((sizeof(struct trace_buffer) + 63) / 64 * 64)
#define BUFFER_ZSTD_OFFSET    ((BUFFER_SCRATCH_OFFSET + SCRATCH_BYTES + 63) / 64 * 64)
#define BUFFER_BYTES          (BUFFER_ZSTD_OFFSET + ZSTD_BYTES)

_Static_assert(offsetof(struct trace_buffer, others) < 64, "one cache line");
_Static_assert(sizeof(struct trace_live) <= 256 &&
		       256 + TRACE_TIMES_ROOM + TRACE_IDS_ROOM + TRACE_DEFS_ROOM <=
			       TRACE_SLOT_BYTES,
	       "the areas fit into a slot");

/* What the kernel itself tells the time by. */
#define CLOCK_SOURCE_PATH "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static const uint8_t zero_page[TRACE_PAGE];

/* By system call: libc's own are cancellation points, and a thread must not be cancelled in here. */
static int sys_open(const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static ssize_t sys_writev(int fd, const struct iovec *pieces, int count)
{
	return syscall(SYS_writev, fd, pieces, count);
}

static void sys_close(int fd)
{
	syscall(SYS_close, fd);
}

bool trace_limit_allows(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	       bytes <= limit.rlim_cur;
}

/*
 * Opens the file for appending, in *fd_p, where it is still the one that was created and has room
 * for `more` bytes. Returns 0, EAGAIN where it may work again later, or -1 where recording stopped.
 */
static int file_open_append(struct trace_file *file, uint64_t more, int flags, int *fd_p)
{
	struct stat status;
	int fd;

	if (file->stop_at_ns && machine_clock_ns(CLOCK_MONOTONIC) >= file->stop_at_ns)
		trace_file_stop(file, TRACE_STOP_DURATION, 0);
	if (trace_file_stopped(file))
		return -1;
	fd = sys_open(file->path, flags | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EINTR))
		return EAGAIN;
	if (fd < 0 || fstat(fd, &status) != 0 || status.st_dev != file->device ||
	    status.st_ino != file->inode) {
		trace_file_stop(file, TRACE_STOP_FILE_GONE, fd < 0 ? errno : 0);
	} else {
		/* Counted before it is written: the file's size does not tell what other threads are about to append. */
		uint64_t bytes = __atomic_add_fetch(&file->bytes, more, __ATOMIC_RELAXED);

		if (bytes > file->max_bytes) {
			trace_file_stop(file, TRACE_STOP_MAX_BYTES, 0);
		} else if (!trace_limit_allows(LARGEST(bytes, (uint64_t)status.st_size + more))) {
			trace_file_stop(file, TRACE_STOP_FILE_LIMIT, 0);
		} else {
			*fd_p = fd;
			return 0;
		}
	}
	if (fd >= 0)
		sys_close(fd);
	return -1;
}

/* Appends with one write. A short write leaves a broken frame behind: nothing may follow it. */
static bool file_append(struct trace_file *file, int fd, const struct iovec *pieces, int count)
{
	ssize_t total = 0;

	for (int i = 0; i < count; i++)
		total += (ssize_t)pieces[i].iov_len;
	ssize_t written = sys_writev(fd, pieces, count);
	if (written == total)
		return true;
	trace_file_stop(file, TRACE_STOP_WRITE, written < 0 ? errno : ENOSPC);
	return false;
}

int trace_file_create(struct trace_file *file, const char *path, struct trace_clock_pair load)
{
	char text[2 * TRACE_PAGE];
	size_t text_bytes = trace_descriptor_text(text, sizeof(text));
	size_t length = strlen(path);
	int saved_errno = errno, error = 0;
	struct stat status;

	_Static_assert(sizeof(struct trace_header) <= TRACE_PAGE, "one page");
	if (length >= sizeof(file->path) || text_bytes > sizeof(text))
		return ENAMETOOLONG;
	memcpy(file->path, path, length + 1);
	if (file->clock_is_tsc && !trace_ticks_trusted(CLOCK_SOURCE_PATH)) {
		file->clock_is_tsc = false;
		file->clock_shift = 0;
	}
	if (!file->clock_is_tsc)
		load.units = load.monotonic_ns;
	struct trace_header header = {
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_bytes = TRACE_PAGE + sizeof(text),
		.descriptor_bytes = (uint32_t)text_bytes,
		.descriptor_crc = crc32c(0, text, text_bytes),
		.clock = file->clock_is_tsc ? TRACE_CLOCK_TSC : TRACE_CLOCK_MONOTONIC,
		.clock_shift = file->clock_shift,
		.pid = (uint32_t)getpid(),
		.parent_pid = (uint32_t)getppid(),
		.start_realtime_ns = machine_clock_ns(CLOCK_REALTIME),
		.load = load,
		.open = trace_clock_pair(file),
	};
	header.crc = crc32c(0, &header, offsetof(struct trace_header, crc));
	memset(text + text_bytes, 0, sizeof(text) - text_bytes);
	if (!trace_limit_allows(header.header_bytes + 4 * LIVE_FRAME_BYTES))
		return EFBIG;

	int fd = sys_open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0) {
		error = errno;
		goto out;
	}
	struct iovec pieces[] = {
		{ &header, sizeof(header) },
		{ (void *)zero_page, TRACE_PAGE - sizeof(header) },
		{ text, sizeof(text) },
	};
	ssize_t written = sys_writev(fd, pieces, 3);
	void *page = MAP_FAILED;
	if (written != (ssize_t)header.header_bytes)
		error = written < 0 ? errno : ENOSPC;
	else if (fstat(fd, &status) != 0 || (page = mmap(NULL, TRACE_PAGE, PROT_READ | PROT_WRITE,
							 MAP_SHARED, fd, 0)) == MAP_FAILED)
		error = errno;
	if (error) {
		unlink(path);
	} else {
		file->header = page;
		file->device = status.st_dev;
		file->inode = status.st_ino;
		file->bytes = header.header_bytes;
	}
	sys_close(fd);
out:
	errno = saved_errno;
	return error;
}

void trace_file_forget(struct trace_file *file)
{
	int saved_errno = errno;

	for (uint32_t i = 0; i < file->slot_count; i++) {
		struct trace_buffer *buffer = file->slots[i];

		if (buffer) {
			munmap(buffer->mapping, TRACE_SLOT_BYTES);
			munmap(buffer, BUFFER_BYTES);
		}
	}
	if (file->header)
		munmap(file->header, TRACE_PAGE);
	memset(file->slots, 0, file->slot_count * sizeof(*file->slots));
	memset(file->slots_taken, 0, file->slot_count * sizeof(*file->slots_taken));
	file->slot_count = file->threads = 0;
	file->header = NULL;
	errno = saved_errno;
}

/* In place of what was shared. It cannot fail for want of room, and if it does, so will the child. */
static void make_private(void *address, size_t bytes)
{
	mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
}

void trace_file_disown(struct trace_file *file)
{
	int saved_errno = errno;

	for (uint32_t i = 0; i < file->slot_count; i++) {
		struct trace_buffer *buffer = file->slots[i];

		if (buffer) {
			make_private(buffer->mapping, TRACE_SLOT_BYTES);
			buffer->stopped = true;
		}
	}
	if (file->header) {
		make_private(file->header, TRACE_PAGE);
		file->header->stopped = TRACE_STOP_FILE_GONE;
	}
	errno = saved_errno;
}

void trace_file_stop(struct trace_file *file, enum trace_stop reason, int error)
{
	uint32_t none = TRACE_STOP_NONE;

	if (!__atomic_compare_exchange_n(&file->header->stopped, &none, reason, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	file->header->stop_errno = (uint32_t)error;
	file->header->end = trace_clock_pair(file);
}

void trace_file_end(struct trace_file *file, enum trace_end how)
{
	file->header->end = trace_clock_pair(file);
	file->header->ended = how;
}

void trace_file_lost(struct trace_file *file, uint64_t events)
{
	__atomic_add_fetch(&file->header->lost_events, events, __ATOMIC_RELAXED);
}

void trace_file_unseen(struct trace_file *file)
{
	trace_file_lost(file, 1);
	__atomic_add_fetch(&file->header->unseen_threads, 1, __ATOMIC_RELAXED);
}

/* A compressor in `memory` of ZSTD_BYTES, or NULL. */
static ZSTD_CCtx *compressor(void *memory)
{
	ZSTD_CCtx *zstd = ZSTD_initStaticCCtx(memory, ZSTD_BYTES);

	if (!zstd ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(zstd, ZSTD_c_literalCompressionMode, ZSTD_ps_enable)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, ZSTD_WINDOW_LOG)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_hashLog, ZSTD_HASH_LOG)))
		return NULL;
	return zstd;
}

/* Compresses `bytes` to `out`; returns 0 where there are none, or more than `room` where it failed. */
static size_t compress(struct trace_buffer *buffer, int level, uint8_t *out, size_t room,
		       const uint8_t *in, size_t bytes)
{
	if (!bytes)
		return 0;
	if (!buffer->zstd)
		return SIZE_MAX / 2;
	ZSTD_CCtx_setParameter(buffer->zstd, ZSTD_c_compressionLevel, level);
	size_t packed = ZSTD_compress2(buffer->zstd, out, room, in, bytes);
	return ZSTD_isError(packed) ? SIZE_MAX / 2 : packed;
}

/*
 * Puts a frame of one or two streams together in the scratch space. Both are compressed or neither.
 * Returns its length.
 */
static size_t frame_build(struct trace_buffer *buffer, struct trace_frame *frame,
			  const uint8_t *times, const uint8_t *ids)
{
	uint8_t *payload = buffer->scratch + sizeof(*frame);
	size_t room = SCRATCH_BYTES - sizeof(*frame);
	size_t packed_ids = SIZE_MAX / 2, packed_times = compress(buffer, ZSTD_LEVEL_TIMES, payload,
								  room, times, frame->times_bytes);

	if (packed_times <= room)
		packed_ids = compress(buffer, ZSTD_LEVEL_IDS, payload + packed_times,
				      room - packed_times, ids, frame->ids_bytes);
	frame->codec = TRACE_CODEC_ZSTD;
	if (packed_times + packed_ids >= (size_t)frame->times_bytes + frame->ids_bytes) {
		frame->codec = TRACE_CODEC_RAW;
		packed_times = frame->times_bytes;
		packed_ids = frame->ids_bytes;
		if (times)
			memcpy(payload, times, packed_times);
		memcpy(payload + packed_times, ids, packed_ids);
	}
	frame->sync = TRACE_FRAME_SYNC;
	frame->times_packed = (uint32_t)packed_times;
	frame->bytes = (uint32_t)(sizeof(*frame) + packed_times + packed_ids);
	frame->clock = trace_clock_pair(buffer->file);
	frame->crc = 0;
	frame->crc = crc32c(crc32c(0, frame, sizeof(*frame)), payload, packed_times + packed_ids);
	memcpy(buffer->scratch, frame, sizeof(*frame));
	return frame->bytes;
}

/* Appends a frame that lies in memory. Returns false where it was not written. */
static bool frame_append(struct trace_file *file, void *frame, size_t bytes)
{
	struct iovec piece = { frame, bytes };
	int fd;

	if (file_open_append(file, bytes, O_WRONLY, &fd) != 0)
		return false;
	bool written = file_append(file, fd, &piece, 1);
	sys_close(fd);
	return written;
}

/* A new, empty block. Order: lengths first, see struct trace_live. */
static void block_start(struct trace_buffer *buffer, uint64_t block)
{
	struct trace_live *live = buffer->live;

	__atomic_store_n(&live->lengths, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&live->thread, buffer->thread, __ATOMIC_RELEASE);
	__atomic_store_n(&live->depth, buffer->depth, __ATOMIC_RELEASE);
	__atomic_store_n(&live->first_time, buffer->last_time, __ATOMIC_RELEASE);
	__atomic_store_n(&live->block, block, __ATOMIC_RELEASE);
	buffer->time_next = buffer->times;
	buffer->id_next = trace_ids(buffer);
	buffer->events = 0;
}

/* Leaves the live block as it is and lets all further puts go to memory that nobody reads. */
static void buffer_stop(struct trace_buffer *buffer)
{
	buffer->stopped = true;
	buffer->live = &buffer->sink;
	buffer->times = buffer->scratch;
	block_start(buffer, 0);
}

/* Writes the block; what cannot be written now is lost and counted. */
static void block_write(struct trace_buffer *buffer)
{
	static const char no_descriptor[] = "the process had no file descriptor left";
	struct trace_live *live = buffer->live;
	struct trace_frame frame = {
		.type = TRACE_FRAME_EVENTS,
		.thread = buffer->thread,
		.block = live->block,
		.first_time = live->first_time,
		.depth = live->depth,
		.events = buffer->events,
		.times_bytes = (uint32_t)(buffer->time_next - buffer->times),
		.ids_bytes = (uint32_t)(buffer->id_next - trace_ids(buffer)),
	};

	if (!buffer->events)
		return;
	size_t bytes = frame_build(buffer, &frame, buffer->times, trace_ids(buffer));
	if (!frame_append(buffer->file, buffer->scratch, bytes)) {
		if (trace_file_stopped(buffer->file)) {
			buffer_stop(buffer);
			return;
		}
		trace_file_lost(buffer->file, buffer->events);
		trace_define(buffer, TRACE_RECORD_LOST,
			     &(struct record_LOST){
				     .thread = buffer->thread,
				     .events = buffer->events,
				     .reason = { no_descriptor, sizeof(no_descriptor) - 1 },
			     });
	}
	block_start(buffer, live->block + 1);
}

uint64_t trace_buffer_long_step(struct trace_buffer *buffer, uint64_t step)
{
	struct trace_file *file = buffer->file;

	if ((int64_t)step < 0) {
		__atomic_add_fetch(&file->header->negative_steps, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (buffer->stopped)
		return step;
	if (file->stop_at_ns && machine_clock_ns(CLOCK_MONOTONIC) >= file->stop_at_ns)
		trace_file_stop(file, TRACE_STOP_DURATION, 0);
	if (trace_file_stopped(file))
		buffer_stop(buffer);
	return step;
}

void trace_buffer_flush(struct trace_buffer *buffer)
{
	int saved_errno = errno;
	uint64_t start = trace_now(buffer->file);

	if (buffer->stopped) {
		block_start(buffer, 0);
	} else if (buffer->others) {
		block_write(buffer);
	} else {
		block_write(buffer);
		trace_put_event(buffer, start, TRACE_TARE, (const uint64_t[]){ 1 }, 1);
		trace_put_event(buffer, trace_now(buffer->file), TRACE_LEAVE,
				(const uint64_t[]){ 0 }, 1);
	}
	errno = saved_errno;
}

/* The next slot's number; false: there are enough. */
static bool slot_number(struct trace_file *file, uint32_t *number_p)
{
	uint32_t count = __atomic_load_n(&file->slot_count, __ATOMIC_RELAXED);

	while (count < TRACE_SLOTS_MAX)
		if (__atomic_compare_exchange_n(&file->slot_count, &count, count + 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			*number_p = count;
			return true;
		}
	return false;
}

/* Allocates a slot: a LIVE frame at the end of the file, mapped, and private working memory. */
static struct trace_buffer *slot_create(struct trace_file *file)
{
	struct trace_frame frame = {
		.sync = TRACE_FRAME_SYNC,
		.bytes = LIVE_FRAME_BYTES,
		.type = TRACE_FRAME_LIVE,
		.clock = trace_clock_pair(file),
	};
	struct iovec pieces[2 + TRACE_SLOT_BYTES / TRACE_PAGE] = { { &frame, sizeof(frame) } };
	int fd;

	if (__atomic_load_n(&file->slot_count, __ATOMIC_RELAXED) >= TRACE_SLOTS_MAX)
		return NULL;
	frame.crc = crc32c(0, &frame, sizeof(frame));
	for (unsigned i = 1; i < sizeof(pieces) / sizeof(*pieces); i++)
		pieces[i] = (struct iovec){ (void *)zero_page, TRACE_PAGE };
	if (file_open_append(file, LIVE_FRAME_BYTES, O_RDWR, &fd) != 0)
		return NULL;
	if (!file_append(file, fd, pieces, sizeof(pieces) / sizeof(*pieces))) {
		sys_close(fd);
		return NULL;
	}
	/* This descriptor's own position: the end of what it has just appended. */
	off_t frame_start = lseek(fd, 0, SEEK_CUR) - (off_t)LIVE_FRAME_BYTES;
	off_t start = (frame_start + (off_t)sizeof(frame) + TRACE_PAGE - 1) &
		      ~(off_t)(TRACE_PAGE - 1);
	void *live = mmap(NULL, TRACE_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);
	int error = errno;
	sys_close(fd);
	struct trace_buffer *buffer = MAP_FAILED;
	if (live != MAP_FAILED) {
		buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		error = errno;
	}
	if (buffer == MAP_FAILED) {
		if (live != MAP_FAILED)
			munmap(live, TRACE_SLOT_BYTES);
		trace_file_stop(file, TRACE_STOP_MAP, error);
		return NULL;
	}
	buffer->file = file;
	buffer->live = buffer->mapping = live;
	buffer->times = (uint8_t *)live + 256;
	buffer->defs = trace_ids(buffer) + TRACE_IDS_ROOM;
	buffer->scratch = (uint8_t *)buffer + BUFFER_SCRATCH_OFFSET;
	buffer->zstd = compressor((uint8_t *)buffer + BUFFER_ZSTD_OFFSET);
	if (!slot_number(file, &buffer->slot)) {
		munmap(live, TRACE_SLOT_BYTES);
		munmap(buffer, BUFFER_BYTES);
		return NULL;
	}
	struct trace_live *header = live;
	header->slot = buffer->slot;
	header->times_offset = (uint32_t)(buffer->times - (uint8_t *)live);
	header->times_room = TRACE_TIMES_ROOM;
	header->ids_offset = (uint32_t)(trace_ids(buffer) - (uint8_t *)live);
	header->ids_room = TRACE_IDS_ROOM;
	header->defs_offset = (uint32_t)(buffer->defs - (uint8_t *)live);
	header->defs_room = TRACE_DEFS_ROOM;
	__atomic_store_n(&header->magic, TRACE_LIVE_MAGIC, __ATOMIC_RELEASE);
	file->slots_taken[buffer->slot] = 1;
	__atomic_store_n(&file->slots[buffer->slot], buffer, __ATOMIC_RELEASE);
	return buffer;
}

/* A slot that no thread has now, or a new one. */
static struct trace_buffer *slot_take(struct trace_file *file)
{
	uint32_t count = __atomic_load_n(&file->slot_count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count; i++) {
		struct trace_buffer *buffer = __atomic_load_n(&file->slots[i], __ATOMIC_ACQUIRE);

		if (buffer && !__atomic_exchange_n(&file->slots_taken[i], 1, __ATOMIC_ACQUIRE)) {
			if (!buffer->stopped)
				return buffer;
			__atomic_store_n(&file->slots_taken[i], 0, __ATOMIC_RELEASE);
		}
	}
	return slot_create(file);
}

static struct trace_buffer *acquire(struct trace_file *file, uint32_t depth, uint32_t tid,
				    const char *name, uint64_t first_time)
{
	struct trace_buffer *buffer = trace_file_stopped(file) ? NULL : slot_take(file);

	if (buffer) {
		buffer->thread = __atomic_add_fetch(&file->threads, 1, __ATOMIC_RELAXED);
		buffer->depth = depth;
		buffer->last_time = first_time;
		block_start(buffer, 0);
		trace_define(buffer, TRACE_RECORD_THREAD,
			     &(struct record_THREAD){
				     .thread = buffer->thread,
				     .tid = tid,
				     .start = buffer->last_time,
				     .depth = depth,
				     .name = { name, (uint32_t)strlen(name) },
			     });
	}
	return buffer;
}

struct trace_buffer *trace_buffer_acquire(struct trace_file *file, uint32_t depth)
{
	int saved_errno = errno;
	char name[17] = "";
	struct trace_buffer *buffer;

	prctl(PR_GET_NAME, name);
	buffer = acquire(file, depth, (uint32_t)syscall(SYS_gettid), name, trace_now(file));
	if (buffer)
		buffer->others = false;
	errno = saved_errno;
	return buffer;
}

struct trace_buffer *trace_buffer_acquire_others(struct trace_file *file, const char *name,
						 uint64_t first_time)
{
	int saved_errno = errno;
	struct trace_buffer *buffer = acquire(file, 0, 0, name, first_time);

	if (buffer)
		buffer->others = true;
	errno = saved_errno;
	return buffer;
}

void trace_buffer_release(struct trace_buffer *buffer)
{
	int saved_errno = errno;

	if (!buffer->stopped)
		block_write(buffer);
	if (!buffer->stopped) {
		buffer->thread = 0;
		block_start(buffer, 0);
	}
	__atomic_store_n(&buffer->file->slots_taken[buffer->slot], 0, __ATOMIC_RELEASE);
	errno = saved_errno;
}

/* Writes the collected records as a frame. Returns false where they have to stay. */
static bool defs_write(struct trace_buffer *buffer)
{
	struct trace_live *live = buffer->mapping;
	struct trace_frame frame = {
		.type = TRACE_FRAME_DEFS,
		.thread = buffer->slot,
		.block = live->defs_block,
		.ids_bytes = (uint32_t)live->defs_bytes,
	};

	size_t bytes = frame_build(buffer, &frame, NULL, buffer->defs);
	if (!frame_append(buffer->file, buffer->scratch, bytes))
		return false;
	__atomic_store_n(&live->defs_bytes, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&live->defs_block, live->defs_block + 1, __ATOMIC_RELEASE);
	return true;
}

/* A record that no block can hold: a frame of its own, from memory mapped for it. */
static bool define_large(struct trace_buffer *buffer, unsigned type, const void *record,
			 size_t bytes)
{
	struct trace_live *live = buffer->mapping;
	size_t total = sizeof(struct trace_frame) + bytes;

	if (bytes > TRACE_RECORD_BYTES_MAX || (live->defs_bytes && !defs_write(buffer)))
		return false;
	uint8_t *space =
		mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (space == MAP_FAILED)
		return false;
	struct trace_frame frame = {
		.sync = TRACE_FRAME_SYNC,
		.bytes = (uint32_t)total,
		.type = TRACE_FRAME_DEFS,
		.codec = TRACE_CODEC_RAW,
		.thread = buffer->slot,
		.block = live->defs_block,
		.ids_bytes = (uint32_t)bytes,
		.clock = trace_clock_pair(buffer->file),
	};
	trace_record_encode(type, record, space + sizeof(frame));
	frame.crc = crc32c(crc32c(0, &frame, sizeof(frame)), space + sizeof(frame), bytes);
	memcpy(space, &frame, sizeof(frame));
	bool written = frame_append(buffer->file, space, total);
	munmap(space, total);
	if (written)
		__atomic_store_n(&live->defs_block, live->defs_block + 1, __ATOMIC_RELEASE);
	return written;
}

bool trace_define(struct trace_buffer *buffer, unsigned type, const void *record)
{
	struct trace_live *live = buffer->mapping;
	size_t bytes = trace_record_bytes(type, record);
	int saved_errno = errno;
	bool kept = false;

	if (buffer->stopped)
		return false;
	if (bytes > TRACE_DEFS_ROOM) {
		kept = define_large(buffer, type, record, bytes);
	} else if (live->defs_bytes + bytes <= TRACE_DEFS_ROOM || defs_write(buffer)) {
		trace_record_encode(type, record, buffer->defs + live->defs_bytes);
		__atomic_store_n(&live->defs_bytes, live->defs_bytes + bytes, __ATOMIC_RELEASE);
		kept = true;
	}
	/* Nothing may follow that names what is not defined. */
	if (!kept && trace_file_stopped(buffer->file))
		buffer_stop(buffer);
	else if (!kept)
		trace_file_lost(buffer->file, 1);
	errno = saved_errno;
	return kept;
}
