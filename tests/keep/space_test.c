/*
 * keep/space_test.c - what is left on the disk, beside a fresh store into
 * which the same snapshots were written.
 *
 * A snapshot may keep fragments of which other fragments hide a part; a copy
 * of it is written in one go and has none. So what is compared is the disk that
 * is used for each byte of nodes and fragments that are needed (ledger.h sees
 * to it that no others are there): orphans of dead writers, free pages and
 * room that was set aside would show. Small fragments live in LMDB, whose
 * pages may be left a quarter full where entries between others go; a fresh
 * one has them two thirds full.
 */
#include "keep/crowd.h"
#include "keep/ledger.h"

#include <ftw.h>

static uint64_t blocks;

static int
add_blocks(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path, (void)type, (void)ftw;
    blocks += (uint64_t)st->st_blocks * 512;
    return 0;
}

static uint64_t
disk_use(const char *path)
{
    blocks = 0;
    REQUIRE(nftw(path, add_blocks, 16, FTW_PHYS) == 0);
    return blocks;
}

/* --- a fresh store ------------------------------------------------------- */

typedef struct boxes {
    pyr_array *from, *to;
    const work *k;
    pyr_version v;
    pyr_part *parts;
    uint64_t (*at)[2][PYR_MAX_DIMS];
    size_t n, room;
} boxes;

static int
add_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    boxes *b = ctx;
    size_t cells = model_type_size(b->k->type);
    if (b->n == b->room) {
        b->room = b->room ? 2 * b->room : 64;
        b->parts = realloc(b->parts, b->room * sizeof *b->parts);
        b->at = realloc(b->at, b->room * sizeof *b->at);
    }
    for (int d = 0; d < ndim; d++) {
        b->at[b->n][0][d] = offset[d];
        b->at[b->n][1][d] = size[d];
        cells *= (size_t)size[d];
    }
    b->parts[b->n++].buf = malloc(cells);
    return 0;
}

/* The cells by which a version differs from the one kept before it, as one
 * version. */
static void
copy_version(boxes *b, pyr_version before, pyr_version v)
{
    b->n = 0;
    OK(pyr_diff(b->from, before, v, add_box, b));
    for (size_t i = 0; i < b->n; i++) {
        b->parts[i] = (pyr_part){.offset = b->at[i][0], .size = b->at[i][1],
                                 .buf = b->parts[i].buf};
        OK(pyr_read(b->from, v, b->at[i][0], b->at[i][1], b->parts[i].buf));
    }
    if (b->n)
        OK(pyr_write_list(b->to, b->parts, b->n, NULL, NULL));
    for (size_t i = 0; i < b->n; i++)
        free(b->parts[i].buf);
}

static uint64_t
use_of_a_copy(place *p, uint64_t *held)
{
    pyr_store *store;
    boxes b = {.from = p->array, .k = &p->k};
    pyr_version latest, before = 0;
    const char *path = tmp_fresh("copy");
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    OK(work_create(&p->k, store, &b.to));
    OK(pyr_latest(p->array, &latest));
    for (pyr_version v = 1; v <= latest; v++) {
        pyr_info info;
        if (pyr_array_info(p->array, v, &info) == 0) {
            copy_version(&b, before, v);
            before = v;
        }
    }
    free(b.parts);
    free(b.at);
    *held = ledger_check(store);
    pyr_array_close(b.to);
    pyr_close(store);
    uint64_t bytes = disk_use(path);
    tmp_remove(path);
    return bytes;
}

/* --- a store with a past ------------------------------------------------- */

/* Writers that are killed at a point or in the middle, one after the other,
 * forgetting and reclaiming between them. */
static void
live_through(place *p, rng *r)
{
    static const char *const own[] = {"erase.commit", "erase.done",
                                      "settle.punched"};
    for (uint64_t i = 0; i < by_scale(10, 30, 300); i++) {
        pyr_reclaimed gone;
        job a = writer_of(p, 30), b = writer_of(p, 30), c = writer_of(p, 0);
        const char *at = points[rng_below(r, NPOINTS)].name;
        c.role = "reclaim";
        b.nowait = 2;
        pid_t first = start_at(at, "kill", (int)rng_from(r, 1, 25), &a);
        pid_t second = start(NULL, &b);
        pid_t third = start_at(own[rng_below(r, 3)], "kill", 1, &c);
        CHECK(proc_wait(first, BOUND).signal == SIGKILL);
        if (rng_once_in(r, 3))
            kill(second, SIGKILL);
        CHECK(!proc_wait(second, BOUND).late);
        kill(third, SIGKILL);
        CHECK(!proc_wait(third, BOUND).late);
        OK(pyr_forget(p->array, 0, PYR_LATEST, rng_from(r, 1, 60), 0, NULL));
        if (rng_once_in(r, 2))
            OK(pyr_reclaim(p->store, NULL, &gone));
    }
}

static void
compare_use(int sample, uint64_t keep)
{
    place p;
    pyr_reclaimed gone;
    rng r = rng_of(test_seed() + (uint64_t)sample);
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, sample);
    live_through(&p, &r);
    others_can_write(&p);
    OK(pyr_forget(p.array, 0, PYR_LATEST, keep, 0, NULL));
    OK(pyr_reclaim(p.store, NULL, &gone));
    OK(pyr_reclaim(p.store, NULL, &gone)); /* pages that the first one freed */
    CHECK(gone.left == 0 && gone.waiting == 0);
    uint64_t held = ledger_check(p.store), same, use = disk_use(p.url);
    uint64_t copy = use_of_a_copy(&p, &same);
    printf("# sample %d, %d kept: %" PRIu64 " KiB on disk for %" PRIu64
           "; a copy: %" PRIu64 " for %" PRIu64 "\n", sample, (int)keep,
           use >> 10, held >> 10, copy >> 10, same >> 10);
    double ratio = (double)use / (double)held * (double)same / (double)copy;
    if (ratio > (p.k.large ? 1.1 : 1.7))
        CHECK_NOTE("%.2f times what a copy takes for the same", ratio);
    place_close(&p);
}

static void
after_kills_the_disk_holds_no_more_than_is_needed(void)
{
    for (int sample = 0; sample < WORK_SAMPLES; sample++)
        compare_use(sample, 40);
    compare_use(WORK_LARGE, 1);
}

CREW_TESTS(crowd_roles,
           T(after_kills_the_disk_holds_no_more_than_is_needed))
