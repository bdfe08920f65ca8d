/*
 * cli/harm.c - one line, or one JSON object, for each thing that is harmed.
 */
#include "harm.h"

#include <inttypes.h>

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

int
harm_begin(harm_list *h)
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

void
harm_attach(harm_list *h, pyr_verify_spec *spec)
{
    spec->each = tell;
    spec->ctx = h;
    spec->progress = (pyr_progress){advance, h};
}

void
harm_end(harm_list *h)
{
    if (h->begun)
        progress_end(&h->bar);
    if (h->args->json)
        json_shut(&h->json, ']');
}
