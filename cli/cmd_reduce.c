/*
 * cli/cmd_reduce.c - pyramid reduce: all cells of a box become one value.
 */
#include "cmd.h"

#include <inttypes.h>

static const option options[] = {
    {"version", 0, "V", "what x is: a number, latest, -1, a tag; latest"},
    {"box", 0, "BOX", "which cells, as NumPy slices without steps; all"},
    {NULL, 0, NULL, NULL},
};

enum { TEXT = 64 + 22 * PYR_MAX_DIMS };

static void
json_histogram(json *j, const pyr_value *v)
{
    json_open(j, "counts", '[');
    for (uint32_t i = 0; i < v->bins; i++)
        json_u64(j, NULL, v->counts[i]);
    json_shut(j, ']');
    json_f64(j, "lo", v->lo);
    json_f64(j, "hi", v->hi);
    json_u64(j, "below", v->below);
    json_u64(j, "above", v->above);
    json_u64(j, "nans", v->nans);
}

static int
print_json(const target *t, const pyr_value *v)
{
    char text[TEXT];
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "version", t->info.version);
    switch (v->kind) {
    case PYR_VALUE_NONE: json_raw(&j, "value", "null"); break;
    case PYR_VALUE_INTEGER:
        json_raw(&j, "value", pyr_value_text(v, text, sizeof text));
        break;
    case PYR_VALUE_REAL: json_f64(&j, "value", v->real); break;
    case PYR_VALUE_POSITION: json_list(&j, "value", v->ndim, v->at); break;
    case PYR_VALUE_HISTOGRAM: json_histogram(&j, v); break;
    }
    json_u64(&j, "nodes_read", v->nodes_read);
    json_u64(&j, "chunks_read", v->chunks_read);
    json_u64(&j, "bytes_read", v->bytes_read);
    json_shut(&j, '}');
    return json_print(&j);
}

/* A line per bin: where it begins and ends, and how many cells it has. */
static void
print_histogram(const pyr_value *v)
{
    char from[CELL_TEXT], to[CELL_TEXT];
    for (uint32_t i = 0; i < v->bins; i++) {
        f64_text(v->lo + (v->hi - v->lo) * i / v->bins, from);
        f64_text(v->lo + (v->hi - v->lo) * (i + 1) / v->bins, to);
        printf("%s\t%s\t%" PRIu64 "\n", from, to, v->counts[i]);
    }
}

static int
show(const args *a, const target *t, const box *b)
{
    char text[TEXT];
    pyr_value v;
    int err = 0;
    if (pyr_reduce(t->array, t->info.version, b->start, b->count, a->words[2],
                   &v) < 0)
        return fail_function(a, t);
    if (a->json)
        err = print_json(t, &v);
    else if (v.kind == PYR_VALUE_HISTOGRAM)
        print_histogram(&v);
    else
        puts(pyr_value_text(&v, text, sizeof text));
    pyr_value_free(&v);
    return err;
}

static int
run(const args *a)
{
    return target_show_box(a, show);
}

const verb verb_reduce = {
    .name = "reduce",
    .usage = "STORE ARRAY EXPR [--version V] [--box BOX]",
    .about = "Reduce the cells of a box to one value.",
    .more =
        "EXPR is count, any, all, sum, mean, var, std, min, max, argmin or "
        "argmax of an\nexpression as of 'pyramid compute', or histogram(EXPR, "
        "LO, HI, BINS), which prints\nfrom, to and count of each bin, or "
        "quantile(EXPR, Q). NaNs take no part. Of plain\nx most are answered "
        "from the index; --json tells what was read.",
    .examples = "  pyramid reduce demo.pyr t 'mean(x)'\n"
                "  pyramid reduce demo.pyr t 'max(abs(x - x@3))' --box 0:100\n"
                "  pyramid reduce demo.pyr t 'histogram(x, 0, 100, 20)'\n",
    .options = options,
    .min_words = 3,
    .max_words = 3,
    .run = run,
};
