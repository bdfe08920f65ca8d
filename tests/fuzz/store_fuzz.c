/*
 * fuzz/store_fuzz.c - a whole store with damage in it.
 *
 * A small store is made in memory (world.h), some of what it holds is changed,
 * and then it is read, summed up, compared, listed and written to. If the
 * checksums were left as they were, every answer is the right one or an error
 * that says the store is damaged. If they were put right (a liar wrote the
 * store), any answer will do, as long as there is one.
 *
 * Input: scene (1; both upper bits: write to it too), array and version to ask about (1
 * each), then edits: what and how (1: bits 0-1 node, record of a version, blob,
 * record of an array; bit 2: put the checksum right; bits 3-5 the operation),
 * which (1), and its arguments.
 *
 * A store that is not written to is made once, and put right after each run.
 */
#include "fuzz/world.h"

#include <math.h>

enum { NODE, VERSION, BLOB, SCHEMA, SEALED = 4, WRITING = 0xc0 };
enum { MAX_EDITS = 6, MAX_ENTRIES = 256, MAX_VERSIONS = 40, MAX_ANSWERS = 16 };

/* --- what can be changed ------------------------------------------------- */

typedef struct things {
    pyri_mem_entry *entries[SCHEMA + 1][MAX_ENTRIES];
    int n[SCHEMA + 1];
    pyri_bytes values[SCHEMA + 1][MAX_ENTRIES]; /* as they were, */
    pyri_mem_blob blobs[MAX_ENTRIES];           /* and these */
    pyri_buf kept[4 * MAX_ENTRIES];             /* memory behind values */
    int nkept, nlevel; /* the first ones are of the store itself */
    bool lied;         /* some checksum is right for other bytes than it was */
} things;

static pyri_buf *
keep(things *t)
{
    MUST(t->nkept < 4 * MAX_ENTRIES);
    t->kept[t->nkept] = (pyri_buf){0};
    return &t->kept[t->nkept++];
}

static void
drop_kept(things *t, int down_to)
{
    while (t->nkept > down_to)
        pyri_buf_fini(&t->kept[--t->nkept]);
}

/* Entries of one map, in order of the arrays' making, then of their keys. */
static void
list_map(things *t, int kind, const world *w, pyri_mem_map *map,
         const char *prefix)
{
    size_t skip = strlen(prefix);
    for (int i = 0; i < w->n; i++) {
        uint8_t id[8];
        pyri_store64_be(id, w->arrays[i]->array->id);
        for (pyri_mem_entry *e = map->first[0]; e; e = e->next[0])
            if (e->key.size >= skip + 8 && t->n[kind] < MAX_ENTRIES &&
                memcmp(e->key.data, prefix, skip) == 0 &&
                memcmp((const uint8_t *)e->key.data + skip, id, 8) == 0)
                t->entries[kind][t->n[kind]++] = e;
    }
}

static void
list_things(things *t, world *w)
{
    memset(t, 0, sizeof *t);
    list_map(t, NODE, w, &w->mem->nodes, "");
    list_map(t, VERSION, w, &w->mem->history, "");
    list_map(t, SCHEMA, w, &w->mem->records, "array/");
    t->n[BLOB] = (int)w->mem->nblobs;
    MUST(t->n[BLOB] < MAX_ENTRIES && t->n[NODE] < MAX_ENTRIES);
    memcpy(t->blobs, w->mem->blobs, w->mem->nblobs * sizeof *t->blobs);
    for (int i = 0; i < t->n[VERSION]; i++)
        level_record(t->entries[VERSION][i], keep(t));
    for (int i = 0; i < t->n[SCHEMA]; i++)
        level_schema(t->entries[SCHEMA][i], keep(t));
    t->nlevel = t->nkept;
    for (int kind = NODE; kind <= SCHEMA; kind++)
        for (int i = 0; kind != BLOB && i < t->n[kind]; i++)
            t->values[kind][i] = t->entries[kind][i]->value;
}

static void
put_right(things *t, world *w)
{
    for (int kind = NODE; kind <= SCHEMA; kind++)
        for (int i = 0; kind != BLOB && i < t->n[kind]; i++)
            t->entries[kind][i]->value = t->values[kind][i];
    for (int i = 0; i < t->n[BLOB]; i++)
        w->mem->blobs[i] = t->blobs[i];
    drop_kept(t, t->nlevel);
    t->lied = false;
}

/* --- checksums ----------------------------------------------------------- */

static void
seal_entry(int kind, const pyri_mem_entry *e, uint8_t *bytes, size_t size)
{
    if (kind != NODE)
        seal_record(bytes, size);
    else if (size >= 8)
        pyri_store64(bytes, pyri_hash64(e->key.data, e->key.size) +
                                pyri_hash64(bytes + 8, size - 8));
}

/* The fragments of a leaf that lie in a blob are told its new checksum. */
static void
reseal_leaf(things *t, const world *w, pyri_mem_entry *e, size_t number)
{
    const pyri_schema *schema = &w->arrays[0]->array->schema;
    const pyri_mem_blob *blob = &w->mem->blobs[number];
    pyri_box all = {.lo = {0}};
    pyri_node node;
    pyri_leaf leaf = {0};
    pyri_leaf_walk walk;
    pyri_frag frags[128];
    bool hit = false;
    for (int d = 0; d < schema->ndim; d++)
        all.hi[d] = schema->chunk[d];
    if (pyri_node_open(e->key, e->value, &node) < 0 || node.level ||
        pyri_node_about(&node, schema->type, &leaf.about) < 0 ||
        pyri_leaf_begin(&node, schema->ndim, &all, &walk) < 0)
        return;
    for (leaf.prev = walk.prev; walk.left && leaf.n < 128; leaf.n++) {
        pyri_frag *f = &frags[leaf.n];
        if (pyri_leaf_next(&walk, f) < 0)
            return;
        uint64_t head = pyri_frag_head_size(f);
        if (f->ref[0] != number + 1 || f->kind == PYRI_FRAG_SAME ||
            blob->size <= head)
            continue;
        f->stored = blob->size - head;
        if (pyri_frag_head_size(f) != head)
            return;
        for (uint64_t at = 0; at < f->stored; at += PYRI_BLOCK) {
            uint64_t n = f->stored - at;
            pyri_store64(blob->data + 64 + at / PYRI_BLOCK * 8,
                         pyri_hash64(blob->data + head + at,
                                     n < PYRI_BLOCK ? (size_t)n : PYRI_BLOCK));
        }
        f->check = pyri_hash64(blob->data, (size_t)head);
        hit = true;
    }
    if (!hit)
        return;
    pyri_buf *out = keep(t);
    leaf.frags = frags;
    pyri_leaf_encode(e->key, &leaf, schema->type, schema->ndim, &all, out);
    set_value(e, out->data, out->size);
}

/* --- editing ------------------------------------------------------------- */

static void
splice(pyri_buf *b, size_t at, size_t gone, const uint8_t *bytes, size_t n)
{
    pyri_buf tail = {0};
    pyri_buf_add(&tail, b->data + at + gone, b->size - at - gone);
    b->size = at;
    pyri_buf_add(b, bytes, n);
    pyri_buf_add(b, tail.data, tail.size);
    pyri_buf_fini(&tail);
}

/* Change bytes as the input says. */
static void
operate(pyri_cursor *in, int op, pyri_buf *b, pyri_bytes other)
{
    size_t at = b->size ? pyri_cursor_u16(in) % b->size : 0;
    size_t n = op == 1 || op == 2 ? pyri_cursor_u8(in) % 32 : 0;
    const uint8_t *bytes = pyri_cursor_take(in, n);
    uint8_t with = op == 0 ? pyri_cursor_u8(in) : 0;
    if (op == 0 && b->size)
        b->data[at] ^= with;
    else if (op == 1 && bytes)
        splice(b, at, n < b->size - at ? n : b->size - at, bytes, n);
    else if (op == 2 && bytes)
        splice(b, at, 0, bytes, n);
    else if (op == 3)
        b->size = at;
    else if (op == 4)
        splice(b, at, pyri_cursor_u8(in) % (b->size - at + 1), NULL, 0);
    else if (op == 5)
        splice(b, 0, b->size, other.data, other.size);
}

static void
edit_blob(things *t, world *w, pyri_cursor *in, uint8_t how, size_t i)
{
    pyri_mem_blob *blob = &w->mem->blobs[i];
    pyri_buf *b = keep(t);
    pyri_buf_add(b, blob->data, (size_t)blob->size);
    operate(in, how >> 3 & 7, b, (pyri_bytes){blob->data, 0});
    pyri_buf_add(b, "", 1); /* so that there is memory */
    blob->data = b->data;
    blob->size = b->size - 1;
    if (!(how & SEALED))
        return;
    t->lied = true;
    for (int k = 0; k < t->n[NODE]; k++)
        reseal_leaf(t, w, t->entries[NODE][k], i);
}

static void
edit_entry(things *t, pyri_cursor *in, uint8_t how, int i)
{
    int kind = how & 3;
    pyri_mem_entry *e = t->entries[kind][i];
    pyri_buf *b = keep(t), *sealed = keep(t);
    pyri_bytes was = e->value;
    /* A record does not say of which version it is. */
    int other = kind == NODE ? pyri_cursor_u8(in) % t->n[kind] : i;
    pyri_buf_add(b, e->value.data, e->value.size);
    operate(in, how >> 3 & 7, b, t->entries[kind][other]->value);
    pyri_buf_add(sealed, b->data, b->size);
    seal_entry(kind, e, sealed->data, sealed->size);
    if (how & SEALED)
        b = sealed;
    bool same = b->size == was.size && memcmp(b->data, was.data, b->size) == 0;
    if (!same && are_same(b, sealed)) /* a fuzzer may guess it, too */
        t->lied = true;
    uint8_t *exact = malloc(b->size + 1); /* its end is seen */
    MUST(exact);
    memcpy(exact, b->data, b->size);
    pyri_buf *own = keep(t);
    own->data = realloc(exact, b->size ? b->size : 1);
    set_value(e, own->data, b->size);
}

static void
edit_all(things *t, world *w, pyri_cursor *in)
{
    for (int i = 0; i < MAX_EDITS && !in->failed && in->at < in->end; i++) {
        uint8_t how = pyri_cursor_u8(in), which = pyri_cursor_u8(in);
        int n = t->n[how & 3];
        if (n == 0)
            continue;
        if ((how & 3) == BLOB)
            edit_blob(t, w, in, how, which % (size_t)n);
        else
            edit_entry(t, in, how, which % n);
    }
}

/* --- asking -------------------------------------------------------------- */

typedef struct answers {
    int err[MAX_ANSWERS];
    pyri_buf bytes[MAX_ANSWERS];
    int n;
} answers;

static pyri_buf *
next(answers *a)
{
    MUST(a->n < MAX_ANSWERS);
    a->bytes[a->n] = (pyri_buf){0};
    return &a->bytes[a->n];
}

static void
answer(answers *a, int err)
{
    MUST(err <= 0);
    MUST(err == 0 || pyr_errmsg()[0]);
    a->err[a->n++] = err;
}

static void
answers_fini(answers *a)
{
    for (int i = 0; i < a->n; i++)
        pyri_buf_fini(&a->bytes[i]);
    a->n = 0;
}

static int
tell_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    pyri_buf_add(ctx, offset, 8 * (size_t)ndim);
    pyri_buf_add(ctx, size, 8 * (size_t)ndim);
    return 0;
}

static int
tell_change(void *ctx, const pyr_change *c)
{
    pyri_buf *out = ctx;
    pyri_buf_u64(out, c->version);
    pyri_buf_u8(out, (uint8_t)c->kind);
    pyri_buf_str(out, c->who);
    pyri_buf_str(out, c->message);
    pyri_buf_str(out, c->expression);
    pyri_buf_add(out, c->shape, 8 * (size_t)c->ndim);
    for (size_t i = 0; i < c->nparts; i++) {
        tell_box(out, c->ndim, c->parts[i].offset, c->parts[i].size);
        if (c->parts[i].count)
            tell_box(out, c->ndim, c->parts[i].count, c->parts[i].stride);
    }
    return 0;
}

static void
add_double(pyri_buf *out, double v)
{
    pyri_buf_add(out, &v, sizeof v);
}

/* `size` is of the snapshot as it was made. */
static void
ask_stat(answers *a, pyr_array *array, pyr_version v, const uint64_t *at,
         const uint64_t *size, unsigned flags)
{
    pyr_stats s;
    pyri_buf *out = next(a);
    int err = pyr_stat(array, v, at, size, flags, &s);
    pyri_buf_u64(out, s.count);
    pyri_buf_u64(out, s.nans);
    pyri_buf_u64(out, s.not_fill);
    pyri_buf_u8(out, s.all_equal);
    add_double(out, s.min);
    add_double(out, s.max);
    add_double(out, s.sum);
    add_double(out, s.sum_squares);
    answer(a, err);
}

static void
ask_cells(answers *a, pyr_array *array, pyr_version v, const uint64_t *at,
          const uint64_t *size)
{
    pyri_buf *out = next(a);
    size_t cells = 1;
    int ndim = array->array->schema.ndim;
    for (int d = 0; d < ndim; d++)
        cells *= (size_t)size[d];
    uint8_t *to = pyri_buf_extend(out, 8 * cells);
    MUST(to);
    memset(to, 0, 8 * cells);
    answer(a, pyr_read(array, v, at, size, to));
}

static void
ask_snapshot(answers *a, pyr_array *array, pyr_version v, const uint64_t *shape)
{
    uint64_t at[PYR_MAX_DIMS] = {0}, size[PYR_MAX_DIMS];
    pyr_info info;
    pyr_version last = 0;
    int ndim = array->array->schema.ndim;
    pyri_buf *out = next(a);
    int err = pyr_array_info(array, v, &info);
    pyri_buf_add(out, info.shape, 8 * (size_t)ndim);
    pyri_buf_u64(out, info.version);
    answer(a, err);
    ask_cells(a, array, v, at, shape);
    ask_stat(a, array, v, at, shape, 0);
    ask_stat(a, array, v, at, shape, PYR_STAT_BOUNDS);
    for (int d = 0; d < ndim; d++) {
        at[d] = shape[d] / 3;
        size[d] = shape[d] / 2;
    }
    ask_cells(a, array, v, at, size);
    ask_stat(a, array, v, at, size, 0);
    out = next(a);
    err = pyr_last_change(array, v, at, size, &last);
    pyri_buf_u64(out, last);
    answer(a, err);
}

/* Shapes of the versions of both arrays, as they were made. */
typedef struct shapes {
    pyr_version latest[MAX_ARRAYS];
    uint64_t of[MAX_ARRAYS][MAX_VERSIONS][PYR_MAX_DIMS];
} shapes;

static void
ask_array(answers *a, pyr_array *array, const shapes *s, int i, pyr_version v)
{
    char *text = NULL;
    ask_snapshot(a, array, v, s->of[i][v]);
    pyri_buf *out = next(a);
    answer(a, pyr_diff(array, v, s->latest[i], tell_box, out));
    out = next(a);
    answer(a, pyr_diff(array, v, v ? v - 1 : 0, tell_box, out));
    out = next(a);
    answer(a, pyr_history(array, PYR_LATEST, 0, tell_change, out));
    out = next(a);
    int err = pyr_attributes(array, &text);
    pyri_buf_str(out, text ? text : "");
    answer(a, err);
    free(text);
}

static const char *const names[MAX_ARRAYS] = {"a", "c"};

/* In an order that does not depend on what is answered: if the array cannot be
 * opened, or has become another one, there is just that answer. */
static void
ask_all(answers *a, const world *w, const shapes *s, int i, pyr_version v)
{
    pyr_array *array;
    int err = pyr_array_open(w->store, names[i], &array);
    a->n = 0;
    (void)next(a);
    answer(a, err);
    if (err == 0 &&
        array->array->schema.ndim == w->arrays[i]->array->schema.ndim)
        ask_array(a, array, s, i, v);
    pyr_array_close(array);
}

/* --- writing ------------------------------------------------------------- */

/* What a write says it wrote is there. */
static void
try_writes(const world *w, bool lied)
{
    uint8_t cells[64 * 8], got[64 * 8];
    uint64_t at[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    pyr_version v;
    pyr_array *array;
    if (pyr_array_open(w->store, names[0], &array) < 0)
        return;
    for (size_t i = 0; i < sizeof cells; i++)
        cells[i] = (uint8_t)(3 * i);
    int ndim = array->array->schema.ndim;
    for (int k = 0; k < 3 && ndim <= 2; k++) {
        for (int d = 0; d < ndim; d++) {
            at[d] = (uint64_t)(2 * k);
            size[d] = (uint64_t)(6 - k);
        }
        if (pyr_write(array, at, size, cells, &v) < 0 ||
            pyr_read(array, v, at, size, got) < 0)
            continue;
        size_t n = pyri_type_size(array->array->schema.type);
        for (int d = 0; d < ndim; d++)
            n *= (size_t)size[d];
        MUST(lied || memcmp(cells, got, n) == 0);
    }
    for (int d = 0; d < ndim; d++)
        size[d] = (uint64_t)(5 + d);
    (void)!pyr_resize(array, size, &v);
    if (ndim == 1)
        (void)!pyr_append(array, 0, 3, cells, NULL, &v);
    pyr_array_close(array);
}

/* --- the run ------------------------------------------------------------- */

typedef struct scene {
    world world;
    things things;
    shapes shapes;
    answers answers[MAX_ARRAYS][MAX_VERSIONS]; /* the right ones */
} scene;

static scene scenes[SCENES];
static things fresh;

static void
make_scene(scene *s, int number)
{
    world_make(&s->world, number);
    list_things(&s->things, &s->world);
    for (int i = 0; i < s->world.n; i++) {
        pyr_version *latest = &s->shapes.latest[i];
        pyr_info info;
        MUST(pyr_latest(s->world.arrays[i], latest) == 0);
        MUST(*latest < MAX_VERSIONS);
        for (pyr_version v = 0; v <= *latest; v++) {
            MUST(pyr_array_info(s->world.arrays[i], v, &info) == 0);
            memcpy(s->shapes.of[i][v], info.shape, sizeof info.shape);
        }
        for (pyr_version v = 0; v <= *latest; v++) {
            answers *right = &s->answers[i][v];
            ask_all(right, &s->world, &s->shapes, i, v);
            for (int k = 0; k < right->n; k++)
                MUST(right->err[k] == 0);
        }
    }
}

/* Say where, then end. */
static void
differs(int i, const pyri_buf *a, const pyri_buf *b)
{
    size_t at = 0;
    while (at < a->size && at < b->size && a->data[at] == b->data[at])
        at++;
    fprintf(stderr,
            "answer %d is wrong from byte %zu of %zu on; %zu are right\n", i,
            at, a->size, b->size);
    must_be_same(a, b);
}

static void
compare(const answers *got, const answers *want)
{
    MUST(got->n == want->n || got->err[0] < 0);
    for (int i = 0; i < got->n; i++) {
        if (got->err[i] < 0)
            MUST(got->err[i] == PYR_ECORRUPT || got->err[i] == PYR_EFORMAT);
        else if (!are_same(&got->bytes[i], &want->bytes[i]))
            differs(i, &got->bytes[i], &want->bytes[i]);
    }
}

static void
run(scene *s, world *w, things *t, pyri_cursor *in)
{
    answers got;
    int i = take_below(in, w->n);
    pyr_version v = pyri_cursor_u8(in) % (s->shapes.latest[i] + 1);
    edit_all(t, w, in);
    ask_all(&got, w, &s->shapes, i, v);
    if (!t->lied)
        compare(&got, &s->answers[i][v]);
    answers_fini(&got);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size);
    uint8_t how = pyri_cursor_u8(&in);
    int number = (how & 0x3f) % SCENES;
    scene *s = &scenes[number];
    if (!s->world.store)
        make_scene(s, number);
    if ((how & WRITING) != WRITING) { /* writing is slow */
        run(s, &s->world, &s->things, &in);
        put_right(&s->things, &s->world);
        return 0;
    }
    world w;
    world_make(&w, number);
    list_things(&fresh, &w);
    run(s, &w, &fresh, &in);
    try_writes(&w, fresh.lied);
    put_right(&fresh, &w);
    world_close_arrays(&w);
    pyr_close(w.store);
    drop_kept(&fresh, 0);
    return 0;
}
