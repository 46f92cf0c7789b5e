/*
 * What the stand-ins for the math libraries share. stub.c is compiled once for each library with
 * the list of its names that gen_stubs.py wrote; stub_<library>.c and stub_<library>_*.c, where
 * there are any, hold the bodies that the general rules cannot give. None includes a header of the
 * library: the functions are seen as machine code sees them, as integer arguments in order.
 *
 * An exported function never calls another one: a tracer would see a call that no program made.
 */
#ifndef TARE_SIM_STUB_H
#define TARE_SIM_STUB_H

#include "sim.h"

#define EXPORT __attribute__((visibility("default")))

enum {
#define FN(name, kind, first, last) FN_##name,
#include SIM_NAMES
#undef FN
	FN_COUNT
};

extern struct sim_library stub_library;

/* What a library's create functions return: all that is known of a handle is its stream. */
struct stub_handle {
	unsigned magic;
	void *stream;
};

struct stub_handle *stub_handle_new(void);
/* A larger one, zeroed, that begins with a struct stub_handle. */
void *stub_handle_sized(size_t size);

/* A body that gen_stubs.py did not find in torch's imports must be listed all the same: BODY. */
#define BODY(type, name) EXPORT type name
#define COUNT(name)      sim_call(&stub_library, FN_##name, SIM_PLAIN, 0)

/* Device time for a call of this function on the stream. touched: see sim_launch. */
int stub_work(unsigned function, void *stream, const struct sim_touched *touched);

#endif
