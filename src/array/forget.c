/*
 * array/forget.c - FORGET: which versions need not be kept any more.
 *
 * Forgetting only marks. A tag may be set at the same time by someone else; so
 * the marks are made on condition that no tag was set since they were listed
 * (record tagged/ID), and all over again if one was.
 */
#include "array/keys.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 1024 };

typedef struct tag {
    uint64_t label;
    char name[PYR_MAX_NAME + 1];
} tag;

typedef struct forgetting {
    pyri_array *a;
    uint64_t first, last, latest; /* labels */
    uint64_t keep;                /* so many of the newest */
    bool alone;                   /* one version was named */
    bool with_tags;
    tag *tags;
    size_t ntags;
    uint8_t tagged[8]; /* of the record, when the tags were listed */
    size_t tagged_size;
    uint64_t *list;          /* labels to forget */
    size_t n, room;
} forgetting;

/* --- what is tagged ------------------------------------------------------ */

static int
note_tag(void *ctx, const char *name, pyr_version v)
{
    forgetting *f = ctx;
    tag *tags = pyri_sys_realloc(f->tags, (f->ntags + 1) * sizeof *tags);
    if (!tags)
        return pyri_fail_nomem("the tags of an array");
    f->tags = tags;
    tag *t = &tags[f->ntags++];
    t->label = f->a->first + v;
    strncpy(t->name, name, sizeof t->name - 1);
    t->name[sizeof t->name - 1] = 0;
    return 0;
}

static int
list_tags(forgetting *f)
{
    pyri_key k = pyri_key_id("tagged/", f->a->id);
    pyri_reader *r;
    pyri_bytes value;
    bool found;
    int err = pyri_engine_begin(f->a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(f->a->engine, r, pyri_key_bytes(&k), &value,
                                 &found);
    f->tagged_size = found && value.size == 8 ? 8 : 0;
    if (err == 0 && f->tagged_size)
        memcpy(f->tagged, value.data, 8);
    pyri_engine_end(f->a->engine, r);
    f->ntags = 0;
    return err < 0 ? err : pyri_tag_list(f->a, note_tag, f);
}

static const tag *
tag_of(const forgetting *f, uint64_t label)
{
    for (size_t i = 0; i < f->ntags; i++)
        if (f->tags[i].label == label)
            return &f->tags[i];
    return NULL;
}

/* --- the choice ---------------------------------------------------------- */

static int
must_stay(const forgetting *f, uint64_t label, const char *why)
{
    return pyri_fail(PYR_EINVAL, "version %llu of array '%s' stays: %s",
                     (unsigned long long)(label - f->a->first), f->a->name,
                     why);
}

static int
add_label(forgetting *f, uint64_t label)
{
    if (!pyri_room(&f->list, &f->room, f->n + 1, sizeof *f->list))
        return pyri_fail_nomem("a list of versions");
    f->list[f->n++] = label;
    return 0;
}

/* Called for versions from the newest down. */
static int
choose(void *ctx, uint64_t label, const pyri_version_get *v)
{
    forgetting *f = ctx;
    const tag *t = f->with_tags ? NULL : tag_of(f, label);
    if (v->forgotten)
        return 0;
    if (f->keep) {
        f->keep--;
        return f->alone && label == f->last
                   ? must_stay(f, label, "it is among the newest")
                   : 0;
    }
    if (label > f->last)
        return 0;
    if (t && f->alone) {
        char why[PYR_MAX_NAME + 32];
        snprintf(why, sizeof why, "it has the tag '%s'", t->name);
        return must_stay(f, label, why);
    }
    return t ? 0 : add_label(f, label);
}

/* Version 0 of a clone has no record of its own. */
static int
choose_first(forgetting *f, pyri_reader *r)
{
    uint64_t label = f->a->first;
    pyri_version_get v = {.found = true};
    int err = 0;
    if (f->a->schema.lineage.n < 2) {
        return f->alone ? must_stay(f, label, "it is empty, and takes no space")
                        : 0;
    }
    err = pyri_array_is_gone(f->a, r, &v.forgotten);
    return err < 0 ? err : choose(f, label, &v);
}

static int
choose_all(forgetting *f)
{
    pyri_engine *e = f->a->engine;
    pyri_reader *r;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    f->n = 0;
    uint64_t low = pyri_max64(f->first, f->a->first + 1);
    if (f->latest > f->a->first && low <= f->latest)
        err = pyri_engine_scan_versions(e, r, f->a->id, f->latest, low, choose,
                                        f);
    if (err == 0 && f->first == f->a->first)
        err = choose_first(f, r);
    pyri_engine_end(e, r);
    return err;
}

/* --- the marks ----------------------------------------------------------- */

static pyri_edit
edit_for(const forgetting *f, uint64_t label, pyri_key *gone)
{
    if (label > f->a->first)
        return (pyri_edit){.kind = PYRI_EDIT_FORGET,
                           .array = f->a->id,
                           .version = label};
    *gone = pyri_key_id("gone/", f->a->id);
    return (pyri_edit){.kind = PYRI_EDIT_PUT,
                       .key = pyri_key_bytes(gone),
                       .value = {"1", 1}};
}

/* Tags of forgotten versions go with them. */
static size_t
add_tag_edits(const forgetting *f, uint64_t label, pyri_key *keys,
              pyri_edit *edits)
{
    size_t n = 0;
    for (size_t i = 0; i < f->ntags; i++)
        if (f->tags[i].label == label) {
            keys[n] = pyri_key_tag(f->a->id, f->tags[i].name);
            edits[n] = (pyri_edit){.kind = PYRI_EDIT_DELETE,
                                   .key = pyri_key_bytes(&keys[n])};
            n++;
        }
    return n;
}

/* Mark the labels list[0..n). */
static int
mark(forgetting *f, const uint64_t *list, size_t n)
{
    pyri_key tagged = pyri_key_id("tagged/", f->a->id), gone;
    size_t room = n + f->ntags + 1, used = 0, ntags = 0;
    pyri_edit *edits = pyri_sys_calloc(room, sizeof *edits);
    pyri_key *keys = pyri_sys_malloc((f->ntags + 1) * sizeof *keys);
    int err = 0;
    if (!edits || !keys)
        err = pyri_fail_nomem("a list of versions");
    if (err == 0)
        edits[used++] = (pyri_edit){.kind = PYRI_EDIT_SAME,
                                    .key = pyri_key_bytes(&tagged),
                                    .value = {f->tagged, f->tagged_size}};
    for (size_t i = 0; i < n && err == 0; i++) {
        edits[used++] = edit_for(f, list[i], &gone);
        size_t more = add_tag_edits(f, list[i], keys + ntags, edits + used);
        ntags += more;
        used += more;
    }
    if (err == 0)
        err = pyri_engine_edit(f->a->engine, edits, used);
    free(edits);
    free(keys);
    return err;
}

static int
mark_all(forgetting *f)
{
    int err = 0;
    for (size_t i = 0; i < f->n && err == 0; i += BATCH)
        err = mark(f, f->list + i, f->n - i < BATCH ? f->n - i : BATCH);
    return err;
}

/* --- the call ------------------------------------------------------------ */

static int
look_up(forgetting *f, pyr_version first, pyr_version last)
{
    pyr_version latest;
    int err = pyri_latest(f->a, &latest);
    if (err < 0)
        return err;
    f->alone = first == last;
    first = first == PYR_LATEST ? latest : first;
    last = last == PYR_LATEST ? latest : last;
    if (first > last)
        return pyri_fail(PYR_EINVAL, "versions %llu to %llu: the first is "
                         "after the last", (unsigned long long)first,
                         (unsigned long long)last);
    if (f->alone && last > latest)
        return pyri_fail(PYR_ENOVERSION,
                         "array '%s' has no version %llu; the newest published "
                         "one is %llu", f->a->name, (unsigned long long)last,
                         (unsigned long long)latest);
    f->first = f->a->first + first;
    f->last = f->a->first + pyri_min64(last, latest);
    f->latest = f->a->first + latest;
    return 0;
}

int
pyri_forget(pyri_array *a, pyr_version first, pyr_version last, uint64_t keep,
            unsigned flags, uint64_t *forgotten)
{
    forgetting f = {.a = a, .with_tags = flags & PYR_FORGET_TAGGED};
    int err = look_up(&f, first, last);
    while (err == 0) {
        f.keep = keep ? keep : 1;
        if ((err = list_tags(&f)) < 0 || (err = choose_all(&f)) < 0)
            break;
        err = mark_all(&f);
        if (err != PYR_EFENCED)
            break;
        err = 0; /* a tag was set meanwhile: look again */
    }
    if (err == 0)
        *forgotten = f.n;
    free(f.tags);
    free(f.list);
    return err;
}
