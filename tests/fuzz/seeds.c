/*
 * fuzz/seeds.c - first inputs for the targets, from stores that the library
 * itself makes.
 *
 *     seeds DIRECTORY        makes DIRECTORY/TARGET/seed-N
 *
 * Texts (URLs, boxes, ...) are written by hand here; everything else is what
 * the scenes of world.h hold.
 */
#include "fuzz/object.h"
#include "fuzz/world.h"

#include "array/handlers.h"
#include "engine/local/mailbox.h"
#include "op/op.h"
#include "support/tmp_store.h"

#include <errno.h>

static const char *directory;

static void
save(const char *target, const void *bytes, size_t size)
{
    static unsigned number;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, target);
    MUST(mkdir(path, 0777) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/%s/seed-%u", directory, target, number++);
    FILE *f = fopen(path, "w");
    MUST(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
}

static void
save_buf(const char *target, pyri_buf *b)
{
    MUST(!b->failed);
    save(target, b->data, b->size);
    pyri_buf_fini(b);
}

static void
save_text(const char *target, const void *head, size_t head_size,
          const char *text)
{
    pyri_buf b = {0};
    pyri_buf_add(&b, head, head_size);
    pyri_buf_add(&b, text, strlen(text));
    save_buf(target, &b);
}

/* --- from stores --------------------------------------------------------- */

static void
save_blob(const world *w, const pyri_schema *s, const pyri_frag *f)
{
    pyri_buf b = {0};
    if (f->kind == PYRI_FRAG_SAME || f->ref[0] > w->mem->nblobs)
        return;
    const pyri_mem_blob *blob = &w->mem->blobs[f->ref[0] - 1];
    size_t head = (size_t)pyri_frag_head_size(f);
    pyri_buf_u8(&b, (uint8_t)((f->kind == PYRI_FRAG_PRESSED) |
                              (f->masked ? 2 : 0) | (int)s->codec << 2));
    pyri_buf_u8(&b, (uint8_t)s->type);
    pyri_buf_u8(&b, (uint8_t)(s->ndim - 1));
    for (int d = 0; d < s->ndim; d++)
        pyri_buf_varint(&b, f->box.hi[d] - f->box.lo[d]);
    pyri_buf_add(&b, blob->data + head, (size_t)blob->size - head);
    save_buf("blob", &b);
}

static void
save_leaf(const world *w, const pyri_schema *s, const pyri_node *node)
{
    pyri_box all = {.lo = {0}};
    pyri_leaf_walk walk;
    pyri_frag f;
    for (int d = 0; d < s->ndim; d++)
        all.hi[d] = s->chunk[d];
    MUST(pyri_leaf_begin(node, s->ndim, &all, &walk) == 0);
    for (int i = 0; walk.left && i < 2; i++) {
        MUST(pyri_leaf_next(&walk, &f) == 0);
        save_blob(w, s, &f);
    }
}

static void
save_summaries(const pyri_schema *s, const pyri_mem_entry *e)
{
    pyri_buf b = {0};
    const uint8_t *at = e->value.data;
    pyri_buf_u8(&b, (uint8_t)s->type);
    pyri_buf_u64(&b, s->fill);
    pyri_buf_add(&b, at + 40, PYRI_SUMMARY_BYTES);
    pyri_buf_add(&b, at + 40, PYRI_SUMMARY_BYTES);
    save_buf("summary", &b);
}

static void
save_node(const world *w, const pyri_schema *s, const pyri_mem_entry *e)
{
    pyri_buf b = {0};
    pyri_node node;
    const uint8_t *key = e->key.data;
    pyri_cursor pos = pyri_cursor_of(key + 17, e->key.size - 17);
    pyri_buf_u8(&b, 3);
    pyri_buf_u8(&b, (uint8_t)s->type);
    pyri_buf_u8(&b, (uint8_t)(s->ndim - 1));
    pyri_buf_u64(&b, pyri_load64_be(key));
    pyri_buf_u64(&b, pyri_load64_be(key + 8));
    pyri_buf_u8(&b, key[16]);
    for (int d = 0; d < s->ndim; d++) {
        pyri_buf_varint(&b, pyri_cursor_varint(&pos));
        pyri_buf_varint(&b, s->chunk[d]);
    }
    pyri_buf_add(&b, e->value.data, e->value.size);
    save_buf("node", &b);
    MUST(pyri_node_open(e->key, e->value, &node) == 0);
    if (node.level == 0)
        save_leaf(w, s, &node);
    save_summaries(s, e);
}

static void
save_record(const pyri_mem_entry *e)
{
    static pyri_record r;
    pyri_buf b = {0};
    MUST(pyri_record_decode(e->value, &r) == 0);
    pyri_buf_u8(&b, 1);
    r.who = "w";
    r.time_ns = 1;
    pyri_record_encode(&r, &b);
    save_buf("record", &b);
    pyri_form_encode(&r.form, &b);
    pyri_buf_u64(&b, 3);
    save_buf("form", &b);
    pyri_buf_u8(&b, (uint8_t)(r.form.ndim - 1));
    for (int d = 0; d < 2 * r.form.ndim; d++)
        pyri_buf_u8(&b, (uint8_t)(3 + d));
    pyri_claim_encode(&r.claim, &b);
    save_buf("claim", &b);
    pyri_record_fini(&r);
}

static void
save_schema(pyri_schema *s)
{
    pyri_buf b = {0};
    strcpy(s->who, "w");
    s->created_ns = 1;
    pyri_buf_u8(&b, 1);
    pyri_schema_encode(s, &b);
    save_buf("schema", &b);
}

static void
save_handlers(void)
{
    pyri_buf b = {0};
    pyri_handler_list l = {.next = 7, .n = 2};
    l.list[0] = (pyri_handler){.number = 2, .event = 1, .who = "w",
                               .text = "x + 1"};
    l.list[1] = (pyri_handler){.number = 6, .event = 1, .who = "w",
                               .text = "where(isnan(x), 0, x)"};
    pyri_buf_u8(&b, 1);
    pyri_handler_list_encode(&l, &b);
    save_buf("handler", &b);
}

static void
save_expressions(void)
{
    static const char *const texts[] = {
        "x * 1.8 + 32",
        "where(x > 3, x@5, i0) + sqrt(x@9)",
        "i1 % 7 == x",
        "clip(x ** 2, 1, 1e3) // 3",
        "sin(x) ** cos(x@2) - atan2(i0, i1)",
        "max(x, 3, i1) && !(x < 2 || isnan(x * 0.5))",
        "u8(x) << 3 | 1",
        "hypot(x, x@1) % 2.5 + abs(round(x / 3.0))",
        "-x & 0x7f ^ ~i0 >> 2",
        "mean(where(x > 0, x, 0))",
        "max(abs(x - x@3))",
        "histogram(x, 0, 10, 5)",
        "quantile(x, 0.5)",
        "gain(factor=2.5) - median3()"};
    static pyri_expr e;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (uint8_t type = 0; type <= PYR_F64; type += 3) {
            pyri_buf b = {0};
            save_text("expr", (uint8_t[]){type, 1}, 2, texts[i]);
            if (pyri_expr_parse(texts[i], (pyr_type)type, 2, &e, NULL, NULL) <
                    0 || e.program.calls)
                continue;
            pyri_buf_u8(&b, type);
            pyri_program_encode(&e.program, &b);
            save_buf("program", &b);
        }
}

static void
save_scene(int scene)
{
    world w;
    int i = 0;
    world_make(&w, scene);
    for (int k = 0; k < w.n; k++)
        save_schema(&w.arrays[k]->array->schema);
    const pyri_schema *s = &w.arrays[0]->array->schema;
    for (pyri_mem_entry *e = w.mem->nodes.first[0]; e; e = e->next[0])
        if (scene != 2 || i++ % 16 == 0)
            save_node(&w, s, e);
    for (pyri_mem_entry *e = w.mem->history.first[0]; e; e = e->next[0])
        if (scene != 2 || i++ % 16 == 0)
            save_record(e);
    world_close_arrays(&w);
    pyr_close(w.store);
}

static void
save_marker(void)
{
    pyr_store *store;
    const char *path = tmp_fresh("store");
    char name[PATH_MAX], text[4096];
    MUST(pyr_open(path, PYR_OPEN_CREATE, &store) == 0);
    pyr_close(store);
    snprintf(name, sizeof name, "%.3000s/%s", path, PYRI_MARKER);
    MUST(pyri_file_read(name, text, sizeof text) == 0);
    save_text("marker", NULL, 0, text);
}

/* Sum, size, number and owner are left out: the target puts them right. */
static void
save_letter(void)
{
    static uint8_t bytes[4096];
    uint64_t shape[2] = {10, 20};
    pyri_node_put node = {{"a key", 5}, {"its value", 9}};
    pyri_blob blob = {{3, 4096}, 100000};
    pyri_complete c = {.array = 7, .version = 8, .shape = shape,
                       .nodes = &node, .nnodes = 1, .blobs = &blob,
                       .nblobs = 1, .record = {"a record", 8}};
    pyri_request r[2] = {{.next = &r[1], .c = &c, .ndim = 2},
                         {.c = &c, .ndim = 2}};
    size_t size = pyri_letter_write(NULL, r, (pyri_postmark){1, 2}, bytes,
                                    sizeof bytes);
    MUST(size > 24);
    bytes[23] = 1;
    save("letter", bytes + 23, size - 23);
    pyri_letter l = {.requests = r, .n = 2, .mark = {1, 2}};
    static uint8_t answer[PYRI_ANSWER_SIZE];
    pyri_answer_write(&l, answer);
    answer[23] = 1;
    save("letter", answer + 23, pyri_load32(answer + 8) - 23);
}

/* --- for the object class ------------------------------------------------ */

static void
add_boxes(pyri_buf *b, int n)
{
    for (int i = 0; i < 2 * n; i++) {
        pyri_buf_varint(b, object_box.lo[i % 2]);
        pyri_buf_varint(b, object_box.hi[i % 2]);
    }
}

static void
add_sized(pyri_buf *b, pyri_buf *part)
{
    MUST(!part->failed);
    pyri_buf_varint(b, part->size);
    pyri_buf_add(b, part->data, part->size);
    pyri_buf_fini(part);
}

/* The work of an expression: of the blob of fuzz/object.h, or of cells that
 * come along. */
static void
add_work(pyri_buf *b, pyr_type type, const pyri_expr *e, bool blob)
{
    pyri_buf code = {0};
    pyri_buf_u64(b, 7);
    pyri_buf_u8(b, 2);
    pyri_buf_u8(b, (uint8_t)type);
    pyri_buf_u64(b, 0);
    add_boxes(b, 1);
    pyri_buf_u8(b, 1);
    pyri_program_encode(&e->program, &code);
    add_sized(b, &code);
    pyri_buf_varint(b, blob ? e->program.sources : 0);
    for (int i = 0; blob && i < e->program.sources; i++) {
        pyri_packer k;
        pyri_frag f;
        object_pack(type, &k, &f);
        pyri_buf_u8(b, (uint8_t)i);
        pyri_buf_u8(b, 0);
        add_boxes(b, 2);
        pyri_buf_varint(b, 0);
        pyri_buf_varint(b, f.stored);
        pyri_buf_u64(b, f.check);
        pyri_packer_fini(&k);
    }
}

static void
add_deed(pyri_buf *b, uint8_t what, pyri_buf *request)
{
    MUST(!request->failed);
    pyri_buf_u8(b, what);
    pyri_buf_u16(b, (uint16_t)request->size);
    pyri_buf_add(b, request->data, request->size);
    pyri_buf_fini(request);
}

static void
add_numbered(pyri_buf *b, uint8_t what, uint64_t number)
{
    pyri_buf q = {0};
    pyri_buf_u64(&q, number);
    add_deed(b, what, &q);
}

static void
add_store(pyri_buf *b, pyr_type type, const pyri_expr *e)
{
    pyri_buf q = {0}, cells = {0};
    size_t size = OBJECT_CELLS * pyri_type_size(type);
    uint8_t *to = pyri_buf_extend(&cells, size);
    MUST(to);
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(i * i);
    add_sized(&q, &cells);
    add_work(&q, type, e, false);
    add_deed(b, OBJECT_STORE, &q);
}

static void
save_deeds(pyr_type type, const char *text)
{
    static pyri_expr e;
    uint64_t bins[64];
    pyri_buf b = {0}, q = {0}, how = {0};
    pyri_quantile quantile;
    MUST(pyri_expr_parse(text, type, 2, &e, NULL, NULL) == 0);
    pyri_buf_u8(&b, type == PYR_F64);
    if (e.form == PYRI_FORM_REDUCE) {
        pyri_quantile_init(&quantile, &e.reduction, e.program.kind, 64, bins);
        pyri_serve_ask(&e.reduction, &quantile, &how);
        add_sized(&q, &how);
        add_work(&q, type, &e, true);
        add_deed(&b, OBJECT_REDUCE, &q);
        save_buf("work", &b);
        return;
    }
    for (uint64_t number = 5; number < 7; number++) {
        pyri_buf_u64(&q, number);
        add_work(&q, type, &e, true);
        add_deed(&b, OBJECT_COMPUTE, &q);
    }
    add_numbered(&b, OBJECT_MADE, 5);
    add_numbered(&b, OBJECT_RELEASE, 5);
    add_numbered(&b, OBJECT_RELEASE, 0);
    save_buf("work", &b);
    if (e.program.sources > 1)
        return;
    pyri_buf_u8(&b, type == PYR_F64);
    add_numbered(&b, OBJECT_RELEASE, 0);
    add_store(&b, type, &e);
    save_buf("work", &b);
}

/* One number for two blobs, and again when it is free. */
static void
save_repeats(void)
{
    static const char *const texts[] = {"x * 3", "x - 1", "x - 1"};
    static pyri_expr e;
    pyri_buf b = {0}, q = {0};
    pyri_buf_u8(&b, 0);
    for (int i = 0; i < 3; i++) {
        MUST(pyri_expr_parse(texts[i], PYR_I16, 2, &e, NULL, NULL) == 0);
        pyri_buf_u64(&q, 5);
        add_work(&q, PYR_I16, &e, true);
        add_deed(&b, OBJECT_COMPUTE, &q);
        if (i == 1)
            add_numbered(&b, OBJECT_RELEASE, 5);
    }
    save_buf("work", &b);
}

/* A table with one slot, and a byte that is changed. */
static void
save_harm(void)
{
    pyri_buf b = {0}, q = {0};
    pyri_buf_u8(&b, 0);
    pyri_buf_u8(&q, 1);
    pyri_buf_u8(&q, 1);
    pyri_buf_u32(&q, 3);
    pyri_buf_u16(&q, 1);
    pyri_buf_u64(&q, 9);
    pyri_buf_u32(&q, 1);
    pyri_buf_u32(&q, 1);
    add_deed(&b, OBJECT_TABLE, &q);
    add_numbered(&b, OBJECT_HARM, 100 | (uint64_t)1 << 32);
    add_numbered(&b, OBJECT_RELEASE, 9);
    save_buf("work", &b);
}

static void
save_work(void)
{
    static const char *const texts[] = {
        "x * 3 + i0", "x - x@1", "x * 0", "where(x > 3, i1, x)",
        "sum(x)", "histogram(x, 0, 10, 5)", "quantile(x, 0.5)", "argmax(x)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        save_deeds(PYR_I16, texts[i]);
        save_deeds(PYR_F64, texts[i]);
    }
    save_repeats();
    save_harm();
}

/* --- by hand ------------------------------------------------------------- */

static void
save_texts(void)
{
    static const char *const urls[] = {"file:///a%20b", "file://localhost/x",
                                       "mem:x", "rados:pool", "a/b:c"};
    static const char *const boxes[] = {"1:5,::2", "...,-1", "3", ":", "-4:-1"};
    static const char *const objects[] = {
        "{}", "{\"a\":[1,-2.5e+3,true,null,{\"b\":\"\\u00e4\\n\"}]}",
        "{\"\xc3\xa4\":\"\xe2\x82\xac\"}"};
    static const char *const numbers[] = {"0",     "18446744073709551615",
                                          "12,34", "-1.5e3",
                                          "nan",   "f32",
                                          "zstd"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        save_text("url", NULL, 0, urls[i]);
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
        save_text("box", "\1\12\24", 3, boxes[i]);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        save_text("json", NULL, 0, objects[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (uint8_t what = 0; what < 4; what++)
            save_text("number", (uint8_t[]){what, (uint8_t)i}, 2, numbers[i]);
    static const char first[] = "\x93NUMPY\1\0\x40\0{'descr': '<f8', "
                                "'fortran_order': False, 'shape': (3, 4), }\n";
    static const char third[] = "\x93NUMPY\3\0\x40\0\0\0{'shape':(7L,),"
                                "'fortran_order':True,'descr':'|b1'}";
    save("npy", first, sizeof first - 1);
    save("npy", third, sizeof third - 1);
}

/* Edits of catalogs and stores, values of the embedded engine. */
static void
save_edits(void)
{
    save("catalog", "\4\1y\1\2\3\4\5\6\7\10", 11);
    save("catalog", "\7\3/t2\2\0\0\0\0\0\0\0", 13);
    save("catalog", "\2\11{\"a\":[1]}", 11);
    for (uint8_t scene = 0; scene < SCENES; scene++)
        for (uint8_t how = 0; how < 48; how++) {
            uint8_t edit[] = {scene, 0, how, how, (uint8_t)(5 * how), 1, 40, 0,
                              3,     1, 2,   3};
            save("store", edit, sizeof edit);
            edit[0] |= 0xc0;
            if (how % 4 == 0)
                save("store", edit, sizeof edit);
        }
    uint8_t value[64] = {0, 0, 9, [14] = 2, [26] = 10, [34] = 20};
    save("local", value, 45);
    value[0] = 1;
    save("local", value, 14);
    value[0] = 2;
    save("local", value, 14);
    save("local",
         "\3\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\12\0\0\0\0\0\0\0\24\0\0"
         "\0\0\0\0",
         34);
    save("local", "\4\1\2\12\0\0\0\0\0\0\0\24\0\0\0\0\0\0\0record", 25);
    save("local", "\6\1\0\200\40\0\200\140", 8);
    save("local", "\5\3PYRSEG1\n\1\0\0\0\5\0\0\0", 18);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    directory = argv[1];
    for (int scene = 0; scene < SCENES; scene++)
        save_scene(scene);
    save_marker();
    save_letter();
    save_work();
    save_handlers();
    save_expressions();
    save_texts();
    save_edits();
    return 0;
}
