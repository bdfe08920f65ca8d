/*
 * engine/rados/rados.c - the table: a store on a Ceph cluster.
 *
 * README.md says how the parts fit; cluster.c opens, rados.h lists the rest.
 */
#include "engine/rados/rados.h"

#include "base/sys.h"
#include "engine/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1 };

/* --- lifetime ------------------------------------------------------------ */

static int
rados_open(const char *rest, unsigned flags, const pyr_store_options *options,
           pyri_engine **out)
{
    pyri_rados *e = pyri_sys_calloc(1, sizeof *e);
    if (!e)
        return pyri_fail_nomem("a store");
    int err = pyri_cluster_open(rest, flags, options, &e->site);
    if (err < 0) {
        free(e);
        return err;
    }
    bool readonly = flags & PYR_OPEN_READONLY;
    e->base = (pyri_engine){.ops = &pyri_engine_rados,
                            .readonly = readonly,
                            .durability = e->site->durability,
                            .lease_ms = e->site->lease_ms};
    if (!readonly) {
        pthread_mutex_lock(&e->site->lock);
        e->site->writers++;
        pthread_mutex_unlock(&e->site->lock);
    }
    *out = &e->base;
    return 0;
}

static void
rados_close(pyri_engine *base)
{
    pyri_rados *e = (pyri_rados *)base;
    pyri_cluster *s = e->site;
    if (pyri_cluster_check(s) == 0) {
        if (e->upkeep)
            pyri_rados_end_upkeep(base);
        pthread_mutex_lock(&s->lock);
        bool last = !base->readonly && --s->writers == 0;
        pthread_mutex_unlock(&s->lock);
        pyri_tally_flush(s);
        if (last)
            pyri_session_end(s);
    }
    pyri_cluster_close(s);
    free(e);
}

/* --- readers ------------------------------------------------------------- */

/*
 * A reader is no moment of the cluster: each object shows what it is when it
 * is asked. What was read stays in memory until the end. Trees lead from a
 * record to what never changes, so whatever is put together is right.
 */
static int
rados_begin(pyri_engine *e, pyri_reader **out)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    pyri_reader *r = pyri_sys_calloc(1, sizeof *r);
    if (!r)
        return pyri_fail_nomem("a reader");
    r->site = s;
    pthread_mutex_lock(&s->lock);
    r->began = s->clock;
    r->next = s->readers;
    if (r->next)
        r->next->prev = r;
    s->readers = r;
    pthread_mutex_unlock(&s->lock);
    *out = r;
    return 0;
}

static void
rados_end(pyri_engine *e, pyri_reader *r)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pthread_mutex_lock(&s->lock);
    if (r->prev)
        r->prev->next = r->next;
    else
        s->readers = r->next;
    if (r->next)
        r->next->prev = r->prev;
    pthread_mutex_unlock(&s->lock);
    pyri_rados_free_blocks(r);
    free(r);
}

/* Ceph looks after its own bytes. What is verified has to come from there. */
static int
rados_check(pyri_engine *e)
{
    int err = pyri_cluster_check(pyri_cluster_of(e));
    if (err == 0)
        pyri_rcache_clear(pyri_cluster_of(e));
    return err;
}

/* --- for people ---------------------------------------------------------- */

typedef struct tally {
    pyri_calls calls;
    uint64_t objects;
} tally;

/* A number of the monitor's answer; -1 if it is not in there. */
static long long
number_in(const char *json, const char *name)
{
    const char *at = strstr(json, name);
    long long n = -1;
    if (at)
        sscanf(at + strlen(name), "\":%lld", &n);
    return n;
}

/* How many OSDs there are, and how many of them are up. */
static void
count_osds(pyri_cluster *s, long long *all, long long *up)
{
    const char *ask = "{\"prefix\":\"osd stat\",\"format\":\"json\"}";
    char *out = NULL, *words = NULL, text[2048] = "";
    size_t size = 0, words_size = 0;
    int err = rados_mon_command(s->cluster, &ask, 1, "", 0, &out, &size,
                                &words, &words_size);
    if (err == 0 && size < sizeof text)
        memcpy(text, out, size);
    rados_buffer_free(out);
    rados_buffer_free(words);
    *all = number_in(text, "\"num_osds");
    *up = number_in(text, "\"num_up_osds");
}

/* The cluster, in the words for a data directory. Sizes are 0 where it has no
 * manager that counts them. */
static int
tell_cluster(pyri_cluster *s, const tally *t, const pyr_status *st,
             pyr_data_dir_fn *each, void *ctx)
{
    char name[3 * PYRI_RADOS_NAME];
    struct rados_cluster_stat_t space = {0};
    long long all, up;
    count_osds(s, &all, &up);
    rados_cluster_stat(s->cluster, &space);
    snprintf(name, sizeof name,
             "pool %s, namespace \"%s\", %lld of %lld OSDs up", s->pool,
             s->space, up, all);
    pyr_data_dir dir = {.path = name,
                        .free_bytes = space.kb_avail << 10,
                        .total_bytes = space.kb << 10,
                        .data_bytes = st->data_bytes,
                        .segments = t->objects,
                        .writers = st->writers};
    return each(ctx, &dir);
}

static int
add_count(void *ctx, const char *oid)
{
    tally *t = ctx;
    t->objects++;
    if (oid[1] == '.' && strchr("nwl", oid[0]) &&
        !pyri_calls_add(&t->calls, "count", false, oid))
        return pyri_fail_nomem("a list of objects");
    return 0;
}

static int
rados_status(pyri_engine *e, pyr_status *out, pyr_data_dir_fn *each, void *ctx)
{
    pyri_cluster *s = pyri_cluster_of(e);
    tally t = {.objects = 0};
    int err = pyri_cluster_check(s);
    memset(out, 0, sizeof *out);
    if (err == 0)
        err = pyri_rados_objects(s, "", add_count, &t);
    if (err == 0)
        err = pyri_calls_run(s, t.calls.list, t.calls.n);
    for (size_t i = 0; i < t.calls.n && err == 0; i++) {
        pyri_call *c = &t.calls.list[i];
        pyri_cursor_u64(&c->answer);
        out->metadata_bytes += pyri_cursor_u64(&c->answer);
        out->data_bytes += pyri_cursor_u64(&c->answer);
    }
    pyri_calls_fini(&t.calls);
    if (err == 0)
        err = pyri_rados_in_flight(s, &out->in_flight);
    if (err < 0)
        return err;
    out->engine = e->ops->scheme;
    out->format = FORMAT;
    out->durability = s->durability;
    out->lease_ms = s->lease_ms;
    out->writers = pyri_sessions_alive(s);
    pyri_tally_get(s, &out->computed_bytes, &out->moved_bytes);
    pthread_mutex_lock(&s->lock);
    out->data_bytes += s->unnamed_bytes;
    out->metadata_bytes++; /* a marker is always there */
    pthread_mutex_unlock(&s->lock);
    return each ? tell_cluster(s, &t, out, each, ctx) : 0;
}

const pyri_engine_ops pyri_engine_rados = {
    .scheme = "rados",
    .open = rados_open,
    .close = rados_close,
    .begin = rados_begin,
    .end = rados_end,
    .get_record = pyri_rados_get_record,
    .scan_records = pyri_rados_scan_records,
    .edit = pyri_rados_edit,
    .get_nodes = pyri_rados_get_nodes,
    .put_blobs = pyri_rados_put_blobs,
    .sync = pyri_rados_sync,
    .get_blobs = pyri_rados_get_blobs,
    .drop_blobs = pyri_rados_drop_blobs,
    .compute = pyri_rados_compute,
    .reduce = pyri_rados_reduce,
    .tally = pyri_rados_tally,
    .latest = pyri_rados_latest,
    .marked = pyri_rados_marked,
    .take = pyri_rados_take,
    .renew = pyri_rados_renew,
    .flights = pyri_rados_flights,
    .complete = pyri_rados_complete,
    .import = pyri_rados_import,
    .wait = pyri_rados_wait,
    .get_version = pyri_rados_get_version,
    .scan_versions = pyri_rados_scan_versions,
    .begin_upkeep = pyri_rados_begin_upkeep,
    .end_upkeep = pyri_rados_end_upkeep,
    .scan_forgotten = pyri_rados_scan_forgotten,
    .erase = pyri_rados_erase,
    .settle = pyri_rados_settle,
    .scan_nodes = pyri_rados_scan_nodes,
    .scan_blobs = pyri_rados_scan_blobs,
    .check = rados_check,
    .replace_nodes = pyri_rados_replace_nodes,
    .status = rados_status,
};
