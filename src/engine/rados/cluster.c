/*
 * engine/rados/cluster.c - a store of a cluster, as this process has it open.
 *
 *   rados://POOL[/NAMESPACE][?conf=FILE&user=NAME]
 *
 * Handles of the same URL share one connection, one session and one list of
 * readers. A child made by fork() has copies of all that and no threads behind
 * them: it may not use them, and opens the store anew.
 */
#include "engine/rados/rados.h"

#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FORMAT = 1, DEFAULT_LEASE_MS = 10000, MAX_VALUE = 1024 };

static const char MAGIC[] = "pyramid";

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pyri_cluster *all; /* guarded by all_lock, as their handles are */

/* --- small things -------------------------------------------------------- */

int64_t
pyri_rados_now(void)
{
    struct timespec t;
    pyri_sys_clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
wait_until(pyri_cluster *s, pthread_cond_t *cond, int ms)
{
    int64_t end = pyri_rados_now() + (int64_t)ms * 1000000;
    struct timespec t = {end / 1000000000, end % 1000000000};
    pthread_cond_timedwait(cond, &s->lock, &t);
}

void
pyri_cluster_wait(pyri_cluster *s, int ms)
{
    wait_until(s, &s->changed, ms);
}

void
pyri_cluster_sleep(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    pyri_sys_nanosleep(&t, NULL);
}

int
pyri_rados_random(void *to, size_t size)
{
    int errnum = pyri_io_random(to, size);
    return errnum ? pyri_fail_errno(errnum, "random numbers") : 0;
}

int
pyri_cluster_check(const pyri_cluster *s)
{
    if (s->pid == getpid())
        return 0;
    return pyri_fail(PYR_EINVAL, "the store was opened by another process; a "
                                 "child has to open it anew");
}

/* --- URLs ---------------------------------------------------------------- */

typedef struct address {
    char conf[MAX_VALUE];
    pyri_cluster *s; /* has the names */
} address;

static int
hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copy a part of a URL; %XX is a byte. */
static int
copy_part(const char *url, const char *from, size_t n, char *to, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        int byte = (unsigned char)from[i];
        if (byte == '%') {
            int high = i + 2 < n ? hex(from[i + 1]) : -1;
            int low = high < 0 ? -1 : hex(from[i + 2]);
            byte = low < 0 ? 0 : high << 4 | low;
            i += 2;
        }
        if (byte == 0)
            return pyri_fail(PYR_EINVAL, "rados:%s: bad escape; %%XX is a byte "
                                         "in hexadecimal, not zero", url);
        if (used + 1 >= room)
            return pyri_fail(PYR_EINVAL, "rados:%s: a part of it is too long",
                             url);
        to[used++] = (char)byte;
    }
    to[used] = 0;
    return 0;
}

static int
parse_option(const char *url, const char *at, size_t n, address *a)
{
    if (n > 5 && strncmp(at, "conf=", 5) == 0)
        return copy_part(url, at + 5, n - 5, a->conf, sizeof a->conf);
    if (n > 5 && strncmp(at, "user=", 5) == 0)
        return copy_part(url, at + 5, n - 5, a->s->user, sizeof a->s->user);
    return pyri_fail(PYR_EINVAL, "rados:%s: unknown option \"%.*s\"; known are "
                                 "conf=FILE and user=NAME", url, (int)n, at);
}

static int
parse(const char *url, address *a)
{
    const char *at = url;
    int err = 0;
    if (strncmp(at, "//", 2) != 0)
        return pyri_fail(PYR_EINVAL, "rados:%s: a store on a cluster is "
                                     "rados://POOL[/NAMESPACE]", url);
    at += 2;
    size_t n = strcspn(at, "/?");
    if (n == 0)
        return pyri_fail(PYR_EINVAL, "rados:%s: there is no pool in it", url);
    if ((err = copy_part(url, at, n, a->s->pool, sizeof a->s->pool)) < 0)
        return err;
    at += n;
    if (*at == '/') {
        n = strcspn(++at, "?");
        if ((err = copy_part(url, at, n, a->s->space, sizeof a->s->space)) < 0)
            return err;
        at += n;
    }
    while (*at && err == 0) {
        n = strcspn(++at, "&");
        err = parse_option(url, at, n, a);
        at += n;
    }
    return err;
}

/* --- connecting ---------------------------------------------------------- */

static int
configure(pyri_cluster *s, const address *a)
{
    char name[PYRI_RADOS_NAME + 8];
    snprintf(name, sizeof name, "client.%s", s->user);
    int err = rados_create2(&s->cluster, "ceph", name, 0);
    if (err < 0) {
        s->cluster = NULL;
        return pyri_rados_fail(s, err, "librados");
    }
    err = rados_conf_read_file(s->cluster, a->conf[0] ? a->conf : NULL);
    if (err < 0)
        return pyri_fail(PYR_EINVAL, "cannot read Ceph's configuration %s: %s",
                         a->conf[0] ? a->conf : "(in its usual places)",
                         strerror(-err));
    rados_conf_parse_env(s->cluster, NULL);
    return 0;
}

static int
connect_to(pyri_cluster *s, const address *a)
{
    int err = configure(s, a);
    if (err < 0)
        return err;
    if ((err = rados_connect(s->cluster)) < 0)
        return pyri_fail(err == -EACCES || err == -EPERM ? PYR_EREADONLY
                                                         : PYR_EIO,
                         "cannot connect to the cluster as client.%s: %s",
                         s->user, strerror(-err));
    if ((err = rados_ioctx_create(s->cluster, s->pool, &s->io)) < 0) {
        s->io = NULL;
        return pyri_fail(err == -ENOENT ? PYR_ENOTFOUND : PYR_EIO,
                         "pool %s: %s", s->pool,
                         err == -ENOENT ? "the cluster has none of that name"
                                        : strerror(-err));
    }
    rados_ioctx_set_namespace(s->io, s->space);
    return 0;
}

typedef struct connecting {
    pyri_cluster *s;
    const address *a;
    int err;
    char text[1024];
} connecting;

static void *
connect_in_thread(void *arg)
{
    connecting *c = arg;
    c->err = connect_to(c->s, c->a);
    if (c->err < 0)
        snprintf(c->text, sizeof c->text, "%s", pyr_errmsg());
    return NULL;
}

/*
 * librados draws the number by which OSDs tell clients apart from a generator
 * of the calling thread. Children of a process that has connected once would
 * all draw the same one, and be taken for each other. A new thread has a new
 * generator.
 */
static int
connect_afresh(pyri_cluster *s, const address *a)
{
    pthread_t thread;
    connecting c = {.s = s, .a = a};
    int errnum = pthread_create(&thread, NULL, connect_in_thread, &c);
    if (errnum)
        return pyri_fail_errno(errnum, "a thread");
    pthread_join(thread, NULL);
    return c.err < 0 ? pyri_fail(c.err, "%s", c.text) : 0;
}

/* --- the marker ---------------------------------------------------------- */

/* "pyramid", format (1), durability (1), lease (4). */
static int
read_marker(pyri_cluster *s, pyri_cursor *c)
{
    pyri_bytes marker = pyri_cursor_str(c);
    pyri_cursor m = pyri_cursor_of(marker.data, marker.size);
    const uint8_t *magic = pyri_cursor_take(&m, strlen(MAGIC));
    uint8_t format = pyri_cursor_u8(&m);
    if (!magic || memcmp(magic, MAGIC, strlen(MAGIC)) != 0)
        return pyri_fail(PYR_EFORMAT, "pool %s, namespace \"%s\": what is "
                         "there is no store", s->pool, s->space);
    if (format != FORMAT)
        return pyri_fail(PYR_EFORMAT, "the store is of format %u; this build "
                         "knows %d", format, FORMAT);
    s->durability = pyri_cursor_u8(&m) ? PYR_DURABILITY_OS
                                       : PYR_DURABILITY_COMMIT;
    s->lease_ms = pyri_cursor_u32(&m);
    return m.failed || s->lease_ms == 0
               ? pyri_fail(PYR_EFORMAT, "the marker of the store is damaged")
               : 0;
}

static int
greet(pyri_cluster *s, bool *found)
{
    pyri_call c;
    pyri_call_begin(&c, "hello", false, PYRI_RADOS_CATALOG);
    int err = pyri_call_run(s, &c);
    *found = false;
    if (err == -ENOENT) {
        err = 0;
    } else if (err < 0) {
        err = pyri_rados_fail(s, err, "pool %s, namespace \"%s\"", s->pool,
                              s->space);
    } else {
        uint32_t version = pyri_cursor_u32(&c.answer);
        pyri_cursor rest = c.answer;
        *found = pyri_cursor_varint(&rest) > 0;
        if (version != PYRI_CLS_VERSION)
            err = pyri_fail(PYR_EUNSUPPORTED,
                            "the cluster's object class \"pyramid\" is of "
                            "version %u, this build needs %d: install its "
                            "libcls_pyramid.so on every OSD, and restart them",
                            version, PYRI_CLS_VERSION);
        else if (*found)
            err = read_marker(s, &c.answer);
    }
    pyri_call_fini(&c);
    return err;
}

static int
make(pyri_cluster *s, const pyr_store_options *options)
{
    pyri_call c;
    uint32_t lease = options && options->lease_ms ? options->lease_ms
                                                  : DEFAULT_LEASE_MS;
    if (options && options->data)
        return pyri_fail(PYR_EINVAL, "a store on a cluster has no data "
                                     "directories");
    pyri_call_begin(&c, "make", true, PYRI_RADOS_CATALOG);
    pyri_buf_varint(&c.in, strlen(MAGIC) + 6);
    pyri_buf_add(&c.in, MAGIC, strlen(MAGIC));
    pyri_buf_u8(&c.in, FORMAT);
    pyri_buf_u8(&c.in, options && options->durability == PYR_DURABILITY_OS);
    pyri_buf_u32(&c.in, lease);
    int err = pyri_call_run(s, &c);
    pyri_call_fini(&c);
    if (err < 0 && err != PYRI_CLS_THERE) /* another one was faster */
        return pyri_rados_fail(s, err, "pool %s: making a store", s->pool);
    return 0;
}

static int
find_store(pyri_cluster *s, unsigned flags, const pyr_store_options *options)
{
    bool found;
    int err = greet(s, &found);
    if (err < 0 || found)
        return err;
    if (!(flags & PYR_OPEN_CREATE))
        return pyri_fail(PYR_ENOTFOUND, "pool %s, namespace \"%s\": there is "
                         "no store", s->pool, s->space);
    if ((err = make(s, options)) < 0 || (err = greet(s, &found)) < 0)
        return err;
    return found ? 0 : pyri_fail(PYR_EIO, "the store that was made has gone");
}

/* --- sites --------------------------------------------------------------- */

static void
free_site(pyri_cluster *s)
{
    if (s->io)
        rados_ioctx_destroy(s->io);
    if (s->cluster)
        rados_shutdown(s->cluster);
    for (size_t i = 0; i < s->nerased; i++)
        free(s->erased[i].record);
    for (int i = 0; i < 256; i++)
        while (s->held[i]) {
            pyri_rheld *h = s->held[i];
            s->held[i] = h->next;
            free(h);
        }
    pyri_rblobs_forget_all(s);
    pyri_rcache_clear(s);
    free(s->cached);
    pthread_mutex_destroy(&s->cache_lock);
    free(s->erased);
    free(s->limbo);
    free(s->dying);
    pthread_cond_destroy(&s->changed);
    pthread_cond_destroy(&s->ring);
    pthread_mutex_destroy(&s->lock);
    free(s->url);
    free(s);
}

static pyri_cluster *
new_site(const char *url)
{
    pthread_condattr_t monotonic;
    pyri_cluster *s = pyri_sys_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->url = pyri_sys_strdup(url);
    s->cached = pyri_sys_calloc(PYRI_RADOS_CACHED, sizeof *s->cached);
    if (!s->url || !s->cached) {
        free(s->url);
        free(s->cached);
        free(s);
        return NULL;
    }
    s->pid = getpid();
    strcpy(s->user, "admin");
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->cache_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_cond_init(&s->ring, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return s;
}

static int
open_site(const char *url, unsigned flags, const pyr_store_options *options,
          pyri_cluster **out)
{
    address a = {.s = new_site(url)};
    if (!a.s)
        return pyri_fail_nomem("a store");
    int err = parse(url, &a);
    if (err == 0)
        err = pyri_rados_lib_load(); /* all_lock is held */
    if (err == 0)
        err = connect_afresh(a.s, &a);
    if (err == 0)
        err = find_store(a.s, flags, options);
    if (err < 0) {
        free_site(a.s);
        return err;
    }
    a.s->next = all;
    all = a.s;
    *out = a.s;
    return 0;
}

static pyri_cluster *
find_site(const char *url)
{
    pyri_cluster *s = all;
    while (s && (s->pid != getpid() || strcmp(s->url, url) != 0))
        s = s->next; /* those of a parent stay, unused */
    return s;
}

int
pyri_cluster_open(const char *rest, unsigned flags,
               const pyr_store_options *options, pyri_cluster **out)
{
    int err = 0;
    pthread_mutex_lock(&all_lock);
    *out = find_site(rest);
    if (!*out)
        err = open_site(rest, flags, options, out);
    if (err == 0)
        (*out)->handles++;
    pthread_mutex_unlock(&all_lock);
    return err;
}

/* --- the keeper ---------------------------------------------------------- */

enum { TICK_MS = 500 };

static void *
keep(void *arg)
{
    pyri_cluster *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        wait_until(s, &s->ring, TICK_MS);
        if (s->stop)
            break;
        pthread_mutex_unlock(&s->lock);
        pyri_upkeep_renew(s);
        pyri_session_renew(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int
pyri_cluster_keep(pyri_cluster *s)
{
    pthread_mutex_lock(&s->lock);
    int errnum = s->kept ? 0 : pthread_create(&s->keeper, NULL, keep, s);
    s->kept |= errnum == 0;
    pthread_mutex_unlock(&s->lock);
    return errnum ? pyri_fail_errno(errnum, "a thread") : 0;
}

void
pyri_cluster_close(pyri_cluster *s)
{
    pthread_mutex_lock(&all_lock);
    if (s->pid != getpid()) { /* the parent's: nothing to end here */
        pthread_mutex_unlock(&all_lock);
        return;
    }
    bool last = --s->handles == 0;
    pyri_cluster **link = &all;
    while (last && *link != s)
        link = &(*link)->next;
    if (last)
        *link = s->next;
    pthread_mutex_unlock(&all_lock);
    if (!last)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->ring);
    pthread_mutex_unlock(&s->lock);
    if (s->kept)
        pthread_join(s->keeper, NULL);
    free_site(s);
}
