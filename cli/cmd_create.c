/*
 * cli/cmd_create.c - pyramid create: make an array.
 */
#include "cmd.h"

static const option options[] = {
    {"shape", 0, "N,N,...", "cells along each axis (needed)"},
    {"type", 0, "TYPE", "i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 (needed)"},
    {"chunk", 0, "N,N,...", "cells of a chunk; chosen if not given"},
    {"fill", 0, "VALUE", "what cells are before they are written; 0"},
    {"codec", 0, "CODEC", "none (default), lz4 or zstd"},
    {"level", 0, "N", "of compression, 1 to 9; 0: chosen"},
    {"attrs", 0, "JSON", "attributes, a JSON object"},
    {NULL, 0, NULL, NULL},
};

typedef struct request {
    extents shape, chunk;
    uint64_t fill;
    pyr_spec spec;
} request;

static int
parse_shapes(const args *a, request *r)
{
    char why[WHY_SIZE];
    const char *shape = args_value(a, "shape");
    const char *chunk = args_value(a, "chunk");
    if (!shape)
        return misuse(a->verb, "create: --shape is needed");
    if (parse_extents(shape, &r->shape, why) < 0)
        return misuse(a->verb, "create: --shape %s", why);
    r->spec.ndim = r->shape.n;
    r->spec.shape = r->shape.of;
    if (!chunk)
        return 0;
    if (parse_extents(chunk, &r->chunk, why) < 0)
        return misuse(a->verb, "create: --chunk %s", why);
    if (r->chunk.n != r->shape.n)
        return misuse(a->verb, "create: --chunk has %d numbers, --shape %d",
                      r->chunk.n, r->shape.n);
    r->spec.chunk = r->chunk.of;
    return 0;
}

static int
parse_cells(const args *a, request *r)
{
    char why[WHY_SIZE];
    const char *type = args_value(a, "type");
    const char *fill = args_value(a, "fill");
    if (!type)
        return misuse(a->verb, "create: --type is needed");
    if (parse_type(type, &r->spec.type) < 0)
        return misuse(a->verb,
                      "create: --type '%s' is none of i8 u8 i16 u16 "
                      "i32 u32 i64 u64 f32 f64",
                      type);
    if (!fill)
        return 0;
    if (parse_cell(fill, r->spec.type, &r->fill, why) < 0)
        return misuse(a->verb, "create: --fill %s", why);
    r->spec.fill = &r->fill;
    return 0;
}

static int
parse_compression(const args *a, request *r)
{
    const char *codec = args_value(a, "codec");
    uint64_t level;
    int err = args_number(a, "level", 0, 9, &level);
    if (err)
        return err;
    r->spec.level = (int)level;
    if (codec && parse_codec(codec, &r->spec.codec) < 0)
        return misuse(a->verb, "create: --codec '%s' is not none, lz4 or zstd",
                      codec);
    return 0;
}

static int
print_made(const args *a, pyr_array *array)
{
    pyr_info info;
    json j;
    int err;
    if (!a->json)
        return 0;
    if (pyr_array_info(array, PYR_LATEST, &info) < 0)
        return fail_pyr(a->words[1]);
    if ((err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_text(&j, "store", a->words[0]);
    json_text(&j, "array", a->words[1]);
    json_text(&j, "type", type_name(info.type));
    json_list(&j, "shape", info.ndim, info.shape);
    json_list(&j, "chunk", info.ndim, info.chunk);
    json_u64(&j, "version", info.latest);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    request r = {.spec = {.attributes = args_value(a, "attrs")}};
    target t;
    int err = parse_shapes(a, &r);
    if (!err)
        err = parse_cells(a, &r);
    if (!err)
        err = parse_compression(a, &r);
    if (err)
        return err;
    err = target_store(a, PYR_OPEN_CREATE, &t);
    if (!err && pyr_create(t.store, a->words[1], &r.spec, &t.array) < 0)
        err = fail_pyr(a->words[1]);
    if (!err)
        err = print_made(a, t.array);
    target_close(&t);
    return err;
}

const verb verb_create = {
    .name = "create",
    .usage = "STORE ARRAY --shape N,N,... --type TYPE [options]",
    .about = "Make an array, and the store if it is not there.",
    .more = "It costs nothing however large the shape is: cells take room "
            "when they are\nwritten. Version 0 is all fill.",
    .examples =
        "  pyramid create demo.pyr t --shape 8192,8192 --type f64\n"
        "  pyramid create demo.pyr ocean/salt --shape 0,720,1440 --type f32 "
        "\\\n      --chunk 24,256,256 --fill nan --codec zstd\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
