/*
 * bench/ceph.c - a store on a Ceph cluster beside plain librados: the same
 * pool, the same sizes, the same number of requests in the air.
 *
 *   bench-ceph [--quick] rados://POOL?conf=FILE&user=NAME
 *
 * Chunks of 1 MiB, written and read; a function of all cells, by pyr_compute()
 * and by a client that reads, computes and writes back, and a reduction
 * likewise, with the bytes that passed the client's sockets; the steps of a
 * version manager, and whole versions of one cell, beside the bare rate of a
 * method that changes one object. Both sides take turns, and what is shown are
 * medians of the ratios of turns.
 */
#include "common.h"

#include <rados/librados.h>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, DEPTH = 16 };

static char url[4096], pool[256], conf[1024], user[256];
static rados_t cluster;
static rados_ioctx_t io;

/* Bytes that passed our TCP sockets so far. */
static uint64_t
socket_bytes(void)
{
    uint64_t n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct tcp_info info = {0};
        socklen_t size = sizeof info;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
            n += info.tcpi_bytes_acked + info.tcpi_bytes_received;
    }
    return n;
}

/* --- the cluster --------------------------------------------------------- */

/* What stands after `key` in the URL, up to the next of `ends`. */
static void
part_of(const char *key, const char *ends, char *to, size_t size)
{
    const char *at = strstr(url, key);
    to[0] = 0;
    if (at) {
        at += strlen(key);
        snprintf(to, size, "%.*s", (int)strcspn(at, ends), at);
    }
}

static void
connect_plain(void)
{
    part_of("rados://", "/?", pool, sizeof pool);
    part_of("conf=", "&", conf, sizeof conf);
    part_of("user=", "&", user, sizeof user);
    CHECK(rados_create(&cluster, user[0] ? user : NULL) == 0);
    CHECK(rados_conf_read_file(cluster, conf[0] ? conf : NULL) == 0);
    CHECK(rados_connect(cluster) == 0);
    CHECK(rados_ioctx_create(cluster, pool, &io) == 0);
    rados_ioctx_set_namespace(io, "bench-plain");
}

static char space[128]; /* of the newest store */

/* A store in a namespace that was never used. */
static pyr_store *
fresh_store(void)
{
    static int number;
    char name[4400];
    size_t stem = strcspn(url, "?");
    pyr_store *store;
    snprintf(space, sizeof space, "bench-%d-%d-%ld", (int)getpid(), number++,
             (long)time(NULL));
    snprintf(name, sizeof name, "%.*s/%s%s", (int)stem, url, space,
             url + stem);
    OK(pyr_open(name, PYR_OPEN_CREATE, &store));
    return store;
}

/* --- plain objects ------------------------------------------------------- */

/* n objects of a chunk each, DEPTH at a time; seconds. */
static double
plain(bool write, char *buf, int n, int round)
{
    rados_completion_t wait[DEPTH] = {NULL};
    bench_time start = bench_now();
    for (int i = 0; i < n + DEPTH; i++) {
        int slot = i % DEPTH;
        if (wait[slot]) {
            rados_aio_wait_for_complete(wait[slot]);
            CHECK(rados_aio_get_return_value(wait[slot]) >= 0);
            rados_aio_release(wait[slot]);
            wait[slot] = NULL;
        }
        if (i >= n)
            continue;
        char oid[64];
        char *at = buf + (size_t)i * CHUNK;
        snprintf(oid, sizeof oid, "plain.%d.%d", round, i);
        rados_aio_create_completion2(NULL, NULL, &wait[slot]);
        CHECK((write ? rados_aio_write_full(io, oid, wait[slot], at, CHUNK)
                     : rados_aio_read(io, oid, wait[slot], at, CHUNK, 0)) ==
              0);
    }
    return bench_since(start).wall;
}

static void
remove_plain(int n, int round)
{
    for (int i = 0; i < n; i++) {
        char oid[64];
        snprintf(oid, sizeof oid, "plain.%d.%d", round, i);
        rados_remove(io, oid);
    }
}

/* --- bulk ---------------------------------------------------------------- */

static pyr_array *
array_of(pyr_store *store, const char *name, int chunks)
{
    pyr_array *array;
    uint64_t shape = (uint64_t)chunks * CHUNK / 4, chunk = CHUNK / 4;
    OK(pyr_create(store, name,
                  &(pyr_spec){.ndim = 1, .shape = &shape, .chunk = &chunk,
                              .type = PYR_F32},
                  &array));
    return array;
}

static void
fill_cells(float *cells, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        cells[i] = (float)(bench_random(&seed) % 1000000) / 7;
}

/* The sum of squares, by a client and where the cells are; seconds. */
static double
reduce_here(pyr_array *a, float *got, size_t n)
{
    uint64_t zero = 0, size = n;
    double sum = 0;
    bench_time start = bench_now();
    OK(pyr_read(a, 1, &zero, &size, got));
    for (size_t i = 0; i < n; i++)
        sum += (double)got[i] * got[i];
    double wall = bench_since(start).wall;
    CHECK(sum > 0);
    return wall;
}

static double
reduce_there(pyr_array *a, size_t n)
{
    uint64_t zero = 0, size = n;
    pyr_value v;
    bench_time start = bench_now();
    OK(pyr_reduce(a, 1, &zero, &size, "sum(x * x)", &v));
    double wall = bench_since(start).wall;
    CHECK(v.real > 0);
    return wall;
}

static void
bulk(int chunks, int rounds)
{
    size_t n = (size_t)chunks * CHUNK / 4;
    float *cells = malloc(n * 4), *got = malloc(n * 4);
    uint64_t zero = 0, size = n;
    bench_sample pw = {0}, pr = {0}, w = {0}, r = {0}, c = {0}, rcw = {0};
    bench_sample red = {0}, rr = {0}, here = {0}, there = {0};
    CHECK(cells && got);
    memset(got, 1, n * 4);
    for (int round = 0; round < rounds; round++) {
        fill_cells(cells, n, (uint64_t)round + 1);
        pyr_store *store = fresh_store();
        pyr_array *a = array_of(store, "a", chunks);
        bench_add(&pw, plain(true, (char *)cells, chunks, round));
        bench_time start = bench_now();
        OK(pyr_write(a, &zero, &size, cells, NULL));
        bench_add(&w, bench_since(start).wall);
        bench_add(&pr, plain(false, (char *)got, chunks, round));
        CHECK(memcmp(got, cells, n * 4) == 0);
        start = bench_now();
        OK(pyr_read(a, 1, &zero, &size, got));
        bench_add(&r, bench_since(start).wall);
        CHECK(memcmp(got, cells, n * 4) == 0);
        uint64_t bytes = socket_bytes();
        start = bench_now();
        OK(pyr_read(a, 1, &zero, &size, got));
        for (size_t i = 0; i < n; i++)
            got[i] = got[i] * 1.5f + 1;
        OK(pyr_write(a, &zero, &size, got, NULL));
        bench_add(&rcw, bench_since(start).wall);
        bench_add(&here, (double)(socket_bytes() - bytes) / (double)(4 * n));
        bytes = socket_bytes();
        start = bench_now();
        OK(pyr_compute(a, 1, &zero, &size, "x * 1.5 + 1", NULL));
        bench_add(&c, bench_since(start).wall);
        bench_add(&there, (double)(socket_bytes() - bytes) / (double)(4 * n));
        bench_add(&rr, reduce_here(a, got, n));
        bench_add(&red, reduce_there(a, n));
        pyr_array_close(a);
        pyr_close(store);
        remove_plain(chunks, round);
    }
    double mb = (double)chunks * CHUNK / 1e6;
    double ratio_w = bench_ratio(&w, &pw), ratio_r = bench_ratio(&r, &pr);
    double ratio_c = bench_ratio(&c, &rcw);
    bench_table("Chunks of 1 MiB on Ceph",
                "what|plain MB/s|pyramid MB/s|ratio|target|");
    bench_row("write|%.0f|%.0f|%.2f|0.80|%s", mb / bench_median(&pw),
              mb / bench_median(&w), ratio_w, bench_at_least(ratio_w, 0.8));
    bench_row("read|%.0f|%.0f|%.2f|0.80|%s", mb / bench_median(&pr),
              mb / bench_median(&r), ratio_r, bench_at_least(ratio_r, 0.8));
    bench_table("Functions of all cells: by a client, and inside the OSDs",
                "what|client MB/s|OSDs MB/s|ratio|target||bytes on sockets "
                "per byte of cells: client|OSDs");
    bench_row("x * 1.5 + 1|%.0f|%.0f|%.2f|1.50|%s|%.3f|%.4f",
              mb / bench_median(&rcw), mb / bench_median(&c), ratio_c,
              bench_at_least(ratio_c, 1.5), bench_median(&here),
              bench_median(&there));
    bench_row("sum(x * x)|%.0f|%.0f|%.2f||||", mb / bench_median(&rr),
              mb / bench_median(&red), bench_ratio(&red, &rr));
    free(cells);
    free(got);
}

/* --- versions ------------------------------------------------------------ */

/* Call a method that writes, as the engine does; what it answers. */
static size_t
step(rados_ioctx_t where, const char *oid, const char *method, const void *in,
     size_t size, char answer[64])
{
    size_t used = 0;
    int result = 0;
    rados_read_op_t op = rados_create_read_op();
    CHECK(op);
    rados_read_op_exec_user_buf(op, "pyramid", method, in, size, answer, 64,
                                &used, &result);
    CHECK(rados_read_op_operate(op, where, oid,
                                LIBRADOS_OPERATION_RETURNVEC) >= 0);
    rados_release_read_op(op);
    return used;
}

/* The bare rate of a durable step: a method of the class that adds to two
 * numbers of one object, on all copies. Per second, one after the other. */
static double
bare_steps(int n)
{
    static const char nothing[17] = {1}; /* the wire, and two zeros */
    char answer[64];
    bench_time start = bench_now();
    for (int i = 0; i < n; i++)
        step(io, "head", "tally", nothing, sizeof nothing, answer);
    double rate = n / bench_since(start).wall;
    rados_remove(io, "head");
    return rate;
}

/* The head of the only array of a store. */
static void
find_head(rados_ioctx_t where, char oid[64])
{
    rados_list_ctx_t list;
    const char *entry;
    oid[0] = 0;
    CHECK(rados_nobjects_list_open(where, &list) == 0);
    while (rados_nobjects_list_next(list, &entry, NULL, NULL) == 0)
        if (strncmp(entry, "h.", 2) == 0)
            snprintf(oid, 64, "%s", entry);
    rados_nobjects_list_close(list);
    CHECK(oid[0]);
}

/* One version, of an array of one axis: a claim and a record of the sizes that
 * those of one cell have. The layouts are those of src/cls/heads.c. */
static void
take_and_complete(rados_ioctx_t where, const char *oid, uint64_t number,
                  uint64_t extent)
{
    enum { CLAIM = 5, RECORD = 48, ID = 2 };
    char take[33 + CLAIM] = {1}, complete[39 + RECORD] = {1}, answer[64];
    memcpy(take + ID, &number, sizeof number);
    take[19] = 10;        /* a lease of 2560 ms */
    take[23] = (char)255; /* no axis grows */
    take[32] = CLAIM;
    CHECK(step(where, oid, "take", take, sizeof take, answer) >= 20);
    memcpy(complete + 2, answer, 8);       /* the version */
    memcpy(complete + 10, answer + 16, 4); /* its epoch */
    memcpy(complete + 14, &number, sizeof number);
    memcpy(complete + 30, &extent, sizeof extent);
    complete[38] = RECORD;
    step(where, oid, "complete", complete, sizeof complete, answer);
}

typedef struct committer {
    pyr_array *array;
    int n;
    pthread_t thread;
} committer;

static void *
commit(void *arg)
{
    committer *c = arg;
    for (int i = 0; i < c->n; i++) {
        uint64_t at = (uint64_t)i % 1000, one = 1;
        float cell = (float)i;
        OK(pyr_write(c->array, &at, &one, &cell, NULL));
    }
    return NULL;
}

/* `crew` threads, each with an array of its own: versions per second. */
static double
commits(int crew, int n)
{
    committer c[8];
    pyr_store *store = fresh_store();
    for (int i = 0; i < crew; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        c[i] = (committer){.array = array_of(store, name, 4), .n = n};
    }
    bench_time start = bench_now();
    for (int i = 0; i < crew; i++)
        pthread_create(&c[i].thread, NULL, commit, &c[i]);
    for (int i = 0; i < crew; i++)
        pthread_join(c[i].thread, NULL);
    double rate = crew * n / bench_since(start).wall;
    for (int i = 0; i < crew; i++)
        pyr_array_close(c[i].array);
    pyr_close(store);
    return rate;
}

/* Steps of a version manager: take, complete, and so on, per second. */
static double
head_steps(int n)
{
    rados_ioctx_t where;
    char oid[64];
    pyr_store *store = fresh_store();
    pyr_array *array = array_of(store, "a", 4);
    CHECK(rados_ioctx_create(cluster, pool, &where) == 0);
    rados_ioctx_set_namespace(where, space);
    find_head(where, oid);
    bench_time start = bench_now();
    for (int i = 0; i < n; i += 2)
        take_and_complete(where, oid, (uint64_t)i + 1, CHUNK);
    double rate = n / bench_since(start).wall;
    rados_ioctx_destroy(where);
    pyr_array_close(array);
    pyr_close(store);
    return rate;
}

static void
versions(int n, int rounds)
{
    bench_sample bare = {0}, steps = {0}, one = {0}, eight = {0};
    for (int round = 0; round < rounds; round++) {
        bench_add(&bare, bare_steps(n));
        bench_add(&steps, head_steps(n));
        bench_add(&one, commits(1, n));
        bench_add(&eight, commits(8, n / 4));
    }
    double ratio = bench_ratio(&bare, &steps);
    bench_table("Steps of a version manager on Ceph",
                "bare method/s|take and complete/s|ratio|target|");
    bench_row("%.0f|%.0f|%.2f|0.70|%s", bench_median(&bare),
              bench_median(&steps), ratio, bench_at_least(ratio, 0.7));
    /* whole: the two steps, nodes stored between them, and what is read */
    bench_table("Versions of one cell on Ceph",
                "versions/s, one client|to the bare method|8 clients, 8 "
                "arrays|to one");
    bench_row("%.0f|%.2f|%.0f|%.1f", bench_median(&one),
              bench_ratio(&bare, &one), bench_median(&eight),
              bench_ratio(&one, &eight));
}

int
main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "rados://", 8) == 0) {
            snprintf(url, sizeof url, "%s", argv[i]);
            memmove(argv + i, argv + i + 1, sizeof *argv * (size_t)(argc - i));
            argc--;
        }
    bench_begin(argc, argv);
    if (!url[0])
        bench_die("which cluster? bench-ceph rados://POOL?conf=FILE");
    connect_plain();
    bulk(bench_pick(64, 16, 2), bench_pick(5, 2, 1));
    versions(bench_pick(300, 50, 2), bench_pick(5, 2, 1));
    rados_ioctx_destroy(io);
    rados_shutdown(cluster);
    return 0;
}
