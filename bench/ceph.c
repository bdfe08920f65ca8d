/*
 * bench/ceph.c - a store on a Ceph cluster beside plain librados: the same
 * pool, the same sizes, the same number of requests in the air.
 *
 *   bench-ceph [--quick] rados://POOL?conf=FILE&user=NAME
 *
 * Chunks of 1 MiB, written and read; a function of all cells, by pyr_compute()
 * and by a client that reads, computes and writes back, and a reduction
 * likewise, with the bytes that passed the client's sockets; versions of one cell
 * beside the bare rate of durable steps on one object. Both
 * sides take turns, and what is shown are medians of the ratios of turns.
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

/* A store in a namespace that was never used. */
static pyr_store *
fresh_store(void)
{
    static int number;
    char name[4400];
    size_t stem = strcspn(url, "?");
    pyr_store *store;
    snprintf(name, sizeof name, "%.*s/bench-%d-%d-%ld%s", (int)stem, url,
             (int)getpid(), number++, (long)time(NULL), url + stem);
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

/* The bare rate of a durable step: a method of the class that adds to two
 * numbers of one object, on all copies. Per second, one after the other. */
static double
bare_steps(int n)
{
    static const char nothing[17] = {1}; /* the wire, and two zeros */
    char answer[64];
    bench_time start = bench_now();
    for (int i = 0; i < n; i++)
        CHECK(rados_exec(io, "head", "pyramid", "tally", nothing,
                         sizeof nothing, answer, sizeof answer) >= 0);
    double rate = n / bench_since(start).wall;
    rados_remove(io, "head");
    return rate;
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

static void
versions(int n, int rounds)
{
    bench_sample bare = {0}, one = {0}, eight = {0};
    for (int round = 0; round < rounds; round++) {
        bench_add(&bare, bare_steps(n));
        bench_add(&one, commits(1, n));
        bench_add(&eight, commits(8, n / 4));
    }
    /* a version is two steps on its head, so its steps are twice its rate */
    double steps = 2 * bench_ratio(&bare, &one);
    bench_table("Versions of one cell on Ceph",
                "durable steps/s, bare|versions/s, one client|steps of it, "
                "ratio|target||8 clients, 8 arrays|to one");
    bench_row("%.0f|%.0f|%.2f|0.70|%s|%.0f|%.1f", bench_median(&bare),
              bench_median(&one), steps, bench_at_least(steps, 0.7),
              bench_median(&eight), bench_ratio(&one, &eight));
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
