/*
 * cli/cmd_stat.c - pyramid stat: what the index knows about a box.
 */
#include "cmd.h"

#include <inttypes.h>
#include <math.h>

static const option options[] = {
    {"version", 0, "V", "a number, latest, -1 (the one before), a tag"},
    {"box", 0, "BOX", "which cells, as NumPy slices without steps; all"},
    {"bounds", 0, NULL, "bounds of min and max only; reads no chunk"},
    {NULL, 0, NULL, NULL},
};

static double
deviation(const pyr_stats *s)
{
    uint64_t n = s->count - s->nans;
    if (n == 0)
        return NAN;
    double square = s->sum_squares / (double)n - s->mean * s->mean;
    return s->all_equal || square < 0 ? 0 : sqrt(square);
}

/* The least or largest cell: exactly, whatever the type. */
static void
bound_text(pyr_type type, double value, int64_t i, uint64_t u, bool none,
           char *out)
{
    if (type_is_float(type) || none)
        cell_text(type == PYR_F32 && !none ? PYR_F32 : PYR_F64,
                  type == PYR_F32 && !none ? (void *)&(float){(float)value}
                                           : (void *)&value,
                  out);
    else if (type == PYR_I8 || type == PYR_I16 || type == PYR_I32 ||
             type == PYR_I64)
        cell_text(PYR_I64, &i, out);
    else
        cell_text(PYR_U64, &u, out);
}

static void
json_bound(json *j, const char *key, const char *text, double value)
{
    if (isfinite(value))
        json_raw(j, key, text);
    else
        json_f64(j, key, value);
}

static int
print_json(const target *t, const pyr_stats *s, bool bounds, const char *low,
           const char *high)
{
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "version", t->info.version);
    json_u64(&j, "count", s->count);
    json_bound(&j, "min", low, s->min);
    json_bound(&j, "max", high, s->max);
    if (!bounds) {
        json_f64(&j, "sum", s->sum);
        json_f64(&j, "mean", s->mean);
        json_f64(&j, "std", deviation(s));
        json_u64(&j, "nans", s->nans);
        json_u64(&j, "not_fill", s->not_fill);
        json_bool(&j, "all_equal", s->all_equal);
    }
    json_bool(&j, "bounds", bounds);
    json_u64(&j, "nodes_read", s->nodes_read);
    json_u64(&j, "chunks_read", s->chunks_read);
    json_shut(&j, '}');
    return json_print(&j);
}

static void
print_f64(const char *label, double value)
{
    char text[CELL_TEXT];
    f64_text(value, text);
    printf("%-10s %s\n", label, text);
}

static void
print_text(const pyr_stats *s, bool bounds, const char *low, const char *high)
{
    printf("count      %" PRIu64 "\n", s->count);
    printf("min        %s%s\n", bounds ? ">= " : "", low);
    printf("max        %s%s\n", bounds ? "<= " : "", high);
    if (!bounds) {
        print_f64("sum", s->sum);
        print_f64("mean", s->mean);
        print_f64("std", deviation(s));
        printf("nans       %" PRIu64 "\n", s->nans);
        printf("not fill   %" PRIu64 "\n", s->not_fill);
        printf("all equal  %s\n", s->all_equal ? "yes" : "no");
    }
    printf("read       %" PRIu64 " nodes, %" PRIu64 " chunks\n", s->nodes_read,
           s->chunks_read);
}

static int
show(const args *a, const target *t, const box *b)
{
    pyr_stats s;
    char low[CELL_TEXT], high[CELL_TEXT];
    bool bounds = args_has(a, "bounds");
    if (pyr_stat(t->array, t->info.version, b->start, b->count,
                 bounds ? PYR_STAT_BOUNDS : 0, &s) < 0)
        return target_fail(t);
    pyr_type type = t->info.type;
    bound_text(type, s.min, s.exact_min.i, s.exact_min.u, isnan(s.min), low);
    bound_text(type, s.max, s.exact_max.i, s.exact_max.u, isnan(s.max), high);
    if (a->json)
        return print_json(t, &s, bounds, low, high);
    print_text(&s, bounds, low, high);
    return 0;
}

static int
run(const args *a)
{
    return target_show_box(a, show);
}

const verb verb_stat = {
    .name = "stat",
    .usage = "STORE ARRAY [--version V] [--box BOX] [--bounds]",
    .about = "Count, min, max, sum, mean and more, from the index.",
    .more = "Whole arrays cost a handful of tree nodes; a box costs the "
            "chunks that its edge\ncuts. The last line tells. NaNs are "
            "counted and left out of the rest.",
    .examples = "  pyramid stat demo.pyr t\n"
                "  pyramid stat demo.pyr t --box 0:1000,50:60 --bounds\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
