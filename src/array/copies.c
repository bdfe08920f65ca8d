/*
 * array/copies.c - COPY: snapshots of an array into another store.
 *
 * Versions keep their numbers, so each is set as it is and none is taken: a
 * copy that is killed leaves whole versions and nothing else. Those that are
 * not copied are passed over; the copy has them as if they had been forgotten
 * and had gone.
 *
 * The record copy/ID says of which array ID is a copy, and how far it has come:
 *
 *   bytes   what
 *       8   XXH3 of all that follows
 *       1   format, 1
 *       8   id of the source
 *  varint   label of the newest version that was copied and compared
 *       8   hash of what its record says to people; 0: there is none yet
 *  varint   versions that were to come next; each: label (varint), hash (8)
 *
 * It is put before some hundred versions are copied and again when they are.
 * So one that has no place in it was not made by a copy, and it is not taken
 * for one; and a source that has gone another way since is not mixed in.
 */
#include "array/copies.h"

#include "array/keys.h"
#include "base/bytes.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

typedef struct copying {
    pyri_array *from, *to;
    const pyr_copy_spec *spec;
    uint64_t latest;     /* of `to`, a label */
    uint64_t end;        /* the last label of `from` that is looked at */
    size_t next;         /* of the list of versions */
    uint64_t scanned;    /* labels up to this one were looked at */
    uint64_t done, total; /* for progress */
    uint64_t *pins;      /* labels that clones of `from` begin with */
    size_t npins;
    pyri_copy_state state, noted; /* as it is, and as it is stored */
    pyr_copied out;
} copying;

/* --- the record of a copy ------------------------------------------------ */

void
pyri_copy_state_encode(const pyri_copy_state *s, pyri_buf *out)
{
    size_t start = out->size;
    pyri_buf_u64(out, 0);
    pyri_buf_u8(out, 1);
    pyri_buf_u64(out, s->source);
    pyri_buf_varint(out, s->done.label);
    pyri_buf_u64(out, s->done.hash);
    pyri_buf_varint(out, s->n);
    for (size_t i = 0; i < s->n; i++) {
        pyri_buf_varint(out, s->window[i].label);
        pyri_buf_u64(out, s->window[i].hash);
    }
    if (!out->failed)
        pyri_store64(out->data + start, pyri_hash64(out->data + start + 8,
                                                    out->size - start - 8));
}

int
pyri_copy_state_decode(pyri_bytes bytes, pyri_copy_state *s)
{
    pyri_cursor c = pyri_cursor_of(bytes.data, bytes.size);
    uint64_t sum = pyri_cursor_u64(&c);
    *s = (pyri_copy_state){0};
    if (c.failed || sum != pyri_hash64(c.at, (size_t)(c.end - c.at)))
        return pyri_fail(PYR_ECORRUPT, "the record of a copy is damaged");
    uint8_t format = pyri_cursor_u8(&c);
    if (format != 1)
        return pyri_fail(PYR_EFORMAT, "the record of a copy is of format %u",
                         format);
    s->source = pyri_cursor_u64(&c);
    s->done.label = pyri_cursor_varint(&c);
    s->done.hash = pyri_cursor_u64(&c);
    uint64_t n = pyri_cursor_varint(&c);
    for (uint64_t i = 0; i < n && i < PYRI_COPY_WINDOW && !c.failed; i++) {
        s->window[i].label = pyri_cursor_varint(&c);
        s->window[i].hash = pyri_cursor_u64(&c);
    }
    s->n = (size_t)n;
    if (c.failed || n > PYRI_COPY_WINDOW) {
        *s = (pyri_copy_state){0};
        return pyri_fail(PYR_ECORRUPT, "the record of a copy is damaged");
    }
    return 0;
}

int
pyri_copy_state_get(const pyri_array *a, pyri_copy_state *s)
{
    pyri_key k = pyri_key_id("copy/", a->id);
    pyri_bytes value;
    pyri_reader *r;
    bool found;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(a->engine, r, pyri_key_bytes(&k), &value,
                                 &found);
    if (err == 0 && !found)
        err = pyri_fail(PYR_ENOTFOUND, "array '%s' is no copy", a->name);
    if (err == 0)
        err = pyri_copy_state_decode(value, s);
    pyri_engine_end(a->engine, r);
    return err;
}

int
pyri_copy_state_put(const pyri_array *a, pyri_copy_state *was,
                    const pyri_copy_state *s)
{
    pyri_key k = pyri_key_id("copy/", a->id);
    pyri_buf old = {0}, bytes = {0};
    pyri_copy_state_encode(was, &old);
    pyri_copy_state_encode(s, &bytes);
    pyri_edit edits[] = {{.kind = PYRI_EDIT_SAME,
                          .key = pyri_key_bytes(&k),
                          .value = {old.data, old.size}},
                         {.kind = PYRI_EDIT_PUT,
                          .key = pyri_key_bytes(&k),
                          .value = {bytes.data, bytes.size}}};
    int err = pyri_buf_check(&old, "the record of a copy");
    if (err == 0)
        err = pyri_buf_check(&bytes, "the record of a copy");
    if (err == 0)
        err = pyri_engine_edit(a->engine, edits, 2);
    if (err == PYR_EFENCED)
        err = pyri_fail(PYR_EFENCED, "another process copies to array '%s'",
                        a->name);
    if (err == 0) {
        *was = *s;
        PYRI_FAULT("copy.noted");
    }
    pyri_buf_fini(&old);
    pyri_buf_fini(&bytes);
    return err;
}

/* --- going on ------------------------------------------------------------ */

static int
fail_taken(const copying *c, const char *why)
{
    return pyri_fail(PYR_EEXIST, "array '%s' %s; choose another name for the "
                     "copy", c->to->name, why);
}

/* The newest version of the copy before a label. */
static int
note_label(void *ctx, uint64_t label, const pyri_version_get *v)
{
    *(uint64_t *)ctx = label;
    return 1;
}

static int
label_before(pyri_array *a, uint64_t label, uint64_t *out)
{
    pyri_reader *r;
    *out = a->first;
    if (label - a->first < 2)
        return 0;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_versions(a->engine, r, a->id, label - 1,
                                    a->first + 1, note_label, out);
    pyri_engine_end(a->engine, r);
    return err < 0 ? err : 0;
}

/* The newest version was published by a copy that did not come to compare it.
 * Do so, unless the source has forgotten it since. */
static int
take_up(copying *c)
{
    uint64_t hash, theirs = 0, label = c->latest;
    pyri_replay p = {.from = c->from, .to = c->to, .label = label};
    size_t i = 0;
    while (i < c->state.n && c->state.window[i].label != label)
        i++;
    int err = pyri_replay_hash(c->to, label, true, &hash);
    if (err < 0)
        return err;
    if (i == c->state.n || c->state.window[i].hash != hash)
        return fail_taken(c, "was written to by others since it was copied");
    err = pyri_replay_hash(c->from, label, false, &theirs);
    if (err == 0 && theirs != hash)
        return fail_taken(c, "is the copy of an array that went another way");
    if (err == 0 && (err = label_before(c->to, label, &p.before)) == 0)
        err = pyri_replay_compare(&p);
    if (err < 0 && err != PYR_ENOVERSION)
        return err;
    c->state.done = (pyri_copied_version){label, hash};
    return 0;
}

/* Is what was copied up to now what the source has? */
static int
check_done(copying *c)
{
    uint64_t theirs;
    const pyri_copied_version *done = &c->state.done;
    if (done->hash == 0)
        return 0;
    int err = pyri_replay_hash(c->from, done->label, false, &theirs);
    if (err == PYR_ENOVERSION)
        return 0; /* forgotten since, or it never came so far again */
    if (err == 0 && theirs != done->hash)
        err = fail_taken(c, "is the copy of an array that went another way");
    return err;
}

/* Open the array that copies go to, or make it. */
static int
open_copy(copying *c, pyri_engine *e, const char *name)
{
    pyr_version latest;
    int err = pyri_array_open(e, name, &c->to);
    if (err == PYR_ENOTFOUND) {
        if ((err = pyri_copy_create(c->from, e, name)) == 0)
            err = pyri_array_open(e, name, &c->to);
    }
    if (err < 0)
        return err;
    err = pyri_copy_state_get(c->to, &c->noted);
    c->state = c->noted;
    if (err == PYR_ENOTFOUND ||
        (err == 0 && (c->state.source != c->from->id ||
                      c->to->first != c->from->first)))
        return fail_taken(c, "exists already, and is no copy of this one");
    if (err == 0)
        err = pyri_latest(c->to, &latest);
    if (err < 0)
        return err;
    c->latest = c->to->first + latest;
    if (c->latest > c->from->first && c->latest != c->state.done.label)
        return take_up(c);
    return check_done(c);
}

/* --- which versions ------------------------------------------------------ */

/* Versions that are named must be there, or must have been copied. */
static int
check_list(const copying *c)
{
    const pyr_copy_spec *s = c->spec;
    for (size_t i = 0; i < s->n; i++) {
        pyri_snapshot snap;
        uint64_t v = s->versions[i];
        if (i && v <= s->versions[i - 1])
            return pyri_fail(PYR_EINVAL, "the versions to copy do not ascend");
        bool behind = v <= c->latest - c->to->first;
        int err = pyri_snapshot_open(behind ? c->to : c->from, v, &snap);
        if (err == PYR_ENOVERSION && behind)
            err = pyri_fail(PYR_EINVAL,
                            "version %llu was left out when newer ones were "
                            "copied to '%s', and cannot be added now",
                            (unsigned long long)v, c->to->name);
        if (err < 0)
            return err;
        pyri_snapshot_close(&snap);
    }
    return 0;
}

static int
note_pin(void *ctx, pyri_bytes key, pyri_bytes value)
{
    copying *c = ctx;
    if (value.size != 8)
        return pyri_fail(PYR_ECORRUPT, "the record of a clone is damaged");
    uint64_t *pins = pyri_sys_realloc(c->pins,
                                      (c->npins + 1) * sizeof *pins);
    if (!pins)
        return pyri_fail_nomem("a list of clones");
    c->pins = pins;
    c->pins[c->npins++] = pyri_load64(value.data);
    return 0;
}

/* A forgotten version that a clone begins with is still needed. */
static int
find_pins(copying *c)
{
    pyri_reader *r;
    pyri_key k = pyri_key_id("child/", c->from->id);
    int err = pyri_engine_begin(c->from->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_records(c->from->engine, r, pyri_key_bytes(&k),
                                   note_pin, c);
    pyri_engine_end(c->from->engine, r);
    return err;
}

static bool
is_pinned(const copying *c, uint64_t label)
{
    for (size_t i = 0; i < c->npins; i++)
        if (c->pins[i] == label)
            return true;
    return false;
}

static int
count_version(void *ctx, uint64_t label, const pyri_version_get *v)
{
    copying *c = ctx;
    c->total += !v->forgotten || is_pinned(c, label);
    return 0;
}

static int
note_version(void *ctx, uint64_t label, const pyri_version_get *v)
{
    copying *c = ctx;
    pyri_copy_state *s = &c->state;
    c->scanned = label;
    if (!v->forgotten || is_pinned(c, label))
        s->window[s->n++].label = label;
    return s->n == PYRI_COPY_WINDOW;
}

static int
scan_from(copying *c, uint64_t after, pyri_version_fn *each)
{
    pyri_reader *r;
    if (after >= c->end)
        return 0;
    int err = pyri_engine_begin(c->from->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_versions(c->from->engine, r, c->from->id, after + 1,
                                    c->end, each, c);
    pyri_engine_end(c->from->engine, r);
    return err < 0 ? err : 0;
}

/* What is to be copied is settled here, whatever is written meanwhile. */
static int
settle_list(copying *c)
{
    pyr_version latest;
    int err = pyri_latest(c->from, &latest);
    c->end = c->from->first + latest;
    c->scanned = c->latest;
    if (err < 0)
        return err;
    if (c->spec->versions) {
        for (size_t i = 0; i < c->spec->n; i++)
            c->total += c->to->first + c->spec->versions[i] > c->latest;
        return check_list(c);
    }
    if ((err = find_pins(c)) < 0)
        return err;
    return scan_from(c, c->latest, count_version);
}

/* Fill the window with the versions that come next, and note it. */
static int
next_window(copying *c)
{
    pyri_copy_state *s = &c->state;
    const pyr_copy_spec *spec = c->spec;
    int err = 0;
    s->n = 0;
    if (!spec->versions)
        err = scan_from(c, c->scanned, note_version);
    for (; spec->versions && c->next < spec->n && s->n < PYRI_COPY_WINDOW;
         c->next++)
        if (c->to->first + spec->versions[c->next] > c->latest)
            s->window[s->n++].label = c->to->first + spec->versions[c->next];
    size_t kept = 0;
    for (size_t i = 0; i < s->n && err == 0; i++) {
        pyri_copied_version v = s->window[i];
        err = pyri_replay_hash(c->from, v.label, is_pinned(c, v.label),
                               &v.hash);
        if (err == 0)
            s->window[kept++] = v;
        else if (err == PYR_ENOVERSION && !spec->versions)
            err = 0; /* forgotten just now */
    }
    s->n = kept;
    return err < 0 ? err : pyri_copy_state_put(c->to, &c->noted, s);
}

/* --- copying ------------------------------------------------------------- */

static int
tell(const copying *c)
{
    const pyr_progress *p = &c->spec->progress;
    return p->each ? p->each(p->ctx, c->done, c->total) : 0;
}

static int
copy_version(copying *c, const pyri_copied_version *v)
{
    pyri_replay p = {
        .from = c->from, .to = c->to, .label = v->label, .before = c->latest};
    int err = pyri_replay_version(&p);
    if (err < 0)
        return pyri_fail_at(err, "version %llu of array '%s'",
                            (unsigned long long)(v->label - c->from->first),
                            c->from->name);
    c->latest = v->label;
    c->state.done = *v;
    c->out.versions++;
    c->out.cells += p.cells;
    c->out.bytes += p.cells * pyri_type_size(c->from->schema.type);
    c->done++;
    return tell(c);
}

static int
copy_all(copying *c)
{
    int err = tell(c);
    do {
        if (err == 0)
            err = next_window(c);
        for (size_t i = 0; i < c->state.n && err == 0; i++)
            err = copy_version(c, &c->state.window[i]);
    } while (err == 0 && c->state.n);
    return err;
}

/* --- what may change without a version ----------------------------------- */

static int
copy_tag(void *ctx, const char *tag, pyr_version v)
{
    const copying *c = ctx;
    pyr_version have;
    int err = pyri_tag_get(c->to, tag, &have);
    if (err == 0 && have == v)
        return 0;
    if (err < 0 && err != PYR_ENOTFOUND)
        return err;
    err = v <= c->latest - c->to->first ? pyri_tag_set(c->to, tag, v) : 0;
    return err == PYR_ENOVERSION ? 0 : err; /* it was not copied */
}

static int
copy_attributes(copying *c)
{
    pyri_buf ours = {0}, theirs = {0};
    int err = pyri_array_attributes(c->from, &theirs);
    if (err == 0)
        err = pyri_array_attributes(c->to, &ours);
    if (err == 0 && strcmp((const char *)ours.data,
                           (const char *)theirs.data) != 0)
        err = pyri_array_set_attributes(c->to, (const char *)theirs.data);
    pyri_buf_fini(&ours);
    pyri_buf_fini(&theirs);
    return err;
}

int
pyri_copy_array(pyri_array *from, pyri_engine *e, const char *name,
                const pyr_copy_spec *spec, pyr_copied *out)
{
    static const pyr_copy_spec all = {0};
    copying *c = pyri_sys_calloc(1, sizeof *c);
    if (!c)
        return pyri_fail_nomem("a copy");
    c->from = from;
    c->spec = spec ? spec : &all;
    int err = open_copy(c, e, name);
    if (err == 0)
        err = settle_list(c);
    if (err == 0)
        err = copy_all(c);
    if (err == 0)
        err = pyri_tag_list(from, copy_tag, c);
    if (err == 0)
        err = copy_attributes(c);
    *out = c->out;
    pyri_array_close(c->to);
    free(c->pins);
    free(c);
    return err;
}
