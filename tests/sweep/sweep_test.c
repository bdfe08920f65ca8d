/*
 * sweep/sweep_test.c - the Nth system call fails, for every N of every public
 * call.
 *
 *     sweep_test [SWEEP/CALL ...]        just these: memory/write_list
 *
 * For each row of support/story_ops.c and each sweep below: a store that has
 * seen something is put in place, the Nth call among those that the sweep names
 * goes wrong, then the (N + 1)th, until one time nothing went wrong because
 * there was no Nth. Each time the call of the library either succeeds or fails
 * with a code that fits; all that is stored equals the model, which knows of
 * nothing half done; no file is left open and (with the address sanitizer) no
 * memory; and the same call again, on the same handles, succeeds.
 */
#include "base/fault.h"
#include "base/sys.h"
#include "power/disk.h"
#include "support/check.h"
#include "support/story.h"
#include "support/tmp_store.h"

#include <errno.h>
#include <ftw.h>

enum { STEPS = 14, LEASE_MS = 20, MOST_TRIALS = 5000, SECONDS = 600 };

#define FOREVER (~0ul)
#define RETRIED                                                                \
    "open openat read pread write pwrite pwritev fsync fdatasync ftruncate "   \
    "fallocate flock getrandom nanosleep"

typedef struct sweep {
    const char *name;
    pyri_sys_plan plan; /* but for nth */
    int codes[4];       /* what the call may fail with; none: it must not */
    bool reopen;        /* it may take a new opening until it works again */
} sweep;

/* LMDB ends a transaction by writing over a few bytes of a page that it has
 * had since the beginning. A full disk has room for that, and if it fails all
 * the same LMDB wants to be closed and opened again. */
static bool
is_overwrite(const pyri_sys_call *c)
{
    return c->foreign && strcmp(c->name, "pwrite") == 0 && c->size < 4096;
}

static const sweep sweeps[] = {
    {.name = "memory",
     .plan = {.groups = PYRI_SYS_MEMORY, .error = ENOMEM},
     .codes = {PYR_ENOMEM}},
    {.name = "no-more-memory",
     .plan = {.groups = PYRI_SYS_MEMORY, .error = ENOMEM, .times = FOREVER},
     .codes = {PYR_ENOMEM}},
    {.name = "anyones-memory",
     .plan = {.groups = PYRI_SYS_MEMORY, .error = ENOMEM, .foreign = true},
     .codes = {PYR_ENOMEM},
     .reopen = true},
    {.name = "io-error",
     .plan = {.groups = PYRI_SYS_FILE | PYRI_SYS_RANDOM, .error = EIO},
     .codes = {PYR_EIO},
     .reopen = true},
    {.name = "anyones-io-error",
     .plan = {.groups = PYRI_SYS_FILE, .error = EIO, .foreign = true},
     .codes = {PYR_EIO, PYR_ECORRUPT}, /* LMDB: what I cannot read is no file
                                          of mine */
     .reopen = true},
    {.name = "disk-full",
     .plan = {.groups = PYRI_SYS_FILE,
              .only = "write pwrite pwritev writev ftruncate fallocate mkdir",
              .error = ENOSPC,
              .times = FOREVER,
              .foreign = true,
              .spare = is_overwrite},
     .codes = {PYR_ENOSPC}},
    {.name = "disk-full-once",
     .plan = {.groups = PYRI_SYS_FILE,
              .only = "write pwrite pwritev writev ftruncate fallocate mkdir",
              .error = ENOSPC,
              .foreign = true,
              .spare = is_overwrite},
     .codes = {PYR_ENOSPC}},
    {.name = "interrupted",
     .plan = {.groups = PYRI_SYS_ALL, .only = RETRIED, .error = EINTR}},
    {.name = "anyone-interrupted",
     .plan = {.groups = PYRI_SYS_FILE,
              .only = RETRIED " writev",
              .error = EINTR,
              .foreign = true},
     .codes = {PYR_EIO},
     .reopen = true},
    {.name = "short",
     .plan = {.groups = PYRI_SYS_FILE, .action = PYRI_SYS_SHORT, .most = 7}},
    {.name = "always-short",
     .plan = {.groups = PYRI_SYS_FILE,
              .action = PYRI_SYS_SHORT,
              .most = 100,
              .times = FOREVER}},
    {.name = "anyones-short",
     .plan = {.groups = PYRI_SYS_FILE,
              .action = PYRI_SYS_SHORT,
              .most = 100,
              .foreign = true},
     .codes = {PYR_EIO, PYR_ENOSPC, PYR_ECORRUPT},
     .reopen = true},
};
enum { NSWEEPS = sizeof sweeps / sizeof sweeps[0] };

/* --- a store that has seen something -------------------------------------- */

static disk *before, *crowded; /* as put in place for each trial */

static const char *
store_path(void)
{
    return tmp_path("disk/store");
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

/* Two rows want a store in which much has been written over. */
static bool
is_fold(const story_op *op)
{
    return op && strncmp(op->name, "fold", 4) == 0; /* in reclaim, on demand */
}

static void
make_world(world *w, const story_op *op, bool live)
{
    unsigned steps = is_fold(op) ? story_nfolds : STEPS;
    *w = (world){.seed = is_fold(op) ? 1 : 42,
                 .path = store_path(),
                 .script = is_fold(op) ? story_folds : NULL,
                 .live = live,
                 .lease_ms = LEASE_MS};
    while (w->step < steps)
        OK(story_run(w, story_next(w)));
}

static disk *
make_disk(const story_op *op)
{
    world w;
    nftw(tmp_path("disk"), remove_one, 16, FTW_DEPTH | FTW_PHYS);
    REQUIRE(mkdir(tmp_path("disk"), 0777) == 0);
    make_world(&w, op, true);
    story_fini(&w);
    return disk_load(tmp_path("disk"));
}

/* What must be in these stores. */
static world known, known_crowded;

static void
make_stores(void)
{
    before = make_disk(NULL);
    crowded = make_disk(story_find("fold"));
    make_world(&known, NULL, false);
    make_world(&known_crowded, story_find("fold"), false);
}

static void
copy_world(world *w, const story_op *op)
{
    *w = is_fold(op) ? known_crowded : known;
    for (int i = 0; i < w->nthings; i++) {
        model m = w->things[i].m;
        model_copy(&m, &w->things[i].m);
    }
    w->path = store_path();
    w->live = true;
}

static void
put_in_place(const story_op *op)
{
    nftw(tmp_path("disk"), remove_one, 16, FTW_DEPTH | FTW_PHYS);
    REQUIRE(disk_save(is_fold(op) ? crowded : before, tmp_path("disk")));
}

/* --- one trial ------------------------------------------------------------ */

static pyri_sys_plan armed;
static unsigned long acted;

static void
arm(void)
{
    interpose_memory(armed.foreign);
    pyri_sys_order(&armed);
}

static void
disarm(void)
{
    acted += pyri_sys_acted();
    pyri_sys_order(NULL);
    interpose_memory(false);
}

static bool
fits(const sweep *s, int err)
{
    for (int i = 0; i < 4 && s->codes[i]; i++)
        if (err == s->codes[i])
            return true;
    return false;
}

/* All of the store, through other handles than those of the trial. */
static bool
is_as_modelled(const world *w, char *why, size_t room)
{
    world look = *w;
    look.store = NULL;
    look.enter = look.leave = NULL;
    for (int i = 0; i < look.nthings; i++)
        look.things[i].array = NULL;
    bool ok = story_check(&look, why, room);
    story_close(&look);
    return ok;
}

static int
is_nothing(void *ctx, const pyr_change *change)
{
    const story_op *op = ctx;
    return change->kind == PYR_KIND_NOTHING ||
                   (change->kind == PYR_KIND_RESIZE && op->flags & STORY_SHAPES)
               ? 1
               : 2;
}

/* Who fails once it was given a version leaves one that changes nothing, but
 * for the shape if that is what it was about: others may stand behind it
 * already. So the model does the same. If it could not even leave that, it is
 * waited for until its lease is over. */
static void
allow_gap(world *w, const story_op *op)
{
    for (int i = 0; i < w->nthings; i++) {
        thing *t = &w->things[i];
        uint64_t v = t->m.n;
        pyr_version latest = 0;
        pyr_info info;
        if (t->array)
            pyr_wait(t->array, v, -1);
        if (t->array && pyr_latest(t->array, &latest) == 0 && latest == v &&
            pyr_history(t->array, v, v, is_nothing, (void *)(uintptr_t)op) ==
                1 &&
            pyr_array_info(t->array, latest, &info) == 0)
            model_nothing(&t->m, op->flags & STORY_SHAPES ? info.shape : NULL);
    }
}

/* Opens store and arrays, unless that is what is to be tried. */
static void
prepare(world *w, const story_op *op)
{
    put_in_place(op);
    if (op->flags & STORY_FIRST && strcmp(op->name, "open") == 0)
        return;
    OK(pyr_open(w->path, PYR_OPEN_NO_UPKEEP, &w->store));
    w->made = true;
    OK(story_warm(w));
}

/* What is swept as "fold" folds, and fills pages; "fold_newest" folds. */
static unsigned folds, packs;

static int
count_points(const char *name)
{
    folds += strcmp(name, "fold.put") == 0;
    packs += strcmp(name, "dense.commit") == 0;
    return 0;
}

static void
count_of(const char *name)
{
    const story_op *op = story_find(name);
    world w;
    copy_world(&w, op);
    prepare(&w, op);
    folds = packs = 0;
    pyri_fault_hook = count_points;
    OK(story_run(&w, op));
    pyri_fault_hook = NULL;
    story_fini(&w);
}

static void
check_crowded(void)
{
    count_of("fold_newest");
    CHECK(folds > 0);
    count_of("fold");
    CHECK(folds > 0 && packs > 0);
}

typedef struct trial {
    const sweep *s;
    const story_op *op;
    unsigned long n;
    world w;
} trial;

static void
complain(const trial *t, const char *what, const char *why)
{
    CHECK_NOTE("%s/%s, call %lu: %s: %s", t->s->name, t->op->name, t->n, what,
               why);
}

/* After a failure that may leave handles of no use: new ones. */
static void
open_again(trial *t)
{
    story_close(&t->w);
    if (strcmp(t->op->name, "open") == 0)
        return;
    OK(pyr_open(t->w.path, PYR_OPEN_NO_UPKEEP, &t->w.store));
    OK(story_warm(&t->w));
}

/* The same once more, with nothing in the way. */
static void
again(trial *t)
{
    char why[512];
    int err = story_run(&t->w, t->op);
    if (err != 0)
        complain(t, "the second time", err < 0 ? pyr_errmsg() : "wrong");
    else if (!is_as_modelled(&t->w, why, sizeof why))
        complain(t, "after the second time", why);
}

/* False if there was no Nth call. */
static bool
try_one(trial *t)
{
    char why[512], text[512];
    prepare(&t->w, t->op);
    armed = t->s->plan;
    armed.nth = t->n;
    acted = 0;
    t->w.enter = arm;
    t->w.leave = disarm;
    int err = story_run(&t->w, t->op);
    t->w.enter = t->w.leave = NULL;
    snprintf(text, sizeof text, "%s", pyr_errmsg());
    bool more = acted > 0;
    if (err > 0)
        complain(t, "succeeded", "a wrong answer");
    if (err < 0 && (!more || !fits(t->s, err)))
        complain(t, pyr_strerror(err), text);
    if (err < 0 && t->s->reopen)
        open_again(t);
    if (err < 0 && t->op->flags & STORY_VERSION)
        allow_gap(&t->w, t->op);
    if (!is_as_modelled(&t->w, why, sizeof why))
        complain(t, err < 0 ? text : "it succeeded", why);
    if (err < 0)
        again(t);
    story_fini(&t->w);
    return more;
}

static void
run_sweep(const sweep *s, const story_op *op)
{
    trial t = {.s = s, .op = op, .n = 1};
    int files = proc_open_files();
    for (bool more = true; more && check_failures < 5; t.n++) {
        copy_world(&t.w, op);
        more = try_one(&t);
        if (proc_open_files() != files) {
            complain(&t, "after it", "files are left open");
            files = proc_open_files();
        }
        REQUIRE(t.n < MOST_TRIALS);
    }
    printf("# %lu trials\n", t.n - 1);
}

/* --- all of them ---------------------------------------------------------- */

static const sweep *sweep_now;
static const story_op *op_now;

static void
run_now(void)
{
    run_sweep(sweep_now, op_now);
}

int
main(int argc, char **argv)
{
    int bad = 0, number = 0;
    printf("1..%d\n", argc > 1 ? argc - 1 : NSWEEPS * story_nops);
    interpose_skip_syncs(true);
    check_run(&(check_case){"make stores", make_stores});
    check_run(&(check_case){"fold", check_crowded});
    if (check_failures)
        return 1;
    for (int i = 0; i < NSWEEPS * story_nops; i++) {
        char name[64];
        sweep_now = &sweeps[i / story_nops];
        op_now = &story_ops[i % story_nops];
        snprintf(name, sizeof name, "%s/%s", sweep_now->name, op_now->name);
        if (!check_wanted(name, argc, argv))
            continue;
        alarm(SECONDS); /* each of them */
        check_run(&(check_case){name, run_now});
        interpose_memory(false);
        pyri_sys_order(NULL);
        if (check_failures)
            check_print_again(argv[0], name);
        printf("%sok %d - %s\n", check_failures ? "not " : "", ++number, name);
        fflush(stdout);
        bad += check_failures != 0;
    }
    disk_free(before);
    disk_free(crowded);
    story_fini(&known);
    story_fini(&known_crowded);
    return bad != 0;
}
