/*
 * concurrency/sums_test.c - what chunks sum up to where versions were made while
 * others were in flight below them. None of them could know it; once all are
 * published it is found out without reading the chunk, and is right.
 */
#include "array/sum.h"
#include "keep/halted.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <dirent.h>

enum { SIDE = 30, CELLS = SIDE * SIDE, MOST = 6 };

typedef struct world {
    char url[4096];
    pyri_engine *engine;
    pyri_array *array;
    rng r;
    int32_t cells[CELLS]; /* as they should be */
} world;

static world w;

static void
open_world(void)
{
    OK(pyri_engine_open(w.url, PYR_OPEN_CREATE,
                        &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                             .lease_ms = 3600000},
                        &w.engine));
}

static void
close_world(void)
{
    pyri_array_close(w.array);
    pyri_engine_close(w.engine);
}

static void
set_up(void)
{
    uint64_t shape[2] = {SIDE, SIDE};
    pyri_schema s = {.ndim = 2, .type = PYR_I32, .chunk = {SIDE, SIDE}};
    w = (world){.r = rng_of(test_seed())};
    snprintf(w.url, sizeof w.url, "%s", tmp_store("sums"));
    open_world();
    OK(pyri_form_init(&s.form, 2, shape, s.chunk));
    OK(pyri_array_create(w.engine, "x", &s, "{}", NULL));
    pyri_form_fini(&s.form);
    OK(pyri_array_open(w.engine, "x", &w.array));
}

static void
tear_down(void)
{
    pyri_fault_hook = NULL;
    close_world();
    tmp_remove(w.url);
}

/* --- writers -------------------------------------------------------------- */

typedef struct writer {
    halted at_point;
    pyri_box box;
    int32_t cells[CELLS];
} writer;

static int
run_writer(void *ctx)
{
    writer *k = ctx;
    pyri_part part = {pyri_run_of_box(2, &k->box),
                      pyri_mem_dense(2, 4, &k->box, k->cells)};
    pyri_write_how how = {.nowait = true, .message = ""};
    pyr_version made;
    return pyri_write(w.array, &part, 1, &how, &made);
}

/* A box of its own, `edge` cells away from the edges of the chunk; numbers below
 * `top`. What is made later lies above. */
static void
draw(writer *k, uint64_t edge, uint64_t top)
{
    for (int d = 0; d < 2; d++) {
        k->box.lo[d] = rng_from(&w.r, edge, SIDE - edge - 1);
        k->box.hi[d] = rng_from(&w.r, k->box.lo[d] + 1, SIDE - edge);
    }
    uint64_t wide = k->box.hi[1] - k->box.lo[1];
    for (uint64_t i = 0; i < pyri_box_cells(2, &k->box); i++) {
        k->cells[i] = (int32_t)rng_below(&w.r, top);
        w.cells[(k->box.lo[0] + i / wide) * SIDE + k->box.lo[1] + i % wide] =
            k->cells[i];
    }
}

static void
write_quietly(uint64_t edge, uint64_t top)
{
    static writer k;
    draw(&k, edge, top);
    OK(run_writer(&k));
}

static void
write_cell(uint64_t at, int32_t cell)
{
    writer k = {.box = {{at, at}, {at + 1, at + 1}}, .cells = {cell}};
    w.cells[at * SIDE + at] = cell;
    OK(run_writer(&k));
}

/* n versions, each made while all before it are in flight; they end in any
 * order. */
static void
write_beside(int n, uint64_t edge, uint64_t top)
{
    static writer k[MOST];
    for (int i = 0; i < n; i++) {
        draw(&k[i], edge, top);
        halt_begin(&k[i].at_point, "write.taken", run_writer, &k[i]);
    }
    for (int left = n; left; left--) {
        int i = (int)rng_below(&w.r, (uint64_t)left);
        for (int j = 0; j < n; j++) /* the i-th of those that still stand */
            if (k[j].at_point.run && i-- == 0) {
                halt_end(&k[j].at_point);
                k[j].at_point.run = NULL;
                break;
            }
    }
}

/* --- what is known -------------------------------------------------------- */

static pyri_summary
plain(void)
{
    pyri_summary s;
    pyri_summary_init(&s);
    pyri_summary_add(&s, PYR_I32, 0, w.cells, CELLS);
    return s;
}

static bool
same(const pyri_summary *a, const pyri_summary *b)
{
    return a->count == b->count && a->not_fill == b->not_fill &&
           a->min == b->min && a->max == b->max &&
           a->squares == b->squares && /* these are whole numbers, too */
           a->sum_int == b->sum_int;
}

typedef struct looking {
    pyri_snapshot *snap;
    bool known, lies; /* on another leaf */
    pyri_summary summary;
} looking;

static int
look(void *ctx, const pyri_hit *hit)
{
    looking *l = ctx;
    pyri_frag one = {.box = {{0, 0}, {1, 1}}};
    pyri_painted p = {.frags = &one, .n = 1};
    pyri_fetcher f = {.array = w.array, .reader = l->snap->tree.reader};
    pyri_change c = {
        .f = &f, .t = &l->snap->tree, .p = &p, .leaf = &hit->node};
    pyri_leaf_walk walk;
    pyri_about about;
    CHECK(hit->leaf && pyri_change_begin(&c));
    int err = pyri_leaf_begin(&hit->node, 2, &c.chunk, &walk);
    if (err == 0)
        err = pyri_change_about(&c, &about);
    l->lies = walk.prev;
    l->known = err == 0 && about.known;
    l->summary = about.summary;
    CHECK(c.old.n == 0); /* of the chunk itself nothing was asked for */
    pyri_chain_fini(&c.old);
    pyri_fetcher_fini(&f);
    return err;
}

static looking
look_at_newest(void)
{
    pyri_snapshot snap;
    looking l = {.snap = &snap};
    pyri_box all = {{0, 0}, {SIDE, SIDE}};
    pyri_run run = pyri_run_of_box(2, &all);
    OK(pyri_snapshot_open(w.array, PYR_LATEST, &snap));
    OK(pyri_tree_find(&snap.tree, &run, look, &l));
    pyri_snapshot_close(&snap);
    return l;
}

static void
stat_is_right(void)
{
    pyri_box all = {{0, 0}, {SIDE, SIDE}};
    pyri_summary s = plain();
    pyr_stats got;
    OK(pyri_stat(w.array, PYR_LATEST, &all, 0, &got));
    CHECK(got.chunks_read == 0);
    CHECK(got.min == (double)(int32_t)s.min && got.max == (double)(int32_t)s.max);
    CHECK(got.sum == (double)(int64_t)s.sum_int);
}

/* --- tests ---------------------------------------------------------------- */

static void
it_is_known_without_reading_the_chunk(void)
{
    int lay = 0;
    set_up();
    for (int i = 0; i < 40; i++) {
        write_cell(0, 0); /* the least and the greatest stay in sight */
        write_cell(SIDE - 1, 2000);
        write_beside(2 + i % 4, 1, 1000);
        looking l = look_at_newest();
        pyri_summary s = plain();
        lay += l.lies;
        CHECK(l.known && same(&l.summary, &s));
        write_quietly(1, 1000);
        CHECK(!look_at_newest().lies);
        stat_is_right();
    }
    CHECK(lay > 8); /* or none of this was tried */
    tear_down();
}

/* Ends are hidden, boxes hide each other, and too many lie on each other. */
static void
what_is_said_is_right_whatever_they_hide(void)
{
    int known = 0;
    set_up();
    for (int i = 0; i < (int)by_scale(60, 200, 2000); i++) {
        write_beside(1 + i % MOST, 0, i % 7 == 0 ? 1000000 : 100);
        looking l = look_at_newest();
        pyri_summary s = plain();
        known += l.known && l.lies;
        CHECK(!l.known || same(&l.summary, &s));
        if (i % 3 == 0) {
            write_quietly(0, 1000);
            stat_is_right();
        }
    }
    CHECK(known > 0);
    tear_down();
}

/* Change a byte of the stored cells, found by those that follow it. */
static void
damage(const int32_t *cells)
{
    static uint8_t bytes[1 << 20];
    char path[8192];
    int found = 0;
    snprintf(path, sizeof path, "%s/data", w.url);
    DIR *dir = opendir(path);
    REQUIRE(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        if (!strstr(d->d_name, ".seg"))
            continue;
        snprintf(path, sizeof path, "%s/data/%s", w.url, d->d_name);
        FILE *f = fopen(path, "r+");
        REQUIRE(f);
        size_t n = fread(bytes, 1, sizeof bytes, f);
        uint8_t *at = memmem(bytes, n, cells, 64);
        if (at) {
            fseek(f, at - bytes, SEEK_SET);
            fputc(*at ^ 1, f);
            found++;
        }
        fclose(f);
    }
    closedir(dir);
    CHECK(found == 1);
}

static void
draw_in(writer *k, uint64_t lo, uint64_t hi)
{
    k->box = (pyri_box){{lo, lo}, {hi, hi}};
    for (uint64_t i = 0; i < (hi - lo) * (hi - lo); i++)
        k->cells[i] = (int32_t)rng_below(&w.r, 1000000);
}

/* What a version in flight had is hidden by the one that was made above it, and
 * damaged: nobody reads it, and it is in the way of no write. */
static void
damage_that_nobody_sees_fails_no_write(void)
{
    static writer all, low, high, one;
    set_up();
    draw_in(&all, 0, SIDE);
    draw_in(&low, 5, 26);
    draw_in(&high, 4, 27);
    draw_in(&one, 1, 2);
    OK(run_writer(&all));
    halt_begin(&low.at_point, "write.taken", run_writer, &low);
    OK(run_writer(&high));
    halt_end(&low.at_point);
    CHECK(look_at_newest().lies);
    close_world(); /* it knows what it wrote itself */
    damage(low.cells);
    open_world();
    OK(pyri_array_open(w.engine, "x", &w.array));
    CHECK(!look_at_newest().known);
    OK(run_writer(&one));
    CHECK(look_at_newest().known);
    tear_down();
}

TESTS(T(it_is_known_without_reading_the_chunk),
      T(what_is_said_is_right_whatever_they_hide),
      T(damage_that_nobody_sees_fails_no_write))
