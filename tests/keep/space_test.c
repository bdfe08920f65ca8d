/*
 * keep/space_test.c - what is left on the disk, beside a fresh store into
 * which the kept snapshots were copied: no more than a tenth.
 *
 * What counts is what a store holds: segments and metadata. live/ and LMDB's
 * tables of readers are of the moment. SLACK is for stores that hold next to
 * nothing: some pages of LMDB that are not full, and its list of those that
 * are free. LUMPS is for large fragments: one of which less than a sixteenth is
 * hidden stays as it is, and a few megabytes are not many of them. Where many
 * versions are kept it is a whole chunk: two writers that fold the same chain
 * leave a fold each, and as long as versions show both, both stay.
 */
#include "keep/crowd.h"
#include "keep/ledger.h"

#include <ftw.h>

enum { SLACK = 32 << 10, LUMPS = 128 << 10, CHUNK = 800000 };

static uint64_t blocks;

static int
add_blocks(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_F && !strstr(path, "/live/") && !strstr(path, "lock.mdb"))
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

static uint64_t
use_of_a_copy(place *p, uint64_t *held)
{
    pyr_store *store;
    pyr_copied copied;
    const char *path = tmp_fresh("copy");
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    OK(pyr_copy(p->array, store, p->k.array, NULL, &copied));
    *held = ledger_check(store);
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
                                      "fold.put",     "fold.commit",
                                      "fold.done",    "dense.commit",
                                      "settle.punched"};
    enum { OWN = sizeof own / sizeof own[0] };
    for (uint64_t i = 0; i < by_scale(10, 30, 300); i++) {
        pyr_reclaimed gone;
        job a = writer_of(p, 30), b = writer_of(p, 30), c = writer_of(p, 0);
        const char *at = points[rng_below(r, NPOINTS)].name;
        c.role = "reclaim";
        b.nowait = 2;
        pid_t first = start_at(at, "kill", (int)rng_from(r, 1, 25), &a);
        pid_t second = start(NULL, &b);
        pid_t third = start_at(own[rng_below(r, OWN)], "kill", 1, &c);
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
    uint64_t slack = sample != WORK_LARGE ? SLACK : keep > 1 ? CHUNK : LUMPS;
    if (use > copy + copy / 10 + slack)
        CHECK_NOTE("%.2f times what a copy takes",
                   (double)use / (double)copy);
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
