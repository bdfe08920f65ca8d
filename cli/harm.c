/*
 * cli/harm.c - one line, or one JSON object, for each thing that is harmed.
 */
#include "harm.h"

#include <inttypes.h>

typedef struct harm_list {
    const args *args;
    json json; /* open, if that is wanted: "harm" first, the rest follows */
    progress bar;
    bool begun; /* the bar */
} harm_list;

static void
print_harm(const pyr_harm *h)
{
    if (*h->array) {
        fputs("array '", stdout);
        print_safe(stdout, h->array);
        printf("', version %" PRIu64, h->version);
    } else {
        fputs("store", stdout);
    }
    if (h->ndim) {
        fputs(", box ", stdout);
        print_box(h->ndim, h->offset, h->size);
    }
    fputs(": ", stdout);
    print_safe(stdout, h->what);
    putchar('\n');
}

static int
tell(void *ctx, const pyr_harm *h)
{
    harm_list *l = ctx;
    progress_clear();
    if (!l->args->json) {
        print_harm(h);
        return 0;
    }
    json_open(&l->json, NULL, '{');
    json_text(&l->json, "array", h->array);
    json_u64(&l->json, "version", h->version);
    if (h->ndim) {
        json_list(&l->json, "offset", h->ndim, h->offset);
        json_list(&l->json, "size", h->ndim, h->size);
    }
    json_text(&l->json, "what", h->what);
    json_shut(&l->json, '}');
    return 0;
}

static int
advance(void *ctx, uint64_t done, uint64_t total)
{
    harm_list *l = ctx;
    if (!l->begun)
        progress_begin(&l->bar, l->args, total);
    l->begun = true;
    if (done > l->bar.done)
        progress_add(&l->bar, done - l->bar.done);
    return 0;
}

static int
begin(harm_list *h)
{
    if (!h->args->json)
        return 0;
    int err = json_begin(&h->json);
    if (err)
        return err;
    json_open(&h->json, NULL, '{');
    json_open(&h->json, "harm", '[');
    return 0;
}

static void
end(harm_list *h)
{
    if (h->begun)
        progress_end(&h->bar);
    if (h->args->json)
        json_shut(&h->json, ']');
}

static int
walk(harm_list *h, const target *t, unsigned jobs, const walk_verb *w,
     void *counts)
{
    uint64_t harms = 0;
    pyr_verify_spec spec = {.deep = w->deep, .jobs = jobs, .each = tell,
                            .ctx = h, .progress = {advance, h}};
    int rc = w->walk(t->store, &spec, counts, &harms);
    end(h);
    if (rc < 0)
        return target_fail(t);
    if (h->args->json) {
        w->show(&h->json, counts);
        json_shut(&h->json, '}');
        if (json_print(&h->json))
            return FAILED;
    } else if (!h->args->quiet) {
        w->print(counts);
    }
    if (harms == 0)
        return 0;
    return fail("%s: %" PRIu64 " thing%s harmed%s", t->store_name, harms,
                harms == 1 ? " is" : "s are", w->beyond);
}

int
harm_run(const args *a, const walk_verb *w, void *counts)
{
    target t;
    harm_list h = {.args = a};
    uint64_t jobs;
    int err = args_number(a, "jobs", 0, 1024, &jobs);
    if (err)
        return err;
    err = target_store(a, w->flags, &t);
    if (!err)
        err = begin(&h);
    if (!err)
        err = walk(&h, &t, (unsigned)jobs, w, counts);
    json_drop(&h.json);
    target_close(&t);
    return err;
}
