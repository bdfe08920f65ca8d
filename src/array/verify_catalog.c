/*
 * array/verify_catalog.c - which arrays there are, and the records about them.
 */
#include "array/keys.h"
#include "array/verifier.h"

#include "base/bytes.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
whole_store(pyri_verifier *v, const char *what)
{
    v->blind = true;
    return pyri_verify_harm(v, "", 0, 0, NULL, what);
}

/* --- arrays -------------------------------------------------------------- */

static int
add_kin(pyri_verifier *v, pyri_array *a)
{
    if (!pyri_room(&v->kin, &v->kin_room, v->nkin + 1, sizeof *v->kin))
        return pyri_fail_nomem("a list of arrays");
    v->kin[v->nkin++] = (pyri_kin){.array = a};
    return 0;
}

/* Open an array by name, or by id if it has none. */
static int
open_one(pyri_verifier *v, const char *name, uint64_t id)
{
    pyri_array *a = NULL;
    char what[1024], text[32];
    int err = name ? pyri_array_open(v->e, name, &a)
                   : pyri_array_open_id(v->e, id, &a);
    if (pyri_is_harm(err)) {
        snprintf(what, sizeof what, "%s", pyr_errmsg());
        snprintf(text, sizeof text, "%llu", (unsigned long long)id);
        v->blind = true;
        return pyri_verify_harm(v, name ? name : text, 0, 0, NULL, what);
    }
    if (err == 0 && (err = add_kin(v, a)) < 0)
        pyri_array_close(a);
    return err;
}

static int
see_name(void *ctx, pyri_bytes key, pyri_bytes value)
{
    pyri_verifier *v = ctx;
    char name[PYR_MAX_NAME + 1];
    size_t skip = strlen("name/");
    if (key.size <= skip || key.size - skip >= sizeof name || value.size != 8)
        return whole_store(v, "the name of an array is damaged");
    memcpy(name, (const char *)key.data + skip, key.size - skip);
    name[key.size - skip] = 0;
    return open_one(v, name, pyri_load64(value.data));
}

typedef struct ids {
    pyri_verifier *v;
    uint64_t *list;
    size_t n, room;
} ids;

static int
see_schema(void *ctx, pyri_bytes key, pyri_bytes value)
{
    ids *all = ctx;
    size_t skip = strlen("array/");
    (void)value;
    if (key.size != skip + 8)
        return whole_store(all->v, "the record of an array is damaged");
    if (!pyri_room(&all->list, &all->room, all->n + 1, sizeof *all->list))
        return pyri_fail_nomem("a list of arrays");
    all->list[all->n++] = pyri_load64_be((const uint8_t *)key.data + skip);
    return 0;
}

static int
nameless(pyri_verifier *v, uint64_t id)
{
    char text[64];
    if (pyri_verifier_kin(v, id))
        return 0;
    snprintf(text, sizeof text, "array %llu has no name",
             (unsigned long long)id);
    int err = pyri_verify_harm(v, "", 0, 0, NULL, text);
    return err != 0 ? err : open_one(v, NULL, id);
}

/* Names are looked at after the arrays: one that is made meanwhile has one. */
static int
open_all(pyri_verifier *v)
{
    ids all = {.v = v};
    int err = pyri_engine_scan_records(v->e, v->r, (pyri_bytes){"array/", 6},
                                       see_schema, &all);
    if (err == 0)
        err = pyri_engine_scan_records(v->e, v->r, (pyri_bytes){"name/", 5},
                                       see_name, v);
    for (size_t i = 0; i < all.n && err == 0; i++)
        err = nameless(v, all.list[i]);
    free(all.list);
    return err;
}

static int
by_depth(const void *a, const void *b)
{
    const pyri_kin *x = a, *y = b;
    int dx = x->array->schema.lineage.n, dy = y->array->schema.lineage.n;
    return dx != dy ? dx - dy : strcmp(x->array->name, y->array->name);
}

static int
find_head(pyri_verifier *v, pyri_kin *k)
{
    uint64_t shape[PYR_MAX_DIMS];
    char what[1024];
    int err = pyri_engine_latest(v->e, v->r, k->array->id, &k->head, shape);
    if (err == 0 && k->head < k->array->first)
        err = pyri_fail(PYR_ECORRUPT, "the newest version is older than the "
                                      "first");
    if (!pyri_is_harm(err))
        return err;
    snprintf(what, sizeof what, "%s", pyr_errmsg());
    k->head = 0;
    k->lost = true;
    return pyri_verify_harm(v, k->array->name, 0, 0, NULL, what);
}

/* Any record that is damaged, also if its key is, so that nobody looks for it.
 * Those of names and arrays are told when they are opened. */
static int
see_record(void *ctx, pyri_bytes key, pyri_bytes value)
{
    char what[128] = "record ";
    size_t at = strlen(what);
    if (value.data || (key.size > 5 && memcmp(key.data, "name/", 5) == 0) ||
        (key.size > 6 && memcmp(key.data, "array/", 6) == 0))
        return 0;
    for (size_t i = 0; i < key.size && i < 64; i++) {
        uint8_t c = ((const uint8_t *)key.data)[i];
        what[at++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    strcpy(what + at, " is damaged");
    return whole_store(ctx, what);
}

int
pyri_verify_catalog(pyri_verifier *v)
{
    int err = pyri_engine_scan_records(v->e, v->r, (pyri_bytes){"", 0},
                                       see_record, v);
    if (err == 0)
        err = open_all(v);
    if (pyri_is_harm(err))
        err = whole_store(v, "the catalog cannot be read");
    if (v->nkin > 1)
        qsort(v->kin, v->nkin, sizeof *v->kin, by_depth);
    for (size_t i = 0; i < v->nkin && err == 0; i++)
        err = find_head(v, &v->kin[i]);
    v->out->arrays += v->nkin;
    return err;
}

/* --- records of an array ------------------------------------------------- */

typedef struct tags {
    pyri_verifier *v;
    pyri_kin *k;
} tags;

static int
see_tag(void *ctx, pyri_bytes key, pyri_bytes value)
{
    tags *t = ctx;
    const pyri_array *a = t->k->array;
    pyri_version_get get = {.found = true};
    char what[PYR_MAX_NAME + 64];
    size_t skip = strlen("tag/") + 9;
    int name = key.size > skip ? (int)(key.size - skip) : 0;
    uint64_t label = value.size == 8 ? pyri_load64(value.data) : 0;
    bool good = value.size == 8 && name && label >= a->first &&
                label <= t->k->head;
    int err = 0;
    if (!value.data)
        return 0; /* told already */
    if (good && label > a->first)
        err = pyri_engine_get_version(t->v->e, t->v->r, a->id, label, &get);
    if (err == 0 && good && get.found && !get.forgotten)
        return 0;
    if (err < 0 && !pyri_is_harm(err))
        return err;
    snprintf(what, sizeof what, "tag '%.*s' names no version", name,
             (const char *)key.data + skip);
    return pyri_verify_harm(t->v, a->name, 0, 0, NULL, what);
}

static int
check_child(pyri_verifier *v, const pyri_kin *k)
{
    const pyri_schema *s = &k->array->schema;
    uint64_t first = k->array->first;
    uint8_t bytes[8];
    pyri_bytes value;
    bool found;
    if (s->lineage.n < 2)
        return 0;
    pyri_key key = pyri_key_child(pyri_lineage_owner(&s->lineage, first),
                                  k->array->id);
    int err = pyri_engine_get_record(v->e, v->r, pyri_key_bytes(&key), &value,
                                     &found);
    if (err < 0)
        return err;
    if (found && value.size == 8 && pyri_load64(value.data) == first)
        return 0;
    if (!v->repairing)
        return pyri_verify_harm(v, k->array->name, 0, 0, NULL,
                                "its origin does not know of this clone");
    pyri_store64(bytes, first);
    const pyri_edit edit = {.kind = PYRI_EDIT_PUT,
                            .key = pyri_key_bytes(&key),
                            .value = {bytes, 8}};
    v->children++;
    return pyri_engine_edit(v->e, &edit, 1);
}

int
pyri_verify_records(pyri_verifier *v, pyri_kin *k)
{
    tags t = {v, k};
    pyri_key key = pyri_key_id("tag/", k->array->id);
    key.bytes[key.size++] = '/';
    int err = pyri_engine_scan_records(v->e, v->r, pyri_key_bytes(&key),
                                       see_tag, &t);
    if (err == 0)
        err = check_child(v, k);
    if (!pyri_is_harm(err))
        return err;
    return pyri_verify_harm(v, k->array->name, 0, 0, NULL,
                            "records of the array cannot be read");
}
