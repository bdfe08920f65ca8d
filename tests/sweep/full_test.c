/*
 * sweep/full_test.c - a file system that is really full.
 *
 * A small tmpfs is mounted where only this process sees it, and filled up with
 * one large file but for a little that is different each time. Then a story
 * goes on until something does not fit. That call fails with PYR_ENOSPC, and
 * what is stored equals the model; when there is room again the story goes on,
 * with the same handles.
 *
 * Whoever may not mount (or sets PYR_TEST_NO_MOUNT) gets a limit on the size of
 * files instead.
 */
#include "support/check.h"
#include "support/proc.h"
#include "support/story.h"
#include "support/tmp_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { SIZE_MIB = 8, STEPS = 6, MORE = 400, EXIT_BAD = 9, SECONDS = 600 };

static bool mounted; /* else the limit is used */

static const char *
full_dir(void)
{
    return tmp_path("full");
}

/* A name space of our own, so that nothing is left behind. Who is not root
 * becomes it, in there. */
static bool
leave_for_own_space(void)
{
    char users[64], groups[64];
    if (unshare(CLONE_NEWNS) == 0)
        return true;
    snprintf(users, sizeof users, "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           tmp_write_file("/proc/self/setgroups", "deny") &&
           tmp_write_file("/proc/self/uid_map", users) &&
           tmp_write_file("/proc/self/gid_map", groups);
}

static void
mount_once(void)
{
    char options[64];
    static bool tried;
    if (tried)
        return;
    tried = true;
    snprintf(options, sizeof options, "size=%dm", SIZE_MIB);
    REQUIRE(mkdir(full_dir(), 0777) == 0);
    mounted = !getenv("PYR_TEST_NO_MOUNT") && leave_for_own_space() &&
              mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
              mount("none", full_dir(), "tmpfs", 0, options) == 0;
    if (!mounted)
        printf("# may not mount: a limit on the size of files instead\n");
}

static bool
set_limit(rlim_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        return false;
    limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

/* Leaves so many KiB, or lets files grow by so many. */
static bool
fill_up(unsigned left_kib)
{
    struct statvfs v;
    if (!mounted) /* LMDB's lock file fits */
        return set_limit(((rlim_t)512 + left_kib) * 1024);
    int fd = open(tmp_path("full/ballast"), O_WRONLY | O_CREAT | O_CLOEXEC,
                  0666);
    if (fd < 0 || fstatvfs(fd, &v) != 0)
        return false;
    long long size = (long long)(v.f_bavail * v.f_frsize) -
                     (long long)left_kib * 1024;
    bool ok = size <= 0 || posix_fallocate(fd, 0, size) == 0;
    close(fd);
    return ok;
}

static bool
make_room(void)
{
    return mounted ? unlink(tmp_path("full/ballast")) == 0
                   : set_limit(RLIM_INFINITY);
}

/* Steps until one fails, at most `most`; its code. */
static int
go_on(world *w, int most)
{
    int err = 0;
    for (int i = 0; err == 0 && i < most; i++)
        err = story_run(w, story_next(w));
    return err;
}

static int
give_up(unsigned left, const char *when, const char *why)
{
    printf("# %u KiB left: %s: %s\n", left, when, why);
    return EXIT_BAD;
}

/* A version that changes nothing may be left, as in sweep_test.c. */
static void
allow_gaps(world *w)
{
    for (int i = 0; i < w->nthings; i++) {
        thing *t = &w->things[i];
        pyr_info info;
        if (!t->array)
            continue;
        pyr_wait(t->array, t->m.n, -1);
        if (pyr_array_info(t->array, PYR_LATEST, &info) == 0 &&
            info.version == t->m.n)
            model_nothing(&t->m, info.shape);
    }
}

static bool
is_as_modelled(const world *w, char *why, size_t room)
{
    world look = *w;
    look.store = NULL;
    for (int i = 0; i < look.nthings; i++)
        look.things[i].array = NULL;
    bool ok = story_check(&look, why, room);
    story_close(&look);
    return ok;
}

static int
fill_and_go_on(void *arg)
{
    unsigned left = *(unsigned *)arg;
    char why[512];
    world w = {.seed = 1000 + left,
               .path = tmp_path("full/store"),
               .live = true,
               .lease_ms = 50};
    alarm(SECONDS);
    signal(SIGXFSZ, SIG_IGN);
    if (go_on(&w, STEPS) != 0 || story_warm(&w) != 0)
        return give_up(left, "before", pyr_errmsg());
    if (!fill_up(left))
        return give_up(left, "fill it up", strerror(errno));
    int err = go_on(&w, MORE);
    snprintf(why, sizeof why, "%s", pyr_errmsg());
    if (err != PYR_ENOSPC && (mounted || err != PYR_EIO))
        return give_up(left, "full", err ? why : "it never was");
    if (!make_room())
        return give_up(left, "make room", strerror(errno));
    allow_gaps(&w);
    if (!is_as_modelled(&w, why, sizeof why))
        return give_up(left, "after it", why);
    if (go_on(&w, 5) != 0)
        return give_up(left, "with room again", pyr_errmsg());
    if (!is_as_modelled(&w, why, sizeof why))
        return give_up(left, "and after that", why);
    story_fini(&w);
    return 0;
}

static void
a_full_disk_loses_nothing_and_can_be_gone_on_with(void)
{
    mount_once();
    for (unsigned left = 0; left <= 400;
         left += (unsigned)by_scale(52, 12, 4)) {
        CHECK(proc_ends_well(proc_fork(fill_and_go_on, &left), SECONDS * 1000));
        tmp_remove(tmp_path("full/store"));
        unlink(tmp_path("full/ballast"));
    }
}

/* Opening and making where there is next to nothing: it works or it fails. */
static int
open_when_full(void *arg)
{
    unsigned left = *(unsigned *)arg;
    char why[512];
    world w = {.seed = 1, .path = tmp_path("full/store"), .live = true};
    alarm(SECONDS);
    signal(SIGXFSZ, SIG_IGN);
    if (!fill_up(left))
        return give_up(left, "fill it up", strerror(errno));
    int err = go_on(&w, 1);
    snprintf(why, sizeof why, "%s", pyr_errmsg());
    if (err != 0 && err != PYR_ENOSPC && (mounted || err != PYR_EIO))
        return give_up(left, "made when full", why);
    if (!make_room())
        return give_up(left, "make room", strerror(errno));
    if (go_on(&w, 5) != 0)
        return give_up(left, "with room again", pyr_errmsg());
    if (!is_as_modelled(&w, why, sizeof why))
        return give_up(left, "after it", why);
    story_fini(&w);
    return 0;
}

static void
a_store_made_on_a_full_disk_is_made_later(void)
{
    mount_once();
    for (unsigned left = 0; left <= 160; left += (unsigned)by_scale(16, 4, 4)) {
        CHECK(proc_ends_well(proc_fork(open_when_full, &left), SECONDS * 1000));
        tmp_remove(tmp_path("full/store"));
        unlink(tmp_path("full/ballast"));
    }
}

TESTS(T(a_full_disk_loses_nothing_and_can_be_gone_on_with),
      T(a_store_made_on_a_full_disk_is_made_later))
