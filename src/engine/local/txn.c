/*
 * engine/local/txn.c - transactions of LMDB, values and cursors.
 *
 * A transaction knows the snapshot that it sees, or, if it writes, that it
 * began with: roots of trees, and in which pages they are.
 */
#include "engine/local/env.h"

#include "base/fail.h"
#include "base/sys.h"
#include "engine/local/aside.h"
#include "engine/local/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
    NEARLY_NOTHING = 1 << 20, /* bytes left on a full disk */
    TRIES = 1000,
    FEW_PAGES = 16, /* of lists that are looked at each time */
    GUARDED = 32 /* transactions until pages are looked at again */
};

struct pyri_txn {
    MDB_txn *mdb;
    pyri_aside *aside;
    pyri_state state;
    uint64_t seen;  /* its number; 0: none was found yet */
    pyri_root roots[PYRI_MAX_DATABASES];
    unsigned known; /* bits: of those */
    pyri_guard *guard; /* the environment's; NULL: it only reads */
    pyri_turn *turn;   /* that it has; or NULL */
};

/* --- beginning ----------------------------------------------------------- */

static void
set_roots(pyri_txn *t)
{
    t->state.main.tree = 1;
    t->roots[0] = t->state.free;
    t->roots[1] = t->state.main;
    t->known = 3;
}

/* What LMDB's read transaction sees. If its description may be being written
 * over, begin again: either there is a newer one, or that did not happen,
 * since whoever describes the next one was stopped before it said so. One that
 * is still the newest was not changed meanwhile, and is known. */
static int
see(pyri_txn *t)
{
    bool found = false, sure = false;
    int rc, err = 0;
    if (t->seen && t->seen == mdb_txn_id(t->mdb))
        return 0;
    t->seen = 0;
    for (int i = 0; i < TRIES && !(found && sure); i++) {
        uint64_t id = mdb_txn_id(t->mdb);
        err = pyri_state_find(&t->aside->file, id, &t->state, &found, &sure);
        if (err < 0 || (found && sure))
            break;
        mdb_txn_reset(t->mdb);
        if ((rc = mdb_txn_renew(t->mdb)) != 0)
            return pyri_fail_mdb(rc, "begin to read metadata");
        sure = mdb_txn_id(t->mdb) == id;
    }
    found = found && sure;
    if (err == 0 && !found)
        return pyri_pagefile_fail(&t->aside->file, mdb_txn_id(t->mdb) & 1,
                                  "does not describe the newest state");
    if (err == 0) {
        set_roots(t);
        t->seen = mdb_txn_id(t->mdb);
    }
    return err;
}

/* What other threads did with LMDB's lock comes before what follows. */
static void
pass_gate(pyri_aside *a)
{
    pthread_mutex_lock(&a->gate);
    pthread_mutex_unlock(&a->gate);
}

/* The one it began with; nobody else can write now. */
static int
see_before(pyri_txn *t)
{
    pyri_aside *a = t->aside;
    uint64_t id = mdb_txn_id(t->mdb) - 1;
    bool found, sure;
    pass_gate(a);
    int err = pyri_state_find(&a->file, id, &t->state, &found, &sure);
    if (err == 0 && !found)
        err = pyri_pagefile_fail(&a->file, id & 1,
                                 "does not describe the newest state");
    if (err < 0 || (err = pyri_guard_last(&t->state, id, &a->length)) < 0)
        return err;
    if (!a->free_seen || t->state.free.pages <= FEW_PAGES)
        err = pyri_guard_free(&t->state);
    if (err < 0)
        return err;
    a->free_seen = true;
    if (a->guarded++ % GUARDED == 0)
        a->guard = (pyri_guard){{0}};
    t->guard = &a->guard;
    set_roots(t);
    return 0;
}

/* The transaction has ended. */
static void
let_go(pyri_txn *t)
{
    if (t->turn)
        pyri_turn_pass(t->turn, t->aside->pid);
    free(t);
}

static int
begin(MDB_env *env, bool writes, pyri_txn **out)
{
    pyri_txn *t = pyri_sys_calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return pyri_fail_nomem("a transaction");
    t->aside = mdb_env_get_userctx(env);
    if (writes && (t->turn = t->aside->turn))
        pyri_turn_take(t->turn, t->aside->pid);
    int rc = mdb_txn_begin(env, NULL, writes ? 0 : MDB_RDONLY, &t->mdb);
    if (rc == MDB_READERS_FULL) { /* some of them may be dead */
        pyri_env_forget_dead(env);
        rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &t->mdb);
    }
    if (rc != 0) {
        let_go(t);
        return pyri_fail_mdb(rc, "begin to %s metadata",
                             writes ? "write" : "read");
    }
    int err = writes ? see_before(t) : see(t);
    if (err < 0)
        pyri_env_abort(t);
    else
        *out = t;
    return err;
}

int
pyri_env_read(MDB_env *env, pyri_txn **out)
{
    return begin(env, false, out);
}

int
pyri_env_write(MDB_env *env, pyri_txn **out)
{
    return begin(env, true, out);
}

/* --- going on and ending ------------------------------------------------- */

void
pyri_env_reset(pyri_txn *t)
{
    mdb_txn_reset(t->mdb);
}

int
pyri_env_renew(pyri_txn *t)
{
    int rc = mdb_txn_renew(t->mdb);
    if (rc != 0)
        return pyri_fail_mdb(rc, "begin to read metadata");
    int err = see(t);
    if (err < 0)
        mdb_txn_reset(t->mdb);
    return err;
}

uint64_t
pyri_env_id(const pyri_txn *t)
{
    return mdb_txn_id(t->mdb);
}

void
pyri_env_abort(pyri_txn *t)
{
    if (t->guard)
        pass_gate(t->aside);
    mdb_txn_abort(t->mdb);
    let_go(t);
}

/* LMDB calls a write that came out short an input/output error. */
static bool
is_full(MDB_env *env)
{
    struct statvfs v;
    int fd;
    return mdb_env_get_fd(env, &fd) == 0 && pyri_sys_fstatvfs(fd, &v) == 0 &&
           (uint64_t)v.f_bavail * v.f_frsize < NEARLY_NOTHING;
}

int
pyri_env_commit(pyri_txn *t, const char *what)
{
    MDB_env *env = mdb_txn_env(t->mdb);
    if (t->guard && t->aside->grows)
        pyri_env_ahead(env, t->aside->length, &t->aside->growth);
    pass_gate(t->aside);
    int rc = mdb_txn_commit(t->mdb);
    let_go(t);
    if (rc == EIO && is_full(env))
        rc = ENOSPC;
    return rc ? pyri_fail_mdb(rc, "%s", what) : 0;
}

/* --- databases ----------------------------------------------------------- */

/* What the main tree says of a database. LMDB will look there, too. */
static int
find_root(pyri_txn *t, pyri_guard *g, const char *name, pyri_root *out,
          bool *found)
{
    const pyri_state *s = &t->state;
    pyri_bytes bytes;
    unsigned flags;
    *out = (pyri_root){.page = UINT64_MAX};
    *found = false;
    int err = g ? pyri_guard_key(g, s, s->main, name, strlen(name), false) : 0;
    if (err < 0 || (err = pyri_state_get(s, s->main, name, strlen(name),
                                         &bytes, &flags, found)) < 0 ||
        !*found)
        return err;
    const char *wrong = NULL;
    if (flags != PYRI_ENTRY_DATABASE || bytes.size != PYRI_PAGE_ROOT ||
        pyri_load16((const uint8_t *)bytes.data + 4) != 0 ||
        (wrong = pyri_page_root(bytes.data, out)))
        return pyri_fail(PYR_ECORRUPT, "%s: database '%s' %s",
                         s->file->name, name, wrong ? wrong : "is damaged");
    return 0;
}

/* Of a database that was not there when the transaction began, LMDB knows
 * more. */
static int
root_of(pyri_txn *t, MDB_dbi db, pyri_root *out)
{
    *out = (pyri_root){.page = UINT64_MAX};
    if (!(t->known >> db & 1)) {
        bool found;
        int err = find_root(t, t->guard, t->aside->names[db], &t->roots[db],
                            &found);
        if (err < 0)
            return err;
        if (!found && !t->guard)
            return pyri_fail(PYR_ECORRUPT, "%s: database '%s' is missing",
                             t->state.file->name, t->aside->names[db]);
        t->roots[db].tree = db;
        t->known |= 1u << db;
    }
    *out = t->roots[db];
    return 0;
}

int
pyri_env_database(pyri_txn *t, const char *name, unsigned flags, MDB_dbi *out,
                  bool *lost)
{
    pyri_guard guard = {{0}};
    pyri_root root;
    bool found;
    *lost = false;
    int err = name ? find_root(t, &guard, name, &root, &found) : 0;
    if (err < 0)
        return err;
    int rc = mdb_dbi_open(t->mdb, name, flags, out);
    *lost = rc == MDB_NOTFOUND;
    if (rc != 0)
        return pyri_fail_mdb(rc, "%s: database '%s'", t->state.file->name,
                             name ? name : "");
    t->aside->names[*out] = name;
    return 0;
}

int
pyri_env_entries(pyri_txn *t, MDB_dbi db, uint64_t *out)
{
    pyri_root root;
    int err = root_of(t, db, &root);
    *out = err < 0 ? 0 : root.entries;
    return err;
}

int
pyri_env_pages(pyri_txn *t, MDB_dbi db, uint64_t *out)
{
    pyri_root root;
    int err = root_of(t, db, &root);
    *out = err < 0 ? 0 : root.pages;
    return err;
}

/* --- values -------------------------------------------------------------- */

static MDB_val
val_of(const void *data, size_t size)
{
    return (MDB_val){size, (void *)(uintptr_t)data};
}

/* Before LMDB is asked for something at a key. */
static int
guard(pyri_txn *t, MDB_dbi db, const void *key, size_t size, bool beside)
{
    pyri_root root;
    int err = root_of(t, db, &root);
    return err < 0 ? err
                   : pyri_guard_key(t->guard, &t->state, root, key, size,
                                    beside);
}

static int
get_seen(pyri_txn *t, MDB_dbi db, const void *key, size_t size, MDB_val *out,
         bool *found)
{
    pyri_root root;
    pyri_bytes value;
    unsigned flags;
    int err = root_of(t, db, &root);
    if (err < 0 || (err = pyri_state_get(&t->state, root, key, size, &value,
                                         &flags, found)) < 0)
        return err;
    if (*found)
        *out = val_of(value.data, value.size);
    return 0;
}

int
pyri_env_get(pyri_txn *t, MDB_dbi db, const void *key, size_t size,
             MDB_val *out, bool *found)
{
    MDB_val k = val_of(key, size);
    *found = false;
    if (!t->guard)
        return get_seen(t, db, key, size, out, found);
    int err = guard(t, db, key, size, false);
    if (err < 0)
        return err;
    int rc = mdb_get(t->mdb, db, &k, out);
    *found = rc == 0;
    if (rc == 0 || rc == MDB_NOTFOUND)
        return 0;
    return pyri_fail_mdb(rc, "read metadata");
}

int
pyri_env_put(pyri_txn *t, MDB_dbi db, const void *key, size_t size,
             const void *value, size_t value_size)
{
    MDB_val k = val_of(key, size), v = val_of(value, value_size);
    int err = guard(t, db, key, size, false);
    if (err < 0)
        return err;
    int rc = mdb_put(t->mdb, db, &k, &v, 0);
    return rc ? pyri_fail_mdb(rc, "write metadata") : 0;
}

int
pyri_env_put_two(pyri_txn *txn, MDB_dbi db, const void *key, size_t size,
                 pyri_bytes first, pyri_bytes second)
{
    uint8_t small[1024], *value = small;
    size_t all = first.size + second.size;
    if (all > sizeof small && !(value = pyri_sys_malloc(all)))
        return pyri_fail_nomem("a value of metadata");
    memcpy(value, first.data, first.size);
    if (second.size)
        memcpy(value + first.size, second.data, second.size);
    int err = pyri_env_put(txn, db, key, size, value, all);
    if (value != small)
        free(value);
    return err;
}

int
pyri_env_append_two(pyri_txn *t, MDB_dbi db, const void *key, size_t size,
                    pyri_bytes first, pyri_bytes second)
{
    MDB_val k = val_of(key, size), v = {first.size + second.size, NULL};
    int err = guard(t, db, key, size, false);
    if (err < 0 || (err = pyri_guard_edge(t->guard, &t->state, t->roots[db],
                                          true)) < 0)
        return err;
    int rc = mdb_put(t->mdb, db, &k, &v, MDB_RESERVE | MDB_APPEND);
    if (rc == MDB_KEYEXIST) /* it is not the last */
        rc = mdb_put(t->mdb, db, &k, &v, MDB_RESERVE);
    if (rc != 0)
        return pyri_fail_mdb(rc, "write metadata");
    if (first.size)
        memcpy(v.mv_data, first.data, first.size);
    if (second.size)
        memcpy((uint8_t *)v.mv_data + first.size, second.data, second.size);
    return 0;
}

int
pyri_env_delete(pyri_txn *t, MDB_dbi db, const void *key, size_t size,
                bool *found)
{
    MDB_val k = val_of(key, size);
    *found = false;
    int err = guard(t, db, key, size, true);
    if (err < 0)
        return err;
    int rc = mdb_del(t->mdb, db, &k, NULL);
    *found = rc == 0;
    if (rc == 0 || rc == MDB_NOTFOUND)
        return 0;
    return pyri_fail_mdb(rc, "delete metadata");
}

/* --- cursors ------------------------------------------------------------- */

struct pyri_walk {
    pyri_txn *txn;
    MDB_dbi db;
    MDB_cursor *mdb; /* of a write transaction; else NULL, and */
    pyri_spot spot;
    uint64_t of; /* the state that this is a place in; 0: none */
};

int
pyri_env_cursor_renew(pyri_walk *c)
{
    pyri_root root;
    if (c->of && c->of == c->txn->seen)
        return 0; /* it may stay where it is */
    int err = root_of(c->txn, c->db, &root);
    if (err == 0)
        pyri_spot_init(&c->spot, &c->txn->state, root);
    c->of = err == 0 ? c->txn->seen : 0;
    return err;
}

int
pyri_env_cursor(pyri_txn *t, MDB_dbi db, pyri_walk **out)
{
    pyri_walk *c = pyri_sys_malloc(sizeof *c);
    *out = NULL;
    if (!c)
        return pyri_fail_nomem("a cursor");
    c->txn = t;
    c->db = db;
    c->mdb = NULL;
    c->of = 0;
    int err = pyri_env_cursor_renew(c), rc = 0;
    if (err == 0 && t->guard &&
        (rc = mdb_cursor_open(t->mdb, db, &c->mdb)) != 0)
        err = pyri_fail_mdb(rc, "walk metadata");
    if (err < 0)
        free(c);
    else
        *out = c;
    return err;
}

void
pyri_env_cursor_close(pyri_walk *c)
{
    if (c && c->mdb)
        mdb_cursor_close(c->mdb);
    free(c);
}

/* What is where a reader's cursor is. */
static int
show(const pyri_walk *c, MDB_val *key, MDB_val *value)
{
    pyri_bytes k, v;
    unsigned flags;
    int err = pyri_spot_get(&c->spot, &k, &v, &flags);
    if (err < 0)
        return err;
    *key = val_of(k.data, k.size);
    *value = val_of(v.data, v.size);
    return 0;
}

int
pyri_env_cursor_find(pyri_walk *c, const void *key, size_t size,
                     MDB_val *out, bool *found)
{
    MDB_val own;
    bool more;
    int err = pyri_spot_seek(&c->spot, key, size, found, &more);
    return err < 0 || !*found ? err : show(c, &own, out);
}

static int
step_seen(pyri_walk *c, MDB_cursor_op op, MDB_val *key, MDB_val *value,
          bool *more)
{
    bool exact;
    int err;
    if (op == MDB_SET_RANGE)
        err = pyri_spot_seek(&c->spot, key->mv_data, key->mv_size, &exact,
                             more);
    else if (op == MDB_FIRST || op == MDB_LAST)
        err = pyri_spot_edge(&c->spot, op == MDB_LAST, more);
    else
        err = pyri_spot_move(&c->spot, op == MDB_PREV, more);
    return err < 0 || !*more ? err : show(c, key, value);
}

/* Steps to pages beside that where LMDB's cursor is have been guarded when it
 * came there. */
static int
step_guarded(pyri_walk *c, MDB_cursor_op op, MDB_val *key, MDB_val *value,
             bool *more)
{
    pyri_txn *t = c->txn;
    int err = 0;
    if (op == MDB_SET_RANGE)
        err = guard(t, c->db, key->mv_data, key->mv_size, true);
    else if (op == MDB_FIRST || op == MDB_LAST)
        err = pyri_guard_edge(t->guard, &t->state, t->roots[c->db],
                              op == MDB_LAST);
    if (err < 0)
        return err;
    int rc = mdb_cursor_get(c->mdb, key, value, op);
    *more = rc == 0;
    if (rc == 0)
        return guard(t, c->db, key->mv_data, key->mv_size, true);
    return rc == MDB_NOTFOUND ? 0 : pyri_fail_mdb(rc, "walk metadata");
}

int
pyri_env_step(pyri_walk *c, MDB_cursor_op op, pyri_bytes prefix,
              MDB_val *key, MDB_val *value, bool *more)
{
    *more = false;
    int err = c->mdb ? step_guarded(c, op, key, value, more)
                     : step_seen(c, op, key, value, more);
    *more = err == 0 && *more && key->mv_size >= prefix.size &&
            memcmp(key->mv_data, prefix.data, prefix.size) == 0;
    return err;
}

int
pyri_env_cursor_delete(pyri_walk *c)
{
    int rc = mdb_cursor_del(c->mdb, 0);
    return rc ? pyri_fail_mdb(rc, "delete metadata") : 0;
}
