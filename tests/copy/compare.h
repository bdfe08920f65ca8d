/*
 * copy/compare.h - random arrays to copy, and the comparison of an array with
 * its copy: every cell of every version, and all that is said of them.
 */
#ifndef COPY_COMPARE_H
#define COPY_COMPARE_H

#include "api/handle.h"
#include "array/keys.h"
#include "model/random.h"
#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <inttypes.h>

/* --- random arrays ------------------------------------------------------- */

typedef struct subject {
    dice with;
    model m;
    uint64_t chunk[PYR_MAX_DIMS];
    pyr_store *store;
    pyr_array *array;
} subject;

static inline void
subject_create(subject *s, pyr_store *store, const char *name, uint64_t seed)
{
    static const pyr_type types[] = {PYR_I8,  PYR_U16, PYR_I32,
                                     PYR_U64, PYR_F32, PYR_F64};
    uint64_t shape[PYR_MAX_DIMS];
    uint8_t fill[8];
    *s = (subject){.with = {.r = rng_of(seed)}, .store = store};
    rng *r = &s->with.r;
    int ndim = (int)rng_from(r, 1, 4);
    pyr_type type = types[rng_below(r, 6)];
    s->with.flavour = (int)rng_below(r, 2);
    random_fill(&s->with, type, fill);
    random_shape(r, ndim, shape);
    random_chunk(r, ndim, shape, s->chunk);
    model_init(&s->m, ndim, shape, type, fill);
    OK(pyr_create(store, name,
                  &(pyr_spec){.ndim = ndim, .shape = shape, .type = type,
                              .chunk = s->chunk, .fill = fill,
                              .codec = rng_once_in(r, 2) ? PYR_CODEC_LZ4
                                                         : PYR_CODEC_NONE,
                              .attributes = "{\"unit\": \"K\"}"},
                  &s->array));
}

static inline const uint64_t *
subject_shape(const subject *s)
{
    return s->m.snaps[s->m.n - 1].shape;
}

static inline void
subject_write(subject *s, size_t most)
{
    random_part parts[16];
    pyr_part given[16], told[16];
    char message[40];
    size_t n = rng_from(&s->with.r, 1, most);
    for (size_t i = 0; i < n; i++) {
        random_part_make(&s->with, &s->m, subject_shape(s), &parts[i]);
        given[i] = told[i] = parts[i].part;
    }
    snprintf(message, sizeof message, "write of %zu", n);
    OK(pyr_write_list(s->array, given, n,
                      &(pyr_write_options){.message = message}, NULL));
    model_write(&s->m, told, n);
    random_parts_free(parts, n);
}

static inline void
subject_resize(subject *s)
{
    uint64_t shape[PYR_MAX_DIMS];
    do
        for (int d = 0; d < s->m.ndim; d++) {
            uint64_t now = subject_shape(s)[d];
            shape[d] = rng_below(&s->with.r, now + now / 2 + 3);
        }
    while (model_count(s->m.ndim, shape) > MAX_CELLS);
    OK(pyr_resize(s->array, shape, NULL));
    model_resize(&s->m, shape);
}

static inline void
subject_append(subject *s)
{
    int axis = (int)rng_below(&s->with.r, (uint64_t)s->m.ndim);
    uint64_t slab[PYR_MAX_DIMS], at, seen, count = rng_from(&s->with.r, 1, 3);
    memcpy(slab, subject_shape(s), sizeof slab);
    slab[axis] = count;
    uint64_t cells = model_count(s->m.ndim, slab);
    uint8_t *buf = malloc((size_t)(cells + 1) * s->m.cell);
    REQUIRE(buf);
    random_cells(&s->with, &s->m, buf, cells);
    OK(pyr_append(s->array, axis, count, buf, &at, NULL));
    model_append(&s->m, axis, count, buf, &seen);
    CHECK(at == seen);
    free(buf);
}

/* Make `n` more versions; `most` boxes in a write. */
static inline void
subject_go_on(subject *s, int n, size_t most)
{
    for (int i = 0; i < n; i++) {
        uint64_t pick = rng_below(&s->with.r, 12);
        if (pick == 0)
            subject_resize(s);
        else if (pick == 1 &&
                 model_count(s->m.ndim, subject_shape(s)) < MAX_CELLS / 2)
            subject_append(s);
        else
            subject_write(s, most);
    }
}

static inline void
subject_close(subject *s)
{
    pyr_array_close(s->array);
    model_fini(&s->m);
}

/* --- what the public calls do not tell ----------------------------------- */

static inline void
forget(pyr_array *a, pyr_version v)
{
    pyri_edit edit = {.kind = PYRI_EDIT_FORGET,
                      .array = a->array->id,
                      .version = a->array->first + v};
    OK(pyri_engine_edit(a->array->engine, &edit, 1));
}

/* The digest of a snapshot, if it is known. */
static inline bool
digest_of(pyr_array *a, pyr_version v, pyri_digest *out)
{
    static const uint64_t zero[PYR_MAX_DIMS];
    pyri_snapshot s;
    pyri_node node;
    pyri_about about = {.digested = true};
    OK(pyri_snapshot_open(a->array, v, &s));
    if (s.record.root) {
        OK(pyri_tree_get(&s.tree, s.record.root, s.record.root_level, zero,
                         &node));
        OK(pyri_node_about(&node, a->array->schema.type, &about));
    }
    pyri_snapshot_close(&s);
    *out = about.digest;
    return about.digested;
}

/* --- comparing ----------------------------------------------------------- */

/* All that a history says of one version, as text. */
static inline int
tell_change(void *ctx, const pyr_change *c)
{
    FILE *f = ctx;
    fprintf(f, "%" PRIu64 " %d %" PRId64 " %s [%s] %" PRIu64 " '%s' shape",
            c->version, c->kind, c->time_ns, c->who, c->message, c->source,
            c->expression ? c->expression : "");
    for (int d = 0; d < c->ndim; d++)
        fprintf(f, " %" PRIu64, c->shape[d]);
    for (size_t i = 0; i < c->nparts; i++)
        for (int d = 0; d < c->ndim; d++)
            fprintf(f, " %" PRIu64 "+%" PRIu64 "x%" PRIu64 "/%" PRIu64,
                    c->parts[i].offset[d], c->parts[i].size[d],
                    c->parts[i].count ? c->parts[i].count[d] : 1,
                    c->parts[i].stride ? c->parts[i].stride[d] : 0);
    return 0;
}

static inline char *
change_text(pyr_array *a, pyr_version v)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    REQUIRE(f);
    OK(pyr_history(a, v, v, tell_change, f));
    fclose(f);
    return text;
}

/* Version v of the array has the cells of the model's version `of`. */
static inline void
check_cells(const model *m, size_t of, pyr_array *a, pyr_version v)
{
    static const uint64_t zero[PYR_MAX_DIMS];
    const model_snap *snap = &m->snaps[of];
    pyr_info info;
    OK(pyr_array_info(a, v, &info));
    CHECK(memcmp(info.shape, snap->shape,
                 (size_t)m->ndim * sizeof info.shape[0]) == 0);
    uint8_t *cells = malloc((size_t)(snap->ncells + 1) * m->cell);
    REQUIRE(cells);
    OK(pyr_read(a, v, zero, snap->shape, cells));
    if (memcmp(cells, snap->cells, (size_t)snap->ncells * m->cell) != 0)
        CHECK_NOTE("the cells of version %d differ", (int)v);
    free(cells);
}

/* Version v of the copy is what it was at its source. */
static inline void
check_version(const subject *s, pyr_array *copy, pyr_version v)
{
    char *ours = change_text(s->array, v), *theirs = change_text(copy, v);
    if (strcmp(ours, theirs) != 0)
        CHECK_NOTE("history of version %d: '%s', not '%s'", (int)v, theirs,
                   ours);
    free(ours);
    free(theirs);
    check_cells(&s->m, (size_t)v, copy, v);
}

static inline void
check_missing(pyr_array *copy, pyr_version v)
{
    pyr_info info;
    FAILS(PYR_ENOVERSION, pyr_array_info(copy, v, &info));
}

static inline void
check_info(pyr_array *a, pyr_array *copy)
{
    pyr_info x, y;
    char *ours, *theirs;
    OK(pyr_array_info(a, PYR_LATEST, &x));
    OK(pyr_array_info(copy, PYR_LATEST, &y));
    CHECK(x.version == y.version && x.type == y.type && x.codec == y.codec &&
          x.level == y.level && x.created_ns == y.created_ns &&
          memcmp(x.chunk, y.chunk, sizeof x.chunk) == 0 &&
          memcmp(x.fill, y.fill, sizeof x.fill) == 0 &&
          strcmp(x.clone_of, y.clone_of) == 0 &&
          x.clone_version == y.clone_version);
    OK(pyr_attributes(a, &ours));
    OK(pyr_attributes(copy, &theirs));
    CHECK(strcmp(ours, theirs) == 0);
    free(ours);
    free(theirs);
}

/* --- stores -------------------------------------------------------------- */

static inline pyr_store *
fresh_store(bool in_memory)
{
    static int number;
    char url[64];
    pyr_store *store;
    pyr_store_options os = {.durability = PYR_DURABILITY_OS};
    snprintf(url, sizeof url, "mem:copy%d", ++number);
    OK(pyr_open_with(in_memory ? url : tmp_store("copy"), PYR_OPEN_CREATE, &os,
                     &store));
    return store;
}

#endif
