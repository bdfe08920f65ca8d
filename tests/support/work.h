/*
 * support/work.h - writers whose every write can be told from its name alone,
 * and the check that an array is the replay of such writes.
 *
 * Write number `seq` of writer `writer` always has the same parts and cells,
 * made from the seed of the work. Its message in the history is its name, so
 * that afterwards each version can be replayed, also if its writer did not
 * live to say what became of it. Writers keep a log: a line before each write
 * and one after it, which no kill can take back.
 */
#ifndef SUPPORT_WORK_H
#define SUPPORT_WORK_H

#include <pyramid/pyramid.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORK_MAX_PARTS = 4 };

typedef struct work {
    uint64_t seed;
    char array[32];
    int ndim;
    uint64_t shape[PYR_MAX_DIMS], chunk[PYR_MAX_DIMS];
    pyr_type type;      /* of integers */
    pyr_codec codec;
    bool large; /* no part is small */
} work;

/* One of a few works that differ in shape, type and codec. Fragments of those
 * before WORK_LARGE are small and stored with their version; every part of
 * that one is of 200 KB or more, which go into a segment. */
enum { WORK_LARGE = 3, WORK_SAMPLES };
work work_sample(int which, uint64_t seed);
size_t work_bytes(const work *k); /* of a snapshot */
int work_create(const work *k, pyr_store *store, pyr_array **array);

typedef struct work_item {
    size_t n;
    pyr_part parts[WORK_MAX_PARTS];
    uint64_t offset[WORK_MAX_PARTS][PYR_MAX_DIMS];
    uint64_t size[WORK_MAX_PARTS][PYR_MAX_DIMS];
    uint64_t count[WORK_MAX_PARTS][PYR_MAX_DIMS];
    uint64_t stride[WORK_MAX_PARTS][PYR_MAX_DIMS];
    char message[32];
} work_item;

void work_item_make(const work *k, uint32_t writer, uint32_t seq,
                    work_item *out);
void work_item_fini(work_item *item);

/* One line of a log. */
typedef struct work_line {
    uint32_t writer, seq;
    uint32_t over;      /* 0: begins, 1: has ended */
    uint32_t unseen;    /* it waited, but was not published when it ended */
    int32_t err;
    uint64_t version;
    int64_t from_ns, to_ns;
} work_line;

/* How a writer goes about it. */
typedef struct work_order {
    const char *logs;   /* directory of logs */
    uint32_t writer;
    uint32_t first, n;  /* writes number first to first + n - 1 */
    int64_t until_ns;   /* begin no second one after this; 0: no limit */
    uint32_t nowait;    /* every so-many-th write does not wait; 0: none */
    bool batch;         /* some writes are batches */
    int retries;        /* after PYR_EFENCED, under the next number */
} work_order;

/* Carry it out. 0, or the first failure that was not expected; the text is
 * in pyr_errmsg(). */
int work_write(const work *k, pyr_array *array, const work_order *order);

typedef struct work_report {
    char text[400];     /* what is wrong, if the check failed */
    uint64_t versions;  /* published */
    uint64_t nothing;   /* of kind PYR_KIND_NOTHING */
    uint64_t acked;     /* writes that returned 0 */
    uint64_t unsure;    /* writes that did not return */
    uint64_t landed;    /* of the unsure: in the history all the same */
    uint64_t fenced;    /* writes that returned PYR_EFENCED */
} work_report;

/*
 * True if the array is the replay, in the order of versions, of the writes in
 * its history; versions have no gaps; each write is in it at most once; each
 * acknowledged one is, with the version and parts that its writer was told of;
 * failed ones are not; and one that began after another had returned has the
 * higher version. Statistics and last changes are asked for now and then.
 * `every`: compare the cells of each so-many-th version.
 */
bool work_check(const work *k, pyr_array *array, const char *logs,
                unsigned every, work_report *out);

#endif
