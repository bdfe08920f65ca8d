/*
 * fuzz/local_fuzz.c - values of the embedded engine: tickets, heads, versions,
 * slots of writers, the list of open segments, headers of segments, names of
 * blobs.
 *
 * One real store is open all the time; the hostile value is put into it by
 * LMDB, looked at through the calls that read such values, and taken back.
 * Input: what it is (1), a number for its key (1), the value.
 */
#include "fuzz/fuzz.h"

#include "engine/engines.h"
#include "engine/local/env.h"
#include "engine/local/local.h"
#include "support/tmp_store.h"

enum { ARRAY = 7, VERSIONS = 2, SEGMENT = 5 };

/* As engine/local/local.c has it. */
typedef struct handle {
    pyri_engine base;
    pyri_site *site;
} handle;

static pyri_engine *engine;
static pyri_site *site;
static pyri_ref blob;

static void
publish_one(void)
{
    pyri_take take = {.array = ARRAY, .claim = {"claim", 5}, .grow_axis = -1};
    pyri_ticket t;
    pyri_flights below = {0};
    MUST(pyri_engine_take(engine, &take, &t, &below) == 0);
    pyri_complete c = {.array = ARRAY,
                       .version = t.version,
                       .shape = t.shape,
                       .record = {"record", 6}};
    MUST(pyri_engine_complete(engine, &c) == 0);
    pyri_flights_fini(&below);
}

static void
set_up(void)
{
    static const uint64_t shape[2] = {10, 20};
    pyr_store_options options = {.durability = PYR_DURABILITY_OS};
    pyri_edit edit = {.kind = PYRI_EDIT_ARRAY,
                      .array = ARRAY,
                      .ndim = 2,
                      .shape = shape};
    MUST(pyri_engine_local.open(tmp_fresh("store"), PYR_OPEN_CREATE, &options,
                                &engine) == 0);
    site = ((handle *)engine)->site;
    MUST(pyri_engine_edit(engine, &edit, 1) == 0);
    for (int i = 0; i < VERSIONS; i++)
        publish_one();
    static uint8_t bytes[3 * PYRI_PAGE];
    struct iovec iov = {bytes, sizeof bytes};
    pyri_blob_put put = {.iov = &iov,
                         .niov = 1,
                         .size = sizeof bytes,
                         .aligned = true};
    MUST(pyri_engine_put_blobs(engine, &put, 1) == 0);
    blob = put.ref;
}

/* --- one value in one database ------------------------------------------- */

typedef struct spot {
    MDB_env *env;
    MDB_dbi db;
    uint8_t key[32];
    size_t size;
} spot;

static void
change(const spot *s, const void *value, size_t size)
{
    pyri_txn *txn;
    bool found;
    MUST(pyri_env_write(s->env, &txn) == 0);
    int err = value ? pyri_env_put(txn, s->db, s->key, s->size, value, size)
                    : pyri_env_delete(txn, s->db, s->key, s->size, &found);
    MUST(err == 0 && pyri_env_commit(txn, "fuzz") == 0);
}

static uint8_t *
value_at(const spot *s, size_t *size)
{
    pyri_txn *txn;
    MDB_val v;
    bool found;
    uint8_t *copy = NULL;
    MUST(pyri_env_read(s->env, &txn) == 0);
    MUST(pyri_env_get(txn, s->db, s->key, s->size, &v, &found) == 0);
    if (found) {
        MUST((copy = malloc(v.mv_size + 1)));
        memcpy(copy, v.mv_data, v.mv_size);
        *size = v.mv_size;
    }
    pyri_env_abort(txn);
    return copy;
}

/* --- looking ------------------------------------------------------------- */

static void
look_at_tickets(void)
{
    pyri_flights f = {0};
    uint64_t dead, count;
    int err = pyri_engine_flights(engine, ARRAY, &f);
    if (err < 0) {
        must_refuse(err);
        MUST(f.n == 0 && f.list == NULL);
    }
    for (size_t i = 0; i < f.n; i++) {
        MUST(f.list[i].version == f.base + 1 + i);
        touch(f.list[i].claim.data, f.list[i].claim.size);
    }
    pyri_flights_fini(&f);
    err = pyri_ticket_stuck(site, ARRAY, UINT64_MAX, &dead);
    MUST(err == 0 || err == PYR_ECORRUPT);
    err = pyri_ticket_count(site, &count);
    MUST(err == 0 || err == PYR_ECORRUPT);
    pyri_ticket t = {.array = ARRAY, .version = VERSIONS + 1};
    err = pyri_engine_renew(engine, &t);
    MUST(err == 0 || err == PYR_ECORRUPT || err == PYR_EFENCED);
}

static int
see_version(void *ctx, uint64_t version, const pyri_version_get *v)
{
    (void)ctx;
    (void)version;
    touch(v->record.data, v->record.size);
    return 0;
}

static void
look_at_versions(void)
{
    pyri_reader *r;
    uint64_t version, shape[PYR_MAX_DIMS];
    MUST(pyri_engine_begin(engine, &r) == 0);
    int err = pyri_engine_latest(engine, r, ARRAY, &version, shape);
    if (err < 0)
        must_refuse(err);
    for (uint64_t v = 0; v <= VERSIONS + 1; v++) {
        pyri_version_get get;
        err = pyri_engine_get_version(engine, r, ARRAY, v, &get);
        if (err < 0)
            must_refuse(err);
        else if (get.found)
            touch(get.record.data, get.record.size);
    }
    err = pyri_engine_scan_versions(engine, r, ARRAY, VERSIONS, 1, see_version,
                                    NULL);
    if (err < 0)
        must_refuse(err);
    pyri_engine_end(engine, r);
}

static void
look_at_writers(void)
{
    uint64_t count, load[PYRI_MAX_DIRS];
    int err = pyri_presence_count(site, &count);
    MUST(err == 0 || err == PYR_ECORRUPT);
    err = pyri_place_load(site, load);
    MUST(err == 0 || err == PYR_ECORRUPT);
}

static void
look(void)
{
    pyr_status status;
    look_at_tickets();
    look_at_versions();
    look_at_writers();
    int err = pyri_engine_status(engine, &status, NULL, NULL);
    MUST(err == 0 || err == PYR_ECORRUPT);
}

/* Layout: engine/local/segment.c. The checksum is put right, and the uuid. */
static void
check_segment(const uint8_t *value, size_t size, uint8_t how)
{
    uint8_t *header = calloc(1, PYRI_SEGMENT_HEADER);
    MUST(header);
    memcpy(header, value,
           size < PYRI_SEGMENT_HEADER ? size : PYRI_SEGMENT_HEADER);
    if (how & 1)
        memcpy(header + 16, site->format.uuid, sizeof site->format.uuid);
    if (how & 2)
        pyri_store64(header + 72, pyri_hash64(header, 72));
    int err = pyri_segment_check(site, header, 0, SEGMENT);
    if (err < 0)
        must_refuse(err);
    else
        MUST(memcmp(header, "PYRSEG1\n", 8) == 0 &&
             pyri_load32(header + 12) == SEGMENT);
    free(header);
}

/* A name that a leaf might hold: what is found there can be read. */
static void
check_blob(const uint8_t *value, size_t size, bool ours)
{
    pyri_cursor in = pyri_cursor_of(value, size);
    pyri_ref ref = {pyri_cursor_varint(&in), pyri_cursor_varint(&in)};
    pyri_blob_get get = {.ref = ref,
                         .offset = pyri_cursor_varint(&in),
                         .size = pyri_cursor_varint(&in)};
    pyri_reader *r;
    if (ours)
        get.ref.a = blob.a;
    MUST(pyri_engine_begin(engine, &r) == 0);
    int err = pyri_engine_get_blobs(engine, r, &get, 1);
    if (err == 0)
        touch(get.data, (size_t)get.size);
    else
        MUST(err == PYR_ECORRUPT || err == PYR_EIO);
    pyri_engine_end(engine, r);
}

static void
find_spot(int what, uint8_t number, spot *s)
{
    bool live = what < 3;
    *s = (spot){.env = live ? site->live : site->meta,
                .db = live        ? site->live_db
                      : what == 3 ? site->main_db
                                  : site->tree_db};
    switch (what) {
    case 0: /* a ticket */
        s->key[0] = 't';
        s->key[8] = ARRAY;
        s->key[16] = number ? number : VERSIONS + 1;
        s->size = 17;
        break;
    case 1: /* an open segment */
        s->key[0] = 's';
        s->key[2] = number;
        s->key[6] = SEGMENT;
        s->size = 7;
        break;
    case 2: /* a writer; slot 0 is ours */
        s->key[0] = 'w';
        s->key[4] = number;
        s->size = 5;
        break;
    case 3: /* the head */
        s->key[0] = 'h';
        s->key[8] = ARRAY;
        s->size = 9;
        break;
    default: /* a version */
        s->key[7] = ARRAY;
        s->key[15] = number % (VERSIONS + 2);
        s->size = 16;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    pyri_cursor in = pyri_cursor_of(data, data_size);
    int what = take_below(&in, 7);
    uint8_t number = pyri_cursor_u8(&in);
    size_t size, old_size;
    uint8_t *value = take_rest(&in, &size), *old;
    spot s;
    if (!engine)
        set_up();
    if (what == 5) {
        check_segment(value, size, number);
    } else if (what == 6) {
        check_blob(value, size, number & 1);
    } else if (size > 0) {
        find_spot(what, number, &s);
        old = value_at(&s, &old_size);
        change(&s, value, size);
        look();
        change(&s, old, old_size);
        free(old);
    }
    free(value);
    return 0;
}
