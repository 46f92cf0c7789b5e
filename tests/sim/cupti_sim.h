/*
 * What the files of the simulated CUPTI share. Compiled once for each major version: cuptiX of
 * libcupti.so.12 gives the records of CUDA 12, that of libcupti.so.13 those of CUDA 13.
 *
 * An exported function never calls another one: a tracer would see a call that no program made.
 */
#ifndef TARE_SIM_CUPTI_H
#define TARE_SIM_CUPTI_H

#include <cupti.h>
#include <pthread.h>
#include "sim.h"

#define EXPORT __attribute__((visibility("default")))

enum { CUPTI_KINDS = 64, CUPTI_RECORD_MAX = 256, CUPTI_CBIDS = 1024, CUPTI_DOMAINS = 3 };

/* By domain: 1 driver, 2 runtime. */
enum { API_FILTER_NONE, API_FILTER_ON, API_FILTER_OFF };

struct cupti {
	pthread_mutex_t lock; /* inside of it: the client's bufferRequested, nothing else of others */
	bool kinds[CUPTI_KINDS];
	uint8_t api_filter[CUPTI_DOMAINS][CUPTI_CBIDS];
	bool system_thread_ids;
	CUpti_BuffersCallbackRequestFunc requested;
	CUpti_BuffersCallbackCompleteFunc completed;
	CUpti_TimestampCallbackFunc timestamp;
	CUpti_CallbackFunc subscriber; /* NULL: none */
	void *subscriber_data;
	bool callbacks[CUPTI_DOMAINS][CUPTI_CBIDS];
	size_t dropped;
};

extern struct cupti cupti;

/* Whether somebody wants API records, or callbacks, of that call. */
bool cupti_wants_api(unsigned domain, unsigned cbid);

/* The name of a callback, as "cudaMalloc_v3020", and the id of a function; 0: none. */
const char *cupti_callback_name(unsigned domain, unsigned cbid);
unsigned cupti_cbid(unsigned domain, const char *function);

/* Now, by the client's clock. */
uint64_t cupti_stamp(void);

/* The client's clock is another one from now on. */
void cupti_clock_changed(void);

/* Bytes of a record of that kind; 0: unknown. */
size_t cupti_record_bytes(unsigned kind);

/* With the lock held. A record of the calling thread's. */
void cupti_add_host_record(const void *record, size_t bytes);
/* From the core, which holds its own lock: what the device does, or will have done. */
void cupti_activity(const struct sim_activity *activity);
/* Moves what is complete to buffers; also those that are not full are delivered. */
void cupti_flush(bool forced);
void cupti_worker_start(void);

#endif
