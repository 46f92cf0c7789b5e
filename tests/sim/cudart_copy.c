/*
 * Copies and sets. Compiled twice, see cudart.h. Copies that involve a cudaArray are not modelled.
 */
#include "cudart.h"

static int column_of(enum cudaMemcpyKind kind)
{
	return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault ? SIM_H2H + (int)kind :
									   SIM_PLAIN;
}

static cudaError_t copy(const struct sim_copy *c, cudaStream_t stream, bool async)
{
	if (c->column == SIM_PLAIN)
		return result(cudaErrorInvalidMemcpyDirection);
	STREAM(s, stream);
	return result(sim_copy(s, c, async));
}

static struct sim_copy linear(void *dst, const void *src, size_t count, int column)
{
	return (struct sim_copy){
		.dst = dst,
		.src = src,
		.width = count,
		.height = 1,
		.depth = 1,
		.column = column,
	};
}

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct sim_copy c = linear(dst, src, count, column_of(kind));

	ENTER_AS(cudaMemcpy, c.column, count);
	return copy(&c, NULL, false);
}

EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
				   enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct sim_copy c = linear(dst, src, count, column_of(kind));

	ENTER_AS(cudaMemcpyAsync, c.column, count);
	return copy(&c, stream, true);
}

static struct sim_copy pitched(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			       size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return (struct sim_copy){
		.dst = dst,
		.src = src,
		.width = width,
		.height = height,
		.depth = 1,
		.dst_pitch = dst_pitch,
		.src_pitch = src_pitch,
		.column = column_of(kind),
	};
}

EXPORT cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
				size_t width, size_t height, enum cudaMemcpyKind kind)
{
	struct sim_copy c = pitched(dst, dst_pitch, src, src_pitch, width, height, kind);

	ENTER_AS(cudaMemcpy2D, c.column, width * height);
	return copy(&c, NULL, false);
}

EXPORT cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
				     size_t width, size_t height, enum cudaMemcpyKind kind,
				     cudaStream_t stream)
{
	struct sim_copy c = pitched(dst, dst_pitch, src, src_pitch, width, height, kind);

	ENTER_AS(cudaMemcpy2DAsync, c.column, width * height);
	return copy(&c, stream, true);
}

static size_t place(const struct cudaPitchedPtr *p, struct cudaPos at)
{
	return at.x + at.y * p->pitch + at.z * p->pitch * p->ysize;
}

static struct sim_copy box(const struct cudaPitchedPtr *dst, struct cudaPos dst_at,
			   const struct cudaPitchedPtr *src, struct cudaPos src_at,
			   struct cudaExtent extent, int column)
{
	return (struct sim_copy){
		.dst = dst->ptr ? (char *)dst->ptr + place(dst, dst_at) : NULL,
		.src = src->ptr ? (const char *)src->ptr + place(src, src_at) : NULL,
		.width = extent.width,
		.height = extent.height,
		.depth = extent.depth,
		.dst_pitch = dst->pitch,
		.src_pitch = src->pitch,
		.dst_slice = dst->pitch * dst->ysize,
		.src_slice = src->pitch * src->ysize,
		.column = column,
	};
}

static size_t volume(const struct sim_copy *c)
{
	return c->width * c->height * c->depth;
}

EXPORT cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	struct sim_copy c =
		box(&p->dstPtr, p->dstPos, &p->srcPtr, p->srcPos, p->extent, column_of(p->kind));

	ENTER_AS(cudaMemcpy3D, c.column, volume(&c));
	return copy(&c, NULL, false);
}

EXPORT cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	struct sim_copy c =
		box(&p->dstPtr, p->dstPos, &p->srcPtr, p->srcPos, p->extent, column_of(p->kind));

	ENTER_AS(cudaMemcpy3DAsync, c.column, volume(&c));
	return copy(&c, stream, true);
}

EXPORT cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	struct sim_copy c = box(&p->dstPtr, p->dstPos, &p->srcPtr, p->srcPos, p->extent, SIM_D2D);

	ENTER_AS(cudaMemcpy3DPeer, c.column, volume(&c));
	return copy(&c, NULL, false);
}

EXPORT cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	struct sim_copy c = box(&p->dstPtr, p->dstPos, &p->srcPtr, p->srcPos, p->extent, SIM_D2D);

	ENTER_AS(cudaMemcpy3DPeerAsync, c.column, volume(&c));
	return copy(&c, stream, true);
}

/* These two have no per-thread form. */
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
EXPORT cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
				  size_t count)
{
	struct sim_copy c = linear(dst, src, count, SIM_D2D);

	(void)dst_device;
	(void)src_device;
	ENTER_AS(cudaMemcpyPeer, c.column, count);
	return copy(&c, NULL, false);
}

EXPORT cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
				       size_t count, cudaStream_t stream)
{
	struct sim_copy c = linear(dst, src, count, SIM_D2D);

	(void)dst_device;
	(void)src_device;
	ENTER_AS(cudaMemcpyPeerAsync, c.column, count);
	return copy(&c, stream, true);
}
#endif

/* The place in a variable, or NULL where there is no such variable or it is too small. */
static char *symbol_place(const void *symbol, size_t count, size_t offset)
{
	size_t size = 0;
	char *address = symbol_address(symbol, &size);

	return address && offset <= size && count <= size - offset ? address + offset : NULL;
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
			     int column, cudaStream_t stream, bool async)
{
	struct sim_copy c = linear(symbol_place(symbol, count, offset), src, count, column);

	return c.dst ? copy(&c, stream, async) : result(cudaErrorInvalidSymbol);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
			       int column, cudaStream_t stream, bool async)
{
	struct sim_copy c = linear(dst, symbol_place(symbol, count, offset), count, column);

	return c.src ? copy(&c, stream, async) : result(cudaErrorInvalidSymbol);
}

EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
				      size_t offset, enum cudaMemcpyKind kind)
{
	ENTER_AS(cudaMemcpyToSymbol, column_of(kind), count);
	return to_symbol(symbol, src, count, offset, column_of(kind), NULL, false);
}

EXPORT cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
					   size_t offset, enum cudaMemcpyKind kind,
					   cudaStream_t stream)
{
	ENTER_AS(cudaMemcpyToSymbolAsync, column_of(kind), count);
	return to_symbol(symbol, src, count, offset, column_of(kind), stream, true);
}

EXPORT cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
					enum cudaMemcpyKind kind)
{
	ENTER_AS(cudaMemcpyFromSymbol, column_of(kind), count);
	return from_symbol(dst, symbol, count, offset, column_of(kind), NULL, false);
}

EXPORT cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
					     size_t offset, enum cudaMemcpyKind kind,
					     cudaStream_t stream)
{
	ENTER_AS(cudaMemcpyFromSymbolAsync, column_of(kind), count);
	return from_symbol(dst, symbol, count, offset, column_of(kind), stream, true);
}

/* One call, many copies: counted as one of kind "default". */
static cudaError_t batch(void *const *dsts, const void *const *srcs, const size_t *sizes,
			 size_t count, cudaStream_t stream)
{
	for (size_t i = 0; i < count; i++) {
		struct sim_copy c = linear(dsts[i], srcs[i], sizes[i], SIM_DEFAULT);
		cudaError_t rc = copy(&c, stream, true);

		if (rc)
			return rc;
	}
	return cudaSuccess;
}

static size_t sum(const size_t *sizes, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += sizes[i];
	return bytes;
}

#if SIM_CUDA == 12
EXPORT cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
					struct cudaMemcpyAttributes *attributes, size_t *indices,
					size_t attribute_count, size_t *failed, cudaStream_t stream)
#else
EXPORT cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
					const size_t *sizes, size_t count,
					struct cudaMemcpyAttributes *attributes, size_t *indices,
					size_t attribute_count, cudaStream_t stream)
#endif
{
	(void)attributes;
	(void)indices;
	(void)attribute_count;
#if SIM_CUDA == 12
	(void)failed;
#endif
	ENTER_AS(cudaMemcpyBatchAsync, SIM_DEFAULT, sum(sizes, count));
	return batch(dsts, (const void *const *)srcs, sizes, count, stream);
}

/* ---- sets ---- */

static cudaError_t set(const struct sim_set *set, cudaStream_t stream)
{
	STREAM(s, stream);
	return result(sim_set(s, set));
}

static struct sim_set bytes_2d(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	return (struct sim_set){
		.dst = dst,
		.width = width,
		.height = height,
		.depth = 1,
		.pitch = pitch,
		.value = (unsigned char)value,
		.size = 1,
	};
}

static struct sim_set bytes_3d(struct cudaPitchedPtr dst, int value, struct cudaExtent extent)
{
	return (struct sim_set){
		.dst = dst.ptr,
		.width = extent.width,
		.height = extent.height,
		.depth = extent.depth,
		.pitch = dst.pitch,
		.slice = dst.pitch * dst.ysize,
		.value = (unsigned char)value,
		.size = 1,
	};
}

EXPORT cudaError_t cudaMemset(void *dst, int value, size_t count)
{
	struct sim_set s = bytes_2d(dst, 0, value, count, 1);

	ENTER_AS(cudaMemset, SIM_PLAIN, count);
	return set(&s, NULL);
}

EXPORT cudaError_t cudaMemsetAsync(void *dst, int value, size_t count, cudaStream_t stream)
{
	struct sim_set s = bytes_2d(dst, 0, value, count, 1);

	ENTER_AS(cudaMemsetAsync, SIM_PLAIN, count);
	return set(&s, stream);
}

EXPORT cudaError_t cudaMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	struct sim_set s = bytes_2d(dst, pitch, value, width, height);

	ENTER_AS(cudaMemset2D, SIM_PLAIN, width * height);
	return set(&s, NULL);
}

EXPORT cudaError_t cudaMemset2DAsync(void *dst, size_t pitch, int value, size_t width,
				     size_t height, cudaStream_t stream)
{
	struct sim_set s = bytes_2d(dst, pitch, value, width, height);

	ENTER_AS(cudaMemset2DAsync, SIM_PLAIN, width * height);
	return set(&s, stream);
}

EXPORT cudaError_t cudaMemset3D(struct cudaPitchedPtr dst, int value, struct cudaExtent extent)
{
	struct sim_set s = bytes_3d(dst, value, extent);

	ENTER_AS(cudaMemset3D, SIM_PLAIN, extent.width * extent.height * extent.depth);
	return set(&s, NULL);
}

EXPORT cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr dst, int value, struct cudaExtent extent,
				     cudaStream_t stream)
{
	struct sim_set s = bytes_3d(dst, value, extent);

	ENTER_AS(cudaMemset3DAsync, SIM_PLAIN, extent.width * extent.height * extent.depth);
	return set(&s, stream);
}
