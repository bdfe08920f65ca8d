/*
 * cli/cmd_info.c - pyramid info: what an array is, as of one version.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"version", 0, "V", "a number, latest, -1 (the one before), a tag"},
    {NULL, 0, NULL, NULL},
};

static uint64_t
count_cells(const pyr_info *info)
{
    uint64_t cells = 1;
    for (int d = 0; d < info->ndim; d++)
        cells *= info->shape[d];
    return cells;
}

static int
json_tag(void *ctx, const char *tag, pyr_version version)
{
    json_u64(ctx, tag, version);
    return 0;
}

static int
print_tag(void *ctx, const char *tag, pyr_version version)
{
    bool *any = ctx;
    printf("%s", *any ? ", " : "tags       ");
    print_safe(stdout, tag);
    printf(" = %llu", (unsigned long long)version);
    *any = true;
    return 0;
}

static int
show_json(const target *t, const char *attributes)
{
    const pyr_info *i = &t->info;
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    json_open(&j, NULL, '{');
    json_text(&j, "name", t->array_name);
    json_text(&j, "type", type_name(i->type));
    json_list(&j, "shape", i->ndim, i->shape);
    json_list(&j, "chunk", i->ndim, i->chunk);
    json_cell(&j, "fill", i->type, i->fill);
    json_text(&j, "codec", codec_name(i->codec));
    json_i64(&j, "level", i->level);
    json_u64(&j, "version", i->version);
    json_u64(&j, "latest", i->latest);
    json_time(&j, "created", i->created_ns);
    if (*i->clone_of) {
        json_text(&j, "clone_of", i->clone_of);
        json_u64(&j, "clone_version", i->clone_version);
    }
    json_raw(&j, "attributes", attributes);
    json_open(&j, "tags", '{');
    err = pyr_tags(t->array, json_tag, &j) < 0 ? target_fail(t) : 0;
    json_shut(&j, '}');
    json_shut(&j, '}');
    if (!err)
        return json_print(&j);
    json_drop(&j);
    return err;
}

static void
print_cost(const pyr_info *i)
{
    char text[32];
    uint64_t bytes, cells = count_cells(i);
    printf("cells      %llu", (unsigned long long)cells);
    if (mul_u64(cells, type_size(i->type), &bytes))
        printf(" (%s)", bytes_text(bytes, text, sizeof text));
    putchar('\n');
}

static int
show_text(const target *t, const char *attributes)
{
    const pyr_info *i = &t->info;
    char fill[CELL_TEXT];
    cell_text(i->type, i->fill, fill);
    printf("name       ");
    print_safe(stdout, t->array_name);
    printf("\ntype       %s\nshape      ", type_name(i->type));
    print_list(",", i->ndim, i->shape);
    printf("\nchunk      ");
    print_list(",", i->ndim, i->chunk);
    putchar('\n');
    print_cost(i);
    printf("fill       %s\ncodec      %s", fill, codec_name(i->codec));
    if (i->codec != PYR_CODEC_NONE && i->level)
        printf(" level %d", i->level);
    printf("\nversion    %llu of %llu\ncreated    ",
           (unsigned long long)i->version, (unsigned long long)i->latest);
    print_time(i->created_ns);
    putchar('\n');
    if (*i->clone_of) {
        printf("clone of   ");
        print_safe(stdout, i->clone_of);
        printf(" version %llu\n", (unsigned long long)i->clone_version);
    }
    bool any = false;
    if (pyr_tags(t->array, print_tag, &any) < 0)
        return target_fail(t);
    printf("%sattributes ", any ? "\n" : "");
    print_safe(stdout, attributes);
    putchar('\n');
    return 0;
}

static int
run(const args *a)
{
    target t;
    char *attributes = NULL;
    int err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err)
        err = target_snapshot(a, &t);
    if (!err && pyr_attributes(t.array, &attributes) < 0)
        err = target_fail(&t);
    if (!err)
        err = a->json ? show_json(&t, attributes) : show_text(&t, attributes);
    free(attributes);
    target_close(&t);
    return err;
}

const verb verb_info = {
    .name = "info",
    .usage = "STORE ARRAY [--version V]",
    .about = "Show what an array is: type, shape, chunks, tags, attributes.",
    .examples = "  pyramid info demo.pyr t\n"
                "  pyramid info demo.pyr t --version 3 --json\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
