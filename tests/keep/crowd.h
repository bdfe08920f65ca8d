/*
 * keep/crowd.h - the processes of the crowd tests: they forget, reclaim, read
 * and clone beside the writers of crash/crew.h, until the file `stop` is
 * there; and the check of what they leave behind.
 *
 * Before a version is forgotten its line of the history goes into a chronicle,
 * so that all versions can be replayed afterwards. Readers note a digest of
 * whatever they were shown.
 */
#ifndef KEEP_CROWD_H
#define KEEP_CROWD_H

#include "crash/crew.h"
#include "support/model.h"

/* A version, and who made it; or what a reader was shown of it. */
typedef struct note {
    uint64_t version;
    uint32_t writer, seq; /* 0: changes nothing */
    uint64_t digest;
} note;

static const uint64_t origin[PYR_MAX_DIMS];

static inline bool
is_over(const job *j)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/stop", j->logs);
    return tmp_exists(path);
}

static inline int
open_notes(const job *j, const char *kind)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s%d", j->logs, kind, (int)getpid());
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static inline bool
put_note(int fd, const note *n)
{
    return write(fd, n, sizeof *n) == (ssize_t)sizeof *n;
}

static inline uint64_t
digest_cells(const uint8_t *cells, size_t bytes)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = 0;
        memcpy(&bits, cells + i, bytes - i < 8 ? bytes - i : 8);
        digest = rng_mix(digest ^ bits) + i;
    }
    return digest;
}

/* --- who forgets --------------------------------------------------------- */

static inline note
note_of(const pyr_change *c)
{
    note n = {.version = c->version};
    unsigned writer, seq;
    if (c->kind == PYR_KIND_WRITE &&
        sscanf(c->message, "w%u s%u", &writer, &seq) == 2)
        n.writer = writer, n.seq = seq;
    return n;
}

static inline int
write_chronicle(void *ctx, const pyr_change *c)
{
    note n = note_of(c);
    return put_note(*(int *)ctx, &n) ? 0 : 1;
}

/* For what was not told yet, before the test itself forgets. */
static inline void
chronicle(place *p)
{
    pyr_version latest;
    int fd = open_notes(&(job){.logs = p->logs}, "chronicle");
    OK(pyr_latest(p->array, &latest));
    OK(pyr_history(p->array, 1, latest, write_chronicle, &fd));
    close(fd);
}

/* Forgets random ranges, old ones above all; now and then keeps the last. */
static inline int
role_forget(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    rng r = rng_of(j->seed ^ j->writer);
    int fd = open_notes(j, "chronicle");
    if (open_work(j, 0, &k, &store, &array) < 0)
        return complain("open");
    for (pyr_version known = 0; !is_over(j); nap_ms(1)) {
        pyr_version latest;
        if (pyr_latest(array, &latest) < 0 ||
            (latest > known && pyr_history(array, known + 1, latest,
                                           write_chronicle, &fd) < 0))
            return complain("history");
        known = latest;
        if (known < 4)
            continue;
        pyr_version first = rng_below(&r, known);
        pyr_version last = first + rng_below(&r, known - first);
        uint64_t keep = rng_below(&r, 40);
        if (rng_once_in(&r, 8))
            first = 0, last = known, keep = 20;
        if (first < last && pyr_forget(array, first, last, keep, 0, NULL) < 0)
            return complain("forget");
    }
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

static inline int
role_reclaim(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    if (open_work(j, 0, &k, &store, &array) < 0)
        return complain("open");
    while (!is_over(j)) {
        pyr_reclaimed gone;
        int err = pyr_reclaim(store, NULL, &gone);
        if (err < 0 && err != PYR_ETIMEOUT)
            return complain("reclaim");
        err = pyr_fold(store, NULL, 0, NULL, NULL);
        if (err < 0 && err != PYR_ETIMEOUT && err != PYR_EUNSUPPORTED)
            return complain("fold");
        nap_ms(1);
    }
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

/* --- who reads ----------------------------------------------------------- */

static inline int
role_peek(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    rng r = rng_of(j->seed ^ j->writer);
    int fd = open_notes(j, "peek");
    if (open_work(j, PYR_OPEN_READONLY, &k, &store, &array) < 0)
        return complain("open");
    uint8_t *cells = malloc(work_bytes(&k));
    while (cells && !is_over(j)) {
        note n = {0};
        if (pyr_latest(array, &n.version) < 0)
            return complain("latest");
        uint64_t back = rng_below(&r, rng_once_in(&r, 2) ? 30 : n.version + 1);
        n.version -= back < n.version ? back : n.version;
        int err = pyr_read(array, n.version, origin, k.shape, cells);
        if (err == PYR_ENOVERSION)
            continue;
        if (err < 0)
            return complain("read");
        n.digest = digest_cells(cells, work_bytes(&k));
        if (!put_note(fd, &n))
            return 1;
    }
    free(cells);
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

/* A clone of a random version, and a few writes into it. Its name tells of
 * which version; half of them forget where they began. */
static inline int
clone_one(const job *j, const work *k, pyr_store *store, pyr_array *array,
          rng *r, uint32_t i)
{
    char name[64];
    pyr_array *clone;
    pyr_version v;
    if (pyr_latest(array, &v) < 0)
        return complain("latest");
    uint64_t back = rng_below(r, 60);
    v -= back < v ? back : v;
    snprintf(name, sizeof name, "clone-%" PRIu64 "-%d-%" PRIu32, v,
             (int)getpid(), i);
    int err = pyr_clone(array, v, name, &clone);
    if (err == PYR_ENOVERSION)
        return 0;
    if (err < 0)
        return complain("clone");
    for (uint32_t n = 0; n < 3 && err == 0; n++) {
        work_item item;
        work_item_make(k, j->writer, 10 * i + n, &item);
        err = pyr_write_list(clone, item.parts, item.n,
                             &(pyr_write_options){.message = item.message},
                             NULL);
        work_item_fini(&item);
    }
    if (err == 0 && rng_once_in(r, 2))
        err = pyr_forget(clone, 0, 0, 1, 0, NULL);
    pyr_array_close(clone);
    (void)store;
    return err < 0 ? complain("use of a clone") : 0;
}

static inline int
role_clone(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    rng r = rng_of(j->seed ^ j->writer);
    int err = 0;
    if (open_work(j, 0, &k, &store, &array) < 0)
        return complain("open");
    for (uint32_t i = 0; i < j->n && err == 0 && !is_over(j); i++) {
        err = clone_one(j, &k, store, array, &r, i);
        nap_ms(5);
    }
    pyr_array_close(array);
    pyr_close(store);
    return err;
}

static const crew_role crowd_roles[] = {{"forget", role_forget},
                                        {"reclaim", role_reclaim},
                                        {"peek", role_peek},
                                        {"clone", role_clone},
                                        {NULL, NULL}};

/* --- the replay ---------------------------------------------------------- */

typedef struct notes {
    note *list;
    size_t n, room;
} notes;

static inline void
notes_add(notes *s, const note *n)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->list = realloc(s->list, s->room * sizeof *s->list);
        REQUIRE(s->list);
    }
    s->list[s->n++] = *n;
}

static inline int
compare_notes(const void *a, const void *b)
{
    const note *x = a, *y = b;
    return (x->version > y->version) - (x->version < y->version);
}

/* Every file of that kind; a last note that is torn is left out. */
static inline void
read_notes(const char *logs, const char *kind, notes *out)
{
    char command[4300];
    note n;
    snprintf(command, sizeof command,
             "find '%s' -name '%s*' -exec cat {} +", logs, kind);
    FILE *f = popen(command, "r");
    REQUIRE(f);
    while (fread(&n, sizeof n, 1, f) == 1)
        notes_add(out, &n);
    pclose(f);
}

static inline int
add_change(void *ctx, const pyr_change *c)
{
    note n = note_of(c);
    notes_add(ctx, &n);
    return 0;
}

typedef struct witness {
    place *p;
    model m;
    notes history, peeks;
    size_t at_peek;
    uint8_t *cells;
    uint64_t kept, seen, clones;
} witness;

static inline void
replay_note(const work *k, model *m, const note *n)
{
    work_item item;
    if (n->writer == 0) {
        model_nothing(m, k->shape);
        return;
    }
    work_item_make(k, n->writer, n->seq, &item);
    model_write(m, item.parts, item.n);
    work_item_fini(&item);
}

/* A kept version is as the model has it; one that has gone says so. */
static inline bool
same_cells(witness *w, pyr_array *array, pyr_version v, const model *m,
           bool *kept)
{
    size_t bytes = work_bytes(&w->p->k);
    int err = pyr_read(array, v, origin, w->p->k.shape, w->cells);
    *kept = err == 0;
    if (err < 0)
        return err == PYR_ENOVERSION;
    return memcmp(w->cells, m->snaps[m->n - 1].cells, bytes) == 0;
}

typedef struct clone_walk {
    witness *w;
    pyr_version v;
} clone_walk;

static inline int
check_clone(void *ctx, const char *name)
{
    clone_walk *x = ctx;
    witness *w = x->w;
    pyr_version v, latest;
    model m;
    notes history = {0};
    pyr_array *clone;
    bool kept;
    if (sscanf(name, "clone-%" SCNu64, &v) != 1 || v != x->v)
        return 0;
    OK(pyr_array_open(w->p->store, name, &clone));
    OK(pyr_latest(clone, &latest));
    if (latest)
        OK(pyr_history(clone, 1, latest, add_change, &history));
    model_clone(&w->m, v, &m);
    w->clones++;
    CHECK(same_cells(w, clone, 0, &m, &kept));
    CHECK(kept || latest > 0);
    for (size_t i = 0; i < history.n; i++) {
        replay_note(&w->p->k, &m, &history.list[i]);
        if (!same_cells(w, clone, i + 1, &m, &kept) || !kept)
            CHECK_NOTE("version %zu of %s: %s", i + 1, name,
                       kept ? "wrong cells" : pyr_errmsg());
    }
    model_fini(&m);
    free(history.list);
    pyr_array_close(clone);
    return 0;
}

static inline void
check_peeks(witness *w, pyr_version v)
{
    uint64_t digest = digest_cells(w->m.snaps[v].cells, work_bytes(&w->p->k));
    for (; w->at_peek < w->peeks.n &&
           w->peeks.list[w->at_peek].version <= v; w->at_peek++) {
        w->seen++;
        if (w->peeks.list[w->at_peek].digest != digest)
            CHECK_NOTE("a reader saw wrong cells in version %" PRIu64, v);
    }
}

static inline void
check_version(witness *w, pyr_version v)
{
    bool kept;
    if (!same_cells(w, w->p->array, v, &w->m, &kept))
        CHECK_NOTE("version %" PRIu64 ": %s", v,
                   kept ? "wrong cells" : pyr_errmsg());
    w->kept += kept;
    check_peeks(w, v);
    OK(pyr_arrays(w->p->store, check_clone, &(clone_walk){w, v}));
    if (v)
        model_drop(&w->m, v - 1);
}

/* Replays all versions and compares what is left of them, what readers saw,
 * and every clone. */
static inline void
check_crowd(place *p)
{
    pyr_version latest, v = 0;
    witness w = {.p = p, .cells = malloc(work_bytes(&p->k))};
    OK(pyr_latest(p->array, &latest));
    read_notes(p->logs, "chronicle", &w.history);
    OK(pyr_history(p->array, 1, latest, add_change, &w.history));
    read_notes(p->logs, "peek", &w.peeks);
    qsort(w.history.list, w.history.n, sizeof(note), compare_notes);
    if (w.peeks.n)
        qsort(w.peeks.list, w.peeks.n, sizeof(note), compare_notes);
    model_init(&w.m, p->k.ndim, p->k.shape, p->k.type, NULL);
    check_version(&w, 0);
    for (size_t i = 0; i < w.history.n; i++) {
        if (w.history.list[i].version == v)
            continue; /* told twice */
        REQUIRE(w.history.list[i].version == v + 1);
        replay_note(&p->k, &w.m, &w.history.list[i]);
        check_version(&w, ++v);
    }
    CHECK(v == latest);
    printf("# %" PRIu64 " versions, %" PRIu64 " kept, %" PRIu64
           " reads, %" PRIu64 " clones\n", latest, w.kept, w.seen, w.clones);
    model_fini(&w.m);
    free(w.history.list);
    free(w.peeks.list);
    free(w.cells);
}

#endif
