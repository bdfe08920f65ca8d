/*
 * cli/cmd_copy.c - pyramid copy: snapshots into another store.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"versions", 0, "LIST", "only these: V or V1..V2, divided by commas"},
    {NULL, 0, NULL, NULL},
};

/* A list of versions that grows. */
typedef struct chosen {
    pyr_version *list;
    size_t n, room;
} chosen;

typedef struct copying {
    const args *a;
    target from;
    pyr_store *to;
    json *j; /* NULL: text */
} copying;

/* --- versions ------------------------------------------------------------ */

static int
choose(chosen *c, pyr_version v)
{
    if (c->n == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        pyr_version *list = realloc(c->list, room * sizeof *list);
        if (!list)
            return -1;
        c->list = list;
        c->room = room;
    }
    c->list[c->n++] = v;
    return 0;
}

static int
choose_change(void *ctx, const pyr_change *change)
{
    return choose(ctx, change->version) < 0 ? 1 : 0;
}

/* V1..V2: those of them that are there. */
static int
choose_range(copying *x, char *text, char *dots, chosen *c)
{
    pyr_version first, last;
    *dots = 0;
    if (!looks_like_version(text) || !looks_like_version(dots + 2))
        return misuse(x->a->verb, "copy: '%s..%s' is no range of versions",
                      text, dots + 2);
    int err = strcmp(text, "latest") == 0 || parse_u64(text, &first) < 0
                  ? target_version(x->a, &x->from, text, &first)
                  : 0;
    if (!err)
        err = parse_u64(dots + 2, &last) < 0
                  ? target_version(x->a, &x->from, dots + 2, &last)
                  : 0;
    if (err)
        return err;
    if (first > last)
        return misuse(x->a->verb, "copy: '%s..%s' is empty", text, dots + 2);
    int told = pyr_history(x->from.array, first, last, choose_change, c);
    return told > 0 ? fail("out of memory")
           : told < 0 ? target_fail(&x->from)
                      : 0;
}

static int
choose_item(copying *x, char *text, chosen *c)
{
    pyr_version v;
    char *dots = strstr(text, "..");
    if (!*text)
        return misuse(x->a->verb, "copy: a version is missing in the list");
    if (dots)
        return choose_range(x, text, dots, c);
    int err = target_version(x->a, &x->from, text, &v);
    return err ? err : choose(c, v) < 0 ? fail("out of memory") : 0;
}

static int
compare(const void *a, const void *b)
{
    pyr_version x = *(const pyr_version *)a, y = *(const pyr_version *)b;
    return (x > y) - (x < y);
}

/* "3,7,10..20" in ascending order, each once. */
static int
parse_versions(copying *x, const char *text, chosen *c)
{
    char *words = strdup(text), *at = words;
    int err = words ? 0 : fail("out of memory");
    while (!err && at) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma++ = 0;
        err = choose_item(x, at, c);
        at = comma;
    }
    free(words);
    size_t kept = 0;
    if (!err && c->n)
        qsort(c->list, c->n, sizeof *c->list, compare);
    for (size_t i = 0; !err && i < c->n; i++)
        if (kept == 0 || c->list[kept - 1] != c->list[i])
            c->list[kept++] = c->list[i];
    c->n = kept;
    if (!err && kept == 0)
        err = fail("%s: none of the versions %s is there", x->from.array_name,
                   text);
    return err;
}

/* --- one array ----------------------------------------------------------- */

static int
advance(void *ctx, uint64_t done, uint64_t total)
{
    progress_steps(ctx, done, total);
    return 0;
}

static void
tell(copying *x, const char *name, const pyr_copied *copied)
{
    char text[32];
    if (x->j) {
        json_open(x->j, NULL, '{');
        json_text(x->j, "array", x->from.array_name);
        json_text(x->j, "name", name);
        json_u64(x->j, "versions", copied->versions);
        json_u64(x->j, "cells", copied->cells);
        json_u64(x->j, "bytes", copied->bytes);
        json_shut(x->j, '}');
    } else if (!x->a->quiet) {
        print_safe(stdout, name);
        printf(": %llu version%s, %s\n", (unsigned long long)copied->versions,
               copied->versions == 1 ? "" : "s",
               bytes_text(copied->bytes, text, sizeof text));
    }
}

/* `versions` is a list as text; NULL: all that are kept. */
static int
copy_array(copying *x, const char *versions, const char *name)
{
    chosen c = {0};
    progress bar;
    pyr_copied copied;
    int err = 0;
    if (pyr_array_info(x->from.array, PYR_LATEST, &x->from.info) < 0)
        return target_fail(&x->from);
    if (versions)
        err = parse_versions(x, versions, &c);
    if (!err) {
        progress_begin_steps(&bar, x->a);
        pyr_copy_spec spec = {.versions = c.list,
                              .n = c.n,
                              .progress = {advance, &bar}};
        if (pyr_copy(x->from.array, x->to, name, &spec, &copied) < 0)
            err = fail_pyr(name);
        progress_end(&bar);
    }
    if (!err)
        tell(x, name, &copied);
    free(c.list);
    return err;
}

/* ARRAY, or ARRAY@LIST if no array has all of that for its name. */
static int
copy_named(copying *x, const char *word, const char *name)
{
    const char *versions = args_value(x->a, "versions");
    char *array = strdup(word), *at = array ? strrchr(array, '@') : NULL;
    int err = array ? 0 : fail("out of memory");
    x->from.array_name = array;
    int found = err ? 0 : pyr_array_open(x->from.store, array, &x->from.array);
    if (found == PYR_ENOTFOUND && at && !versions) {
        *at = 0;
        versions = at + 1;
        found = pyr_array_open(x->from.store, array, &x->from.array);
    }
    if (!err && found < 0)
        err = target_fail(&x->from);
    if (!err)
        err = copy_array(x, versions, name ? name : array);
    pyr_array_close(x->from.array);
    x->from.array = NULL;
    x->from.array_name = NULL;
    free(array);
    return err;
}

/* --- all arrays ---------------------------------------------------------- */

typedef struct names {
    char **list;
    size_t n;
    bool *done;
} names;

static int
note_name(void *ctx, const char *name)
{
    names *all = ctx;
    char **list = realloc(all->list, (all->n + 1) * sizeof *list);
    if (!list)
        return 1;
    all->list = list;
    all->list[all->n] = strdup(name);
    return all->list[all->n] ? (all->n++, 0) : 1;
}

static void
free_names(names *all)
{
    for (size_t i = 0; i < all->n; i++)
        free(all->list[i]);
    free(all->list);
    free(all->done);
}

/* Is the array that this one is a clone of still to come? */
static bool
must_wait(const names *all, const char *name, const char *parent)
{
    for (size_t i = 0; *parent && i < all->n; i++)
        if (strcmp(all->list[i], parent) == 0)
            return !all->done[i] && strcmp(name, parent) != 0;
    return false;
}

/* Copy array i unless it has to wait; `any` says that something was done. */
static int
copy_next(copying *x, names *all, size_t i, bool force, bool *any)
{
    x->from.array_name = all->list[i];
    if (pyr_array_open(x->from.store, all->list[i], &x->from.array) < 0 ||
        pyr_array_info(x->from.array, PYR_LATEST, &x->from.info) < 0)
        return target_fail(&x->from);
    int err = 0;
    if (force || !must_wait(all, all->list[i], x->from.info.clone_of)) {
        err = copy_array(x, NULL, all->list[i]);
        *any = all->done[i] = true;
    }
    pyr_array_close(x->from.array);
    x->from.array = NULL;
    x->from.array_name = NULL;
    return err;
}

/* Parents come before their clones, so that they share what they shared. */
static int
copy_store(copying *x)
{
    names all = {0};
    int err = 0, told = pyr_arrays(x->from.store, note_name, &all);
    if (told < 0)
        err = target_fail(&x->from);
    else if (told > 0 || !(all.done = calloc(all.n + 1, sizeof *all.done)))
        err = fail("out of memory");
    bool any = true, force = false;
    while (!err && (any || !force)) {
        force = !any;
        any = false;
        for (size_t i = 0; i < all.n && !err; i++)
            if (!all.done[i])
                err = copy_next(x, &all, i, force, &any);
    }
    free_names(&all);
    return err;
}

/* --- the verb ------------------------------------------------------------ */

static int
copy(copying *x)
{
    const args *a = x->a;
    if (a->nwords == 2)
        return copy_store(x);
    return copy_named(x, a->words[1], a->nwords > 3 ? a->words[3] : NULL);
}

static int
run(const args *a)
{
    copying x = {.a = a};
    json j;
    const char *to = a->words[a->nwords == 2 ? 1 : 2];
    if (a->nwords == 2 && args_has(a, "versions"))
        return misuse(a->verb, "copy: --versions needs an array");
    int err = target_store(a, PYR_OPEN_READONLY, &x.from);
    if (err)
        return err;
    if (a->json && (err = json_begin(&j)) == 0) {
        x.j = &j;
        json_open(x.j, NULL, '[');
    }
    if (!err && pyr_open(to, PYR_OPEN_CREATE, &x.to) < 0)
        err = fail_pyr(to);
    if (!err)
        err = copy(&x);
    if (x.j && err) {
        json_drop(x.j);
    } else if (x.j) {
        json_shut(x.j, ']');
        err = json_print(x.j);
    }
    pyr_close(x.to);
    target_close(&x.from);
    return err;
}

const verb verb_copy = {
    .name = "copy",
    .usage = "STORE [ARRAY[@LIST]] DEST [NAME] [--versions LIST]",
    .about = "Copy snapshots into another store, and compare them there.",
    .more = "All arrays, one array, or some of its versions; DEST is made if "
            "it is not there. Versions\nkeep their numbers, history and tags, "
            "and share what they shared. Those that are left\nout are missing "
            "in the copy. Run again, it goes on where it was interrupted and "
            "brings\nwhat is new: so it makes backups. LIST is 3,7,10..20; "
            "ranges include both ends.",
    .examples = "  pyramid copy demo.pyr /backup/demo.pyr\n"
                "  pyramid copy demo.pyr t other.pyr t2\n"
                "  pyramid copy demo.pyr t@3,10..20,latest other.pyr\n",
    .options = options,
    .min_words = 2,
    .max_words = 4,
    .run = run,
};
