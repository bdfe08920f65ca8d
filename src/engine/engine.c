/*
 * engine/engine.c - the door: from a URL to an engine, and into its table.
 */
#include "engine/engine.h"

#include "base/sys.h"
#include "chunk/errand.h"
#include "engine/engines.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UPKEEP_PAUSE_NS = 2000000,
    UPKEEP_PAUSES = 1000 /* two seconds */
};

/* --- URLs ---------------------------------------------------------------- */

static const pyri_engine_ops *const engines[] = {
    &pyri_engine_local,
    &pyri_engine_mem,
#ifdef PYRI_HAVE_RADOS
    &pyri_engine_rados,
#endif
};

enum { NENGINES = sizeof engines / sizeof engines[0] };

/* Length of the scheme ^[a-z][a-z0-9+.-]+: without its colon; 0 if there is
 * none. One letter is no scheme, and so is nothing behind a slash. */
static size_t
scheme_length(const char *url)
{
    if (url[0] < 'a' || url[0] > 'z')
        return 0;
    size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
    return n >= 2 && url[n] == ':' ? n : 0;
}

static bool
scheme_is(const char *name, const char *url, size_t n)
{
    return strlen(name) == n && memcmp(name, url, n) == 0;
}

static int
fail_scheme(const char *url, size_t n)
{
    char known[64] = "";
    for (int i = 0; i < NENGINES; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s:", i ? ", " : "",
                 engines[i]->scheme);
    }
    return pyri_fail(PYR_EINVAL, "%s: unknown scheme \"%.*s:\"; known are %s",
                     url, (int)n, url, known);
}

static int
find_engine(const char *url, size_t n, const pyri_engine_ops **out)
{
    for (int i = 0; i < NENGINES; i++) {
        if (scheme_is(engines[i]->scheme, url, n)) {
            *out = engines[i];
            return 0;
        }
    }
    if (scheme_is("rados", url, n))
        return pyri_fail(PYR_EUNSUPPORTED, "%s: this build has no Ceph engine",
                         url);
    return fail_scheme(url, n);
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Copy `from` to `to`, with a byte in place of every %XX. */
static int
unescape(const char *url, const char *from, char *to)
{
    while (*from) {
        if (*from != '%') {
            *to++ = *from++;
            continue;
        }
        int high = hex_digit(from[1]);
        int low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0 || high + low == 0)
            return pyri_fail(PYR_EINVAL,
                             "%s: bad escape \"%.3s\"; %%XX is "
                             "a byte in hexadecimal, not zero",
                             url, from);
        *to++ = (char)(high << 4 | low);
        from += 3;
    }
    *to = 0;
    return 0;
}

/* The path in a file: URL. `from` is what follows the colon. */
static int
parse_file(const char *url, const char *from, char *path)
{
    if (strncmp(from, "//", 2) == 0) {
        from += 2;
        size_t host = strcspn(from, "/");
        if (host != 0 && !scheme_is("localhost", from, host))
            return pyri_fail(PYR_EINVAL,
                             "%s: \"%.*s\" is another host; a "
                             "path on this one is file:///PATH",
                             url, (int)host, from);
        from += host;
    }
    if (!*from)
        return pyri_fail(PYR_EINVAL, "%s: there is no path in it", url);
    return unescape(url, from, path);
}

int
pyri_engine_parse_url(const char *url, pyri_url *out)
{
    if (!url || !*url)
        return pyri_fail(PYR_EINVAL, "the URL of the store is empty");
    if (strnlen(url, PYRI_MAX_URL + 1) > PYRI_MAX_URL)
        return pyri_fail(PYR_EINVAL,
                         "the URL of the store is longer than %d "
                         "bytes",
                         PYRI_MAX_URL);
    size_t n = scheme_length(url);
    if (n == 0) {
        out->ops = &pyri_engine_local;
        strcpy(out->rest, url);
        return 0;
    }
    int err = find_engine(url, n, &out->ops);
    if (err < 0)
        return err;
    if (out->ops == &pyri_engine_local)
        return parse_file(url, url + n + 1, out->rest);
    strcpy(out->rest, url + n + 1);
    return 0;
}

/* --- lifetime ------------------------------------------------------------ */

static int
check_flags(unsigned flags)
{
    if (flags & ~(PYR_OPEN_CREATE | PYR_OPEN_READONLY))
        return pyri_fail(PYR_EINVAL, "unknown flags to open a store: 0x%x",
                         flags);
    if ((flags & PYR_OPEN_CREATE) && (flags & PYR_OPEN_READONLY))
        return pyri_fail(PYR_EINVAL, "a store cannot be created for reading "
                                     "only");
    return 0;
}

int
pyri_engine_open(const char *url, unsigned flags,
                 const pyr_store_options *options, pyri_engine **out)
{
    *out = NULL;
    pyri_url parsed;
    int err = check_flags(flags);
    if (err < 0 || (err = pyri_engine_parse_url(url, &parsed)) < 0)
        return err;
    char *kernels = NULL;
    if (options && options->kernels &&
        !(kernels = pyri_sys_strdup(options->kernels)))
        return pyri_fail_nomem("a store");
    err = parsed.ops->open(parsed.rest, flags, options, out);
    assert((err == 0) == (*out != NULL));
    if (err < 0)
        free(kernels);
    else
        (*out)->kernels = kernels;
    return err;
}

void
pyri_engine_close(pyri_engine *e)
{
    if (!e)
        return;
    free(e->kernels);
    e->ops->close(e);
}

void
pyri_flights_fini(pyri_flights *f)
{
    free(f->list);
    pyri_buf_fini(&f->claims);
    *f = (pyri_flights){0};
}

/* --- into the table ------------------------------------------------------ */

__attribute__((unused)) /* where asserts are compiled out */
static bool
key_fits(pyri_bytes key)
{
    return key.size > 0 && key.size <= PYRI_MAX_KEY;
}

static int
check_writable(const pyri_engine *e, const char *what)
{
    if (e->readonly)
        return pyri_fail(PYR_EREADONLY,
                         "cannot %s: the store is open for "
                         "reading only",
                         what);
    return 0;
}

int
pyri_engine_begin(pyri_engine *e, pyri_reader **out)
{
    *out = NULL;
    return e->ops->begin(e, out);
}

void
pyri_engine_end(pyri_engine *e, pyri_reader *r)
{
    if (r)
        e->ops->end(e, r);
}

int
pyri_engine_get_record(pyri_engine *e, pyri_reader *r, pyri_bytes key,
                       pyri_bytes *value, bool *found)
{
    assert(r && key_fits(key));
    *value = (pyri_bytes){0};
    *found = false;
    return e->ops->get_record(e, r, key, value, found);
}

int
pyri_engine_scan_records(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                         pyri_record_fn *each, void *ctx)
{
    assert(r && prefix.size <= PYRI_MAX_KEY);
    return e->ops->scan_records(e, r, prefix, each, ctx);
}

int
pyri_engine_edit(pyri_engine *e, const pyri_edit *edits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (edits[i].kind == PYRI_EDIT_ARRAY)
            assert(edits[i].ndim >= 1 && edits[i].ndim <= PYR_MAX_DIMS);
        else if (edits[i].kind < PYRI_EDIT_ARRAY)
            assert(key_fits(edits[i].key));
        else if (edits[i].kind == PYRI_EDIT_MARK && !e->ops->marked)
            return pyri_fail(PYR_EINVAL, "this engine keeps no marks");
    int err = check_writable(e, "change the catalog");
    return err < 0 ? err : e->ops->edit(e, edits, n);
}

int
pyri_engine_get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets,
                      size_t n)
{
    assert(r);
    for (size_t i = 0; i < n; i++) {
        assert(key_fits(gets[i].key));
        gets[i].trusted = false;
    }
    return e->ops->get_nodes(e, r, gets, n);
}

void
pyri_engine_vouch_node(pyri_engine *e, pyri_reader *r,
                       const pyri_node_get *got)
{
    if (e->ops->vouch_node)
        e->ops->vouch_node(e, r, got);
}

int
pyri_engine_put_blobs(pyri_engine *e, pyri_blob_put *puts, size_t n)
{
    int err = check_writable(e, "store data");
    for (size_t i = 0; i < n; i++)
        puts[i].ref = (pyri_ref){0, 0};
    if (err < 0 || (err = e->ops->put_blobs(e, puts, n)) == 0)
        return err;
    for (size_t i = 0; i < n; i++) {
        pyri_blob b = {puts[i].ref, puts[i].size};
        if (b.ref.a || b.ref.b)
            e->ops->drop_blobs(e, &b, 1, NULL, 0);
    }
    return err;
}

int
pyri_engine_sync(pyri_engine *e)
{
    return e->readonly ? 0 : e->ops->sync(e); /* nothing stored through it */
}

int
pyri_engine_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets,
                      size_t n)
{
    assert(r);
    return e->ops->get_blobs(e, r, gets, n);
}

bool
pyri_engine_does_errands(const pyri_engine *e)
{
    return e->ops->compute != NULL;
}

int
pyri_engine_compute(pyri_engine *e, pyri_errand *errands, size_t n)
{
    int err = check_writable(e, "store data");
    for (size_t i = 0; i < n; i++)
        errands[i].done = false;
    return err < 0 || !e->ops->compute ? err : e->ops->compute(e, errands, n);
}

int
pyri_engine_reduce(pyri_engine *e, pyri_reader *r, pyri_errand *errands,
                   size_t n)
{
    assert(r);
    for (size_t i = 0; i < n; i++)
        errands[i].done = false;
    return e->ops->reduce ? e->ops->reduce(e, r, errands, n) : 0;
}

void
pyri_engine_tally(pyri_engine *e, uint64_t there, uint64_t here)
{
    if (e->ops->tally && there + here > 0)
        e->ops->tally(e, there, here);
}

int
pyri_engine_latest(pyri_engine *e, pyri_reader *r, uint64_t array,
                   uint64_t *version, uint64_t *shape)
{
    assert(r);
    return e->ops->latest(e, r, array, version, shape);
}

bool
pyri_engine_has_marks(const pyri_engine *e)
{
    return e->ops->marked != NULL;
}

int
pyri_engine_marked(pyri_engine *e, pyri_reader *r, uint64_t array,
                   uint64_t *version, uint64_t *shape, uint64_t *mark)
{
    assert(r);
    return e->ops->marked(e, r, array, version, shape, mark);
}

int
pyri_engine_take(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
                 pyri_flights *below)
{
    assert(!below->list && !below->claims.data);
    int err = check_writable(e, "take a version");
    return err < 0 ? err : e->ops->take(e, take, ticket, below);
}

int
pyri_engine_renew(pyri_engine *e, pyri_ticket *ticket)
{
    int err = check_writable(e, "renew a lease");
    return err < 0 ? err : e->ops->renew(e, ticket);
}

int
pyri_engine_flights(pyri_engine *e, uint64_t array, pyri_flights *out)
{
    assert(!out->list && !out->claims.data);
    return e->ops->flights(e, array, out);
}

int
pyri_engine_complete(pyri_engine *e, pyri_complete *c)
{
    for (size_t i = 0; i < c->nnodes; i++)
        assert(key_fits(c->nodes[i].key));
    int err = check_writable(e, "publish a version");
    return err < 0 ? err : e->ops->complete(e, c);
}

int
pyri_engine_import(pyri_engine *e, pyri_complete *c)
{
    for (size_t i = 0; i < c->nnodes; i++)
        assert(key_fits(c->nodes[i].key));
    int err = check_writable(e, "copy a version");
    return err < 0 ? err : e->ops->import(e, c);
}

int
pyri_engine_wait(pyri_engine *e, uint64_t array, uint64_t version,
                 int timeout_ms)
{
    assert(timeout_ms >= 0);
    return e->ops->wait(e, array, version, timeout_ms);
}

int
pyri_engine_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                        uint64_t version, pyri_version_get *out)
{
    assert(r);
    *out = (pyri_version_get){0};
    return e->ops->get_version(e, r, array, version, out);
}

int
pyri_engine_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                          uint64_t first, uint64_t last, pyri_version_fn *each,
                          void *ctx)
{
    assert(r);
    return e->ops->scan_versions(e, r, array, first, last, each, ctx);
}

void
pyri_engine_vouch(pyri_engine *e, pyri_ref ref)
{
    if (e->ops->vouch)
        e->ops->vouch(e, ref);
}

void
pyri_engine_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                       const pyri_blob *near, size_t nnear)
{
    if (n && !e->readonly)
        e->ops->drop_blobs(e, blobs, n, near, nnear);
}

int
pyri_engine_try_upkeep(pyri_engine *e)
{
    int err = check_writable(e, "give space back");
    return err < 0 ? err : e->ops->begin_upkeep(e);
}

/* Who folds a few chunks behind a reader's back is done soon. Where nobody
 * does, there is nothing to wait for. */
int
pyri_engine_begin_upkeep(pyri_engine *e)
{
    const struct timespec pause = {0, UPKEEP_PAUSE_NS};
    int pauses = e->ops->folds_aside ? UPKEEP_PAUSES : 0;
    int err = pyri_engine_try_upkeep(e);
    for (int i = 0; i < pauses && err == PYR_ETIMEOUT; i++) {
        pyri_sys_nanosleep(&pause, NULL);
        err = pyri_engine_try_upkeep(e);
    }
    return err;
}

void
pyri_engine_end_upkeep(pyri_engine *e)
{
    e->ops->end_upkeep(e);
}

int
pyri_engine_scan_forgotten(pyri_engine *e, pyri_reader *r,
                           pyri_forgotten_fn *each, void *ctx)
{
    assert(r);
    return e->ops->scan_forgotten(e, r, each, ctx);
}

int
pyri_engine_erase(pyri_engine *e, pyri_erase *x)
{
    for (size_t i = 0; i < x->nnodes; i++)
        assert(key_fits(x->nodes[i]));
    x->bytes = 0;
    int err = check_writable(e, "erase what was forgotten");
    return err < 0 ? err : e->ops->erase(e, x);
}

int
pyri_engine_settle(pyri_engine *e, pyri_settled *out)
{
    *out = (pyri_settled){0};
    int err = check_writable(e, "give space back");
    return err < 0 ? err : e->ops->settle(e, out);
}

int
pyri_engine_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                       pyri_node_fn *each, void *ctx)
{
    assert(r);
    return e->ops->scan_nodes(e, r, array, each, ctx);
}

int
pyri_engine_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                       void *ctx)
{
    assert(r);
    return e->ops->scan_blobs(e, r, each, ctx);
}

int
pyri_engine_check(pyri_engine *e)
{
    return e->ops->check ? e->ops->check(e) : 0;
}

int
pyri_engine_replace_nodes(pyri_engine *e, const pyri_node_put *puts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert(key_fits(puts[i].key));
    int err = check_writable(e, "repair nodes");
    return err < 0 ? err : e->ops->replace_nodes(e, puts, n);
}

bool
pyri_engine_can_fold(const pyri_engine *e)
{
    return e->ops->fold != NULL;
}

bool
pyri_engine_folds_aside(const pyri_engine *e)
{
    return e->ops->folds_aside && !e->readonly;
}

int
pyri_engine_fold(pyri_engine *e, pyri_fold *f)
{
    assert(f->family != 0 && f->nnodes == 0 && f->nblobs == 0);
    f->gone.bytes = 0;
    int err = check_writable(e, "fold");
    return err < 0 ? err : e->ops->fold(e, f);
}

int
pyri_engine_folds(pyri_engine *e, pyri_reader *r, uint64_t family,
                  uint64_t *out)
{
    *out = 0;
    return e->ops->folds ? e->ops->folds(e, r, family, out) : 0;
}

int
pyri_engine_status(pyri_engine *e, pyr_status *out, pyr_data_dir_fn *each,
                   void *ctx)
{
    return e->ops->status(e, out, each, ctx);
}
