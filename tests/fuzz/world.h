/*
 * fuzz/world.h - small stores in memory, always the same, and all that can be
 * asked of them.
 *
 * What differs from one making to the next (times, process numbers) is taken
 * out of the records, so that an input means the same in every run.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "fuzz/fuzz.h"

#include "api/handle.h"

/* Strided memory has the same name (nd/nd.h). */
#define pyri_mem pyri_mem_engine
#include "engine/mem/mem.h"
#undef pyri_mem

enum { SCENES = 4, MAX_ARRAYS = 2 };

typedef struct world {
    pyr_store *store;
    pyr_array *arrays[MAX_ARRAYS];
    int n;
    pyri_mem_store *mem;
} world;

#define AT(...) ((const uint64_t[]){__VA_ARGS__})

static inline pyr_array *
world_array(world *w, const char *name, const pyr_spec *spec)
{
    pyr_array **array = &w->arrays[w->n++];
    MUST(pyr_create(w->store, name, spec, array) == 0);
    return *array;
}

/* Two axes, masks, cuts, one value everywhere, a clone. */
static inline void
make_plane(world *w)
{
    int16_t cells[144], seven = 7;
    pyr_version v;
    for (int i = 0; i < 144; i++)
        cells[i] = (int16_t)(i * i);
    pyr_spec spec = {.ndim = 2,
                     .shape = AT(12, 10),
                     .chunk = AT(4, 4),
                     .type = PYR_I16,
                     .fill = &seven};
    pyr_array *a = world_array(w, "a", &spec);
    MUST(pyr_write(a, AT(0, 0), AT(12, 10), cells, &v) == 0);
    MUST(pyr_write(a, AT(3, 2), AT(4, 7), cells + 9, &v) == 0);
    pyr_part part = {.offset = AT(1, 1),
                     .size = AT(1, 1),
                     .count = AT(4, 3),
                     .stride = AT(2, 3),
                     .buf = cells + 50};
    MUST(pyr_write_list(a, &part, 1, NULL, &v) == 0);
    MUST(pyr_resize(a, AT(8, 10), &v) == 0);
    MUST(pyr_resize(a, AT(12, 12), &v) == 0);
    for (int i = 0; i < 144; i++)
        cells[i] = 5;
    MUST(pyr_write(a, AT(0, 0), AT(8, 8), cells, &v) == 0);
    MUST(pyr_tag(a, "third", 3) == 0);
    MUST(pyr_clone(a, 3, "c", &w->arrays[w->n++]) == 0);
    MUST(pyr_write(w->arrays[1], AT(6, 6), AT(2, 2), cells, &v) == 0);
}

/* Blobs of more than a block, pressed, with and without a mask. */
static inline void
make_pressed(world *w)
{
    static double cells[1100];
    pyr_version v;
    for (int i = 0; i < 1100; i++)
        cells[i] = i / 8;
    pyr_spec spec = {.ndim = 1,
                     .shape = AT(1100),
                     .chunk = AT(600),
                     .type = PYR_F64,
                     .codec = PYR_CODEC_LZ4};
    pyr_array *a = world_array(w, "a", &spec);
    MUST(pyr_write(a, AT(0), AT(1100), cells, &v) == 0);
    pyr_part part = {.offset = AT(10),
                     .size = AT(2),
                     .count = AT(100),
                     .stride = AT(5),
                     .buf = cells};
    MUST(pyr_write_list(a, &part, 1, NULL, &v) == 0);
    MUST(pyr_write(a, AT(550), AT(100), cells + 3, &v) == 0);
    MUST(pyr_append(a, 0, 7, cells, NULL, &v) == 0);
}

/* A chain that is long enough to be folded, over a plain aligned blob. */
static inline void
make_chain(world *w)
{
    static uint8_t cells[5000];
    pyr_version v;
    for (int i = 0; i < 5000; i++)
        cells[i] = (uint8_t)(i * 7);
    pyr_spec spec = {.ndim = 1,
                     .shape = AT(5000),
                     .chunk = AT(5000),
                     .type = PYR_U8};
    pyr_array *a = world_array(w, "a", &spec);
    MUST(pyr_write(a, AT(0), AT(5000), cells, &v) == 0);
    for (uint64_t i = 0; i < 34; i++)
        MUST(pyr_write(a, AT(i * 3), AT(5), cells + i, &v) == 0);
}

/* Subtrees of one value, which are not stored, written into and cut. */
static inline void
make_flats(world *w)
{
    int16_t cells[25];
    pyr_version v;
    for (int i = 0; i < 25; i++)
        cells[i] = (int16_t)(i * 3 - 7);
    pyr_spec spec = {.ndim = 2,
                     .shape = AT(68, 66),
                     .chunk = AT(4, 4),
                     .type = PYR_I16};
    pyr_array *a = world_array(w, "a", &spec);
    MUST(pyr_write(a, AT(30, 30), AT(5, 5), cells, &v) == 0);
    MUST(pyr_compute(a, 1, AT(0, 0), AT(68, 66), "x + 2", &v) == 0);
    MUST(pyr_write(a, AT(50, 9), AT(5, 5), cells, &v) == 0);
    MUST(pyr_resize(a, AT(40, 66), &v) == 0);
    MUST(pyr_resize(a, AT(70, 66), &v) == 0);
    MUST(pyr_compute(a, 2, AT(1, 0), AT(67, 66), "x * 0", &v) == 0);
}

/* --- what is stored ------------------------------------------------------ */

/* Give an entry of a map other bytes, which it does not own. */
static inline void
set_value(pyri_mem_entry *e, uint8_t *bytes, size_t size)
{
    e->value = (pyri_bytes){bytes, size};
}

/* Texts and times that are the same in every run; the bytes are the heap's. */
static inline void
level_record(pyri_mem_entry *e, pyri_buf *out)
{
    static pyri_record r;
    MUST(pyri_record_decode(e->value, &r) == 0);
    r.who = "w";
    r.time_ns = 1;
    pyri_record_encode(&r, out);
    MUST(!out->failed);
    set_value(e, out->data, out->size);
    pyri_record_fini(&r);
}

static inline void
level_schema(pyri_mem_entry *e, pyri_buf *out)
{
    static pyri_schema s;
    MUST(pyri_schema_decode(e->value, &s) == 0);
    strcpy(s.who, "w");
    s.created_ns = 1;
    pyri_schema_encode(&s, out);
    MUST(!out->failed);
    set_value(e, out->data, out->size);
    pyri_form_fini(&s.form);
}

static inline void
world_make(world *w, int scene)
{
    pyr_store_options options = {.lease_ms = 50};
    *w = (world){0};
    fuzz_seed(1);
    MUST(pyr_open_with("mem:", PYR_OPEN_CREATE, &options, &w->store) == 0);
    w->mem = pyri_mem_store_of(w->store->engine);
    switch (scene) {
    case 0: make_plane(w); break;
    case 1: make_pressed(w); break;
    case 2: make_chain(w); break;
    default: make_flats(w); break;
    }
}

static inline void
world_close_arrays(world *w)
{
    for (int i = 0; i < w->n; i++)
        pyr_array_close(w->arrays[i]);
    w->n = 0;
}

#endif
