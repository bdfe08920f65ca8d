/*
 * engine/local/reader.c - pooled read transactions.
 *
 * An idle reader keeps its place in LMDB's table and is renewed when it is
 * taken again, which costs no lock and no system call. The pool is an array
 * of atomic pointers; each thread begins its search at a place of its own.
 */
#include "engine/local/local.h"

#include "base/sys.h"
#include "engine/local/env.h"
#include "engine/local/recent.h"

#include <stdlib.h>

static atomic_uint next_hint;
static _Thread_local unsigned hint; /* 0: none yet */

static unsigned
my_hint(void)
{
    if (hint == 0)
        hint = atomic_fetch_add_explicit(&next_hint, 1,
                                         memory_order_relaxed) | 1u << 31;
    return hint;
}

static pyri_reader *
take_idle(pyri_readers *p)
{
    unsigned from = my_hint();
    for (unsigned i = 0; i < PYRI_POOLED_READERS; i++) {
        _Atomic(pyri_reader *) *at =
            &p->idle[(from + i) % PYRI_POOLED_READERS];
        if (atomic_load_explicit(at, memory_order_relaxed)) {
            pyri_reader *r = atomic_exchange(at, NULL);
            if (r)
                return r;
        }
    }
    return NULL;
}

static void
free_reader(pyri_reader *r)
{
    pyri_env_cursor_close(r->nodes);
    pyri_recent_free(r->recent);
    pyri_env_abort(r->txn);
    if (r->live)
        pyri_env_abort(r->live);
    free(r->held);
    free(r);
}

static int
new_reader(pyri_site *s, pyri_reader **out)
{
    pyri_reader *r = pyri_sys_calloc(1, sizeof *r);
    if (!r)
        return pyri_fail_nomem("a reader");
    int err = pyri_env_read(s->meta, &r->txn);
    if (err < 0) {
        free(r);
        return err;
    }
    *out = r;
    return 0;
}

int
pyri_reader_begin(pyri_site *s, pyri_reader **out)
{
    *out = NULL;
    pyri_reader *r = take_idle(&s->readers);
    if (!r)
        return new_reader(s, out);
    int err = pyri_env_renew(r->txn);
    if (err < 0) {
        free_reader(r);
        return err;
    }
    r->again = true;
    *out = r;
    return 0;
}

int
pyri_reader_live(pyri_site *s, pyri_reader *r)
{
    int err = r->live ? pyri_env_renew(r->live)
                      : pyri_env_read(s->live, &r->live);
    r->live_begun = err == 0;
    return err;
}

void
pyri_reader_end(pyri_site *s, pyri_reader *r)
{
    if (!r)
        return;
    pyri_map_release(s, r);
    pyri_env_reset(r->txn);
    if (r->live_begun)
        pyri_env_reset(r->live);
    r->live_begun = false;
    r->nodes_begun = r->recent_begun = false;
    r->small.ref = (pyri_ref){0, 0};
    unsigned from = my_hint();
    for (unsigned i = 0; i < PYRI_POOLED_READERS; i++) {
        pyri_reader *none = NULL;
        if (atomic_compare_exchange_strong(
                &s->readers.idle[(from + i) % PYRI_POOLED_READERS], &none, r))
            return;
    }
    free_reader(r);
}

void
pyri_readers_fini(pyri_site *s)
{
    for (unsigned i = 0; i < PYRI_POOLED_READERS; i++) {
        pyri_reader *r = atomic_exchange(&s->readers.idle[i], NULL);
        if (r)
            free_reader(r);
    }
}
