/*
 * ceph/leftovers_test.c - what a client leaves that is killed when its blobs
 * are listed and its version is not complete: nobody takes it for data, and
 * reclaim gives its space back once the client's session is over.
 *
 * A session takes a minute to expire. The test does not wait: it looks into the
 * objects of the store by itself (engine/rados/README.md, cls/), and sets its
 * time back. Without a cluster, what others see is looked at alone.
 */
#include "ceph/scene.h"

#include <rados/librados.h>

typedef struct peek {
    rados_t cluster;
    rados_ioctx_t io;
} peek;

/* rados://POOL/NAMESPACE?conf=FILE&user=NAME */
static bool
peek_open(peek *k, const char *url)
{
    char pool[64], space[128], conf[4096], user[64];
    if (!cluster_dir())
        return false;
    REQUIRE(sscanf(url, "rados://%63[^/]/%127[^?]?conf=%4095[^&]&user=%63s",
                   pool, space, conf, user) == 4);
    REQUIRE(rados_create(&k->cluster, user) == 0);
    REQUIRE(rados_conf_read_file(k->cluster, conf) == 0);
    REQUIRE(rados_connect(k->cluster) == 0);
    REQUIRE(rados_ioctx_create(k->cluster, pool, &k->io) == 0);
    rados_ioctx_set_namespace(k->io, space);
    return true;
}

static void
peek_close(peek *k)
{
    rados_ioctx_destroy(k->io);
    rados_shutdown(k->cluster);
}

/* Values of an object's map whose keys begin with a letter; `last` may be NULL,
 * or gets the key and the value of the last one. */
typedef struct pair {
    char key[64], value[256];
    size_t key_size, value_size;
} pair;

static unsigned
count_keys(peek *k, const char *oid, const char *letter, pair *last)
{
    rados_omap_iter_t it;
    unsigned char more;
    unsigned n = 0;
    int err = 0;
    char *key, *value;
    size_t key_size, value_size;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_omap_get_vals2(op, "", letter, 1000, &it, &more, &err);
    REQUIRE(rados_read_op_operate(op, k->io, oid, 0) == 0 && err == 0 && !more);
    while (rados_omap_get_next2(it, &key, &value, &key_size, &value_size) == 0 &&
           key) {
        n++;
        REQUIRE(key_size <= sizeof last->key &&
                value_size <= sizeof last->value);
        if (!last)
            continue;
        *last = (pair){.key_size = key_size, .value_size = value_size};
        memcpy(last->key, key, key_size);
        memcpy(last->value, value, value_size);
    }
    rados_omap_get_end(it);
    rados_release_read_op(op);
    return n;
}

/* Objects of blobs, and how many blobs are on lists. */
typedef struct stock {
    unsigned objects, listed;
} stock;

static stock
take_stock(peek *k)
{
    stock all = {0, 0};
    rados_list_ctx_t list;
    const char *oid;
    REQUIRE(rados_nobjects_list_open(k->io, &list) == 0);
    while (rados_nobjects_list_next(list, &oid, NULL, NULL) == 0) {
        all.objects += strncmp(oid, "b.", 2) == 0;
        if (strncmp(oid, "l.", 2) == 0)
            all.listed += count_keys(k, oid, "E", NULL);
    }
    rados_nobjects_list_close(list);
    return all;
}

/* The newest session has not been heard of for long. */
static void
expire_newest(peek *k)
{
    pair last = {.key_size = 0};
    REQUIRE(count_keys(k, "pyramid", "S", &last) == 2); /* ours, and that one */
    memset(last.value, 0, 8); /* its deadline */
    const char *keys[1] = {last.key}, *values[1] = {last.value};
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_set2(op, keys, values, &last.key_size, &last.value_size,
                             1);
    REQUIRE(rados_write_op_operate(op, k->io, "pyramid", NULL, 0) == 0);
    rados_release_write_op(op);
}

static pyr_reclaimed
reclaim(scene *s)
{
    pyr_reclaimed out;
    OK(pyr_reclaim(s->p.store, NULL, &out));
    return out;
}

static void
is_back(peek *k, stock was)
{
    stock now = take_stock(k);
    printf("# %u objects, %u listed; before: %u, %u\n", now.objects, now.listed,
           was.objects, was.listed);
    CHECK(now.objects == was.objects && now.listed == was.listed);
}

/* One who works on an array dies when its blobs are listed. */
typedef struct death {
    scene s;
    peek k;
    bool there;   /* there is a cluster to look into */
    bool writes;  /* or it computes */
    stock before, left;
} death;

static void
one_dies(death *d, const char *role, int sample)
{
    *d = (death){.writes = strcmp(role, "write_on") == 0};
    scene_open(&d->s, sample);
    if ((d->there = peek_open(&d->k, d->s.p.url)))
        d->before = take_stock(&d->k);
    job j = writer_of(&d->s.p, 0);
    j.role = role;
    CHECK(is_killed(start_at(d->there ? "publish.stored" : "publish.commit",
                             "kill", 1, &j)));
    if (!d->there)
        return;
    d->left = take_stock(&d->k);
    CHECK(d->left.listed > d->before.listed);
    CHECK(!d->writes || d->left.objects > d->before.objects);
}

static pyr_array *
worked_on(const death *d)
{
    return d->writes ? d->s.p.array : d->s.counter;
}

static pyr_version
newest(const death *d)
{
    pyr_version latest = 0;
    OK(pyr_latest(worked_on(d), &latest));
    return latest;
}

/* The version that it took comes to nothing. */
static void
others_take_over(death *d)
{
    OK(pyr_wait(worked_on(d), newest(d) + 1, PATIENCE_MS));
    check_health(d->s.p.store, 2);
}

static void
nothing_is_given_back_yet(death *d)
{
    reclaim(&d->s);
    CHECK(take_stock(&d->k).objects == d->left.objects);
}

static void
all_is_given_back(death *d)
{
    if (d->there) {
        uint64_t returned = reclaim(&d->s).returned;
        CHECK(!d->writes || returned > 0); /* or it is not known how much */
        is_back(&d->k, d->before);
        peek_close(&d->k);
    }
    check_health(d->s.p.store, 2);
    CHECK(holds(d->s.counter, PYR_LATEST, 0));
    pyr_array_close(d->s.counter);
    place_close(&d->s.p);
}

static void
dies_and_is_followed(const char *role, int sample)
{
    death d;
    one_dies(&d, role, sample);
    others_take_over(&d);
    if (d.there) {
        nothing_is_given_back_yet(&d); /* for all we know it lives */
        expire_newest(&d.k);
    }
    all_is_given_back(&d);
}

/* Nobody writes to the array any more, or waits: reclaim does what is to do. */
static void
dies_alone(const char *role, int sample)
{
    death d;
    one_dies(&d, role, sample);
    pyr_version before = newest(&d);
    reclaim(&d.s);
    CHECK(newest(&d) == before + 1);
    check_health(d.s.p.store, 2);
    if (d.there)
        expire_newest(&d.k);
    all_is_given_back(&d);
}

static void
blobs_of_a_writer_that_listed_them_and_died_are_given_back(void)
{
    dies_and_is_followed("write_on", WORK_LARGE);
}

static void
blobs_that_one_computed_who_died_are_given_back(void)
{
    dies_and_is_followed("compute_on", 0);
}

static void
they_are_given_back_if_nobody_writes_there_any_more(void)
{
    dies_alone("write_on", WORK_LARGE);
    dies_alone("compute_on", 0);
}

CREW_TESTS(scene_roles,
           T(blobs_of_a_writer_that_listed_them_and_died_are_given_back),
           T(blobs_that_one_computed_who_died_are_given_back),
           T(they_are_given_back_if_nobody_writes_there_any_more))
