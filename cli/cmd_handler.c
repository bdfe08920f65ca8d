/*
 * cli/cmd_handler.c - pyramid handler: functions that an array's cells go
 * through when they are stored.
 */
#include "cmd.h"

#include <string.h>

static int
print_number(const args *a, const char *key, unsigned number)
{
    json j;
    int err;
    if (!a->json) {
        printf("%u\n", number);
        return 0;
    }
    if ((err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, key, number);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
add(const args *a)
{
    unsigned number;
    target t;
    if (a->nwords != 4)
        return misuse(a->verb, "handler add: STORE ARRAY EVENT EXPR");
    if (strcmp(a->words[2], "on-write") != 0)
        return misuse(a->verb, "handler add: there is no event '%s'; it is "
                               "on-write",
                      a->words[2]);
    int err = target_array(a, 0, &t);
    if (!err &&
        pyr_handler_add(t.array, PYR_ON_WRITE, a->words[3], &number) < 0)
        err = fail_function(a, &t);
    if (!err)
        err = print_number(a, "added", number);
    target_close(&t);
    return err;
}

static int
show(void *ctx, const pyr_handler *h)
{
    json *j = ctx;
    const char *event = h->event == PYR_ON_WRITE ? "on-write" : "unknown";
    if (!j) {
        printf("%4u  ", h->number);
        print_time(h->time_ns);
        fputs("  ", stdout);
        print_safe(stdout, h->who);
        printf("  %s  ", event);
        print_safe(stdout, h->function);
        putchar('\n');
        return 0;
    }
    json_open(j, NULL, '{');
    json_u64(j, "number", h->number);
    json_time(j, "time", h->time_ns);
    json_text(j, "who", h->who);
    json_text(j, "event", event);
    json_text(j, "function", h->function);
    json_shut(j, '}');
    return 0;
}

static int
list(const args *a)
{
    json j = {0};
    target t;
    if (a->nwords != 2)
        return misuse(a->verb, "handler ls: STORE ARRAY");
    int err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err && a->json && !(err = json_begin(&j)))
        json_open(&j, NULL, '[');
    if (!err && pyr_handler_list(t.array, show, a->json ? &j : NULL) < 0)
        err = target_fail(&t);
    if (!err && a->json) {
        json_shut(&j, ']');
        err = json_print(&j);
    }
    json_drop(&j);
    target_close(&t);
    return err;
}

static int
drop(const args *a)
{
    uint64_t number;
    target t;
    if (a->nwords != 3)
        return misuse(a->verb, "handler rm: STORE ARRAY NUMBER");
    if (parse_u64(a->words[2], &number) < 0 || number > UINT32_MAX)
        return misuse(a->verb, "handler rm: '%s' is no number of a handler",
                      a->words[2]);
    int err = target_array(a, 0, &t);
    if (!err && pyr_handler_remove(t.array, (unsigned)number) < 0)
        err = target_fail(&t);
    if (!err && a->json)
        err = print_number(a, "removed", (unsigned)number);
    target_close(&t);
    return err;
}

static int
run(const args *a)
{
    args rest = *a; /* without what to do */
    rest.words++;
    rest.nwords--;
    if (strcmp(a->words[0], "add") == 0)
        return add(&rest);
    if (strcmp(a->words[0], "ls") == 0)
        return list(&rest);
    if (strcmp(a->words[0], "rm") == 0)
        return drop(&rest);
    return misuse(a->verb, "handler: '%s' is neither add, ls nor rm",
                  a->words[0]);
}

const verb verb_handler = {
    .name = "handler",
    .usage = "add STORE ARRAY on-write EXPR | ls STORE ARRAY | "
             "rm STORE ARRAY NUMBER",
    .about = "Functions that cells go through when they are stored.",
    .more =
        "EXPR is as of 'pyramid compute', over x (the cell that is stored) and "
        "i0, i1, ...; it\nmay call kernels without a halo, but name no other "
        "version. It applies to every\nwrite, append and compute that begins "
        "after it was added; 'pyramid log' tells\nwhich versions went through "
        "it. add prints its number.",
    .examples = "  pyramid handler add demo.pyr t on-write "
                "'where(isnan(x), 0, x)'\n"
                "  pyramid handler ls demo.pyr t\n"
                "  pyramid handler rm demo.pyr t 1\n",
    .min_words = 3,
    .max_words = 5,
    .run = run,
};
