/*
 * cli/cmd_info.c - pyramid info: what an array is, as of one version.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"version", 0, "V", "a number, latest, -1 (the one before), a tag"},
    {"each", 0, NULL, "what each snapshot that is kept holds alone"},
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

static void
json_usage(json *j, const char *key, const pyr_usage *u)
{
    json_open(j, key, '{');
    json_u64(j, "fragments", u->fragments);
    json_u64(j, "nodes", u->nodes);
    json_u64(j, "bytes", u->bytes);
    json_shut(j, '}');
}

/* What each snapshot holds alone: as JSON, or as lines. */
typedef struct each_usage {
    const target *t;
    json *j; /* NULL: lines */
} each_usage;

static int
show_usage(void *ctx, const pyr_change *c)
{
    const each_usage *e = ctx;
    pyr_usage u;
    char key[32], text[32];
    int err = pyr_version_usage(e->t->array, c->version, &u);
    if (err < 0)
        return err;
    if (e->j) {
        snprintf(key, sizeof key, "%llu", (unsigned long long)c->version);
        json_usage(e->j, key, &u);
        return 0;
    }
    printf("%10llu  %10s  %llu fragments, %llu nodes\n",
           (unsigned long long)c->version,
           bytes_text(u.bytes, text, sizeof text),
           (unsigned long long)u.fragments, (unsigned long long)u.nodes);
    return 0;
}

static int
show_each(const target *t, json *j)
{
    each_usage e = {t, j};
    if (!j)
        puts("each snapshot alone holds");
    return pyr_history(t->array, 0, PYR_LATEST, show_usage, &e) < 0
               ? target_fail(t)
               : 0;
}

static int
show_json(const args *a, const target *t, const char *attributes,
          const pyr_usage *alone)
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
    json_usage(&j, "alone", alone);
    if (!err && args_has(a, "each")) {
        json_open(&j, "each", '{');
        err = show_each(t, &j);
        json_shut(&j, '}');
    }
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
show_text(const args *a, const target *t, const char *attributes,
          const pyr_usage *alone)
{
    const pyr_info *i = &t->info;
    char fill[CELL_TEXT], text[32];
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
    printf("\nalone      %s, that no other snapshot needs\n",
           bytes_text(alone->bytes, text, sizeof text));
    return args_has(a, "each") ? show_each(t, NULL) : 0;
}

static int
run(const args *a)
{
    target t;
    pyr_usage alone;
    char *attributes = NULL;
    int err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err)
        err = target_snapshot(a, &t);
    if (!err && (pyr_attributes(t.array, &attributes) < 0 ||
                 pyr_version_usage(t.array, t.info.version, &alone) < 0))
        err = target_fail(&t);
    if (!err)
        err = a->json ? show_json(a, &t, attributes, &alone)
                      : show_text(a, &t, attributes, &alone);
    free(attributes);
    target_close(&t);
    return err;
}

const verb verb_info = {
    .name = "info",
    .usage = "STORE ARRAY [--version V] [--each]",
    .about = "Show what an array is: type, shape, chunks, tags, attributes.",
    .more = "What a snapshot holds alone would be given back if it were "
            "forgotten.",
    .examples = "  pyramid info demo.pyr t\n"
                "  pyramid info demo.pyr t --version 3 --json\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
