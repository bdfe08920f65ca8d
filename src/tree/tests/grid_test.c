/*
 * Where nodes are: every way to find a node agrees with every other, and old
 * nodes keep their place when an array grows.
 */
#include "support/check.h"
#include "support/rng.h"
#include "tree/tree.h"

enum { MOST = 1 << 12 }; /* chunks in a grid that is visited whole */

typedef struct setting {
    pyri_form form;
    pyri_grid grid;
    uint64_t chunk[PYR_MAX_DIMS];
    uint64_t side[PYR_MAX_DIMS]; /* chunks along each axis, rounded up to a
                                    power of two */
    uint64_t chunks;             /* in all, rounded so */
} setting;

static void
measure(setting *s)
{
    pyri_grid_init(&s->grid, &s->form, s->chunk);
    s->chunks = 1;
    for (int d = 0; d < s->form.ndim; d++)
        s->side[d] = 1;
    for (int i = 0; i < s->form.norder; i++)
        s->side[s->form.order[i]] *= 2;
    for (int d = 0; d < s->form.ndim; d++)
        s->chunks *= s->side[d];
}

static void
make(setting *s, rng *r)
{
    uint64_t shape[PYR_MAX_DIMS];
    int ndim = (int)rng_from(r, 1, 5);
    for (int d = 0; d < ndim; d++) {
        s->chunk[d] = rng_from(r, 1, 5);
        shape[d] = rng_below(r, ndim == 1 ? 4000 : ndim == 2 ? 150 : 15);
    }
    OK(pyri_form_init(&s->form, ndim, shape, s->chunk));
    measure(s);
}

static uint64_t
number_of(const setting *s, const uint64_t *pos)
{
    uint64_t n = 0;
    for (int d = 0; d < s->form.ndim; d++)
        n = n * s->side[d] + pos[d];
    return n;
}

static void
pos_of(const setting *s, uint64_t n, uint64_t *pos)
{
    for (int d = s->form.ndim - 1; d >= 0; d--) {
        pos[d] = n % s->side[d];
        n /= s->side[d];
    }
}

/* --- walking down -------------------------------------------------------- */

typedef struct walk {
    const setting *s;
    uint8_t seen[MOST];
    uint64_t last[PYRI_CODE_WORDS]; /* code of the chunk seen last */
    bool any;
} walk;

static unsigned
slots_at(const setting *s, int level)
{
    int bits = s->form.norder - (level - 1) * PYRI_FAN_BITS;
    return 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
}

static void
reach_chunk(walk *w, const uint64_t *pos)
{
    uint64_t code[PYRI_CODE_WORDS];
    for (int d = 0; d < w->s->form.ndim; d++)
        REQUIRE(pos[d] < w->s->side[d]);
    REQUIRE(w->seen[number_of(w->s, pos)]++ == 0);
    pyri_grid_code(&w->s->grid, pos, code);
    int order = 0;
    for (int i = 0; i < PYRI_CODE_WORDS && !order; i++)
        order = code[i] < w->last[i] ? -1 : code[i] > w->last[i];
    REQUIRE(!w->any || order > 0);
    memcpy(w->last, code, sizeof code);
    w->any = true;
}

static void
go_down(walk *w, int level, const uint64_t *pos)
{
    const pyri_grid *g = &w->s->grid;
    pyri_box domain, child_domain;
    if (level == 0) {
        reach_chunk(w, pos);
        return;
    }
    pyri_grid_domain(g, level, pos, &domain);
    uint64_t cells = 0;
    for (unsigned slot = 0; slot < slots_at(w->s, level); slot++) {
        uint64_t child[PYR_MAX_DIMS];
        pyri_grid_child(g, level, pos, slot, child);
        pyri_grid_domain(g, level - 1, child, &child_domain);
        REQUIRE(pyri_box_contains(g->ndim, &domain, &child_domain));
        cells += pyri_box_cells(g->ndim, &child_domain);
        go_down(w, level - 1, child);
    }
    REQUIRE(cells == pyri_box_cells(g->ndim, &domain));
}

/* Slots in rising order reach every chunk once, in the order of the codes. */
static void
the_children_of_the_root_reach_every_chunk_once(void)
{
    static walk w;
    int levels[8] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        const uint64_t root[PYR_MAX_DIMS] = {0};
        rng r = rng_of(seed);
        setting s;
        make(&s, &r);
        if (s.chunks > MOST)
            continue;
        w = (walk){.s = &s};
        levels[s.grid.levels]++;
        go_down(&w, s.grid.levels, root);
        for (uint64_t i = 0; i < s.chunks; i++)
            REQUIRE(w.seen[i] == 1);
    }
    CHECK(levels[1] && levels[2] > 10 && levels[3] > 10);
}

/* The code of a chunk, slot by slot, leads to it and to nothing else. */
static void
the_code_of_a_chunk_leads_to_it(void)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        rng r = rng_of(seed);
        setting s;
        make(&s, &r);
        for (uint64_t n = 0; n < s.chunks && n < MOST; n++) {
            uint64_t want[PYR_MAX_DIMS], at[PYR_MAX_DIMS] = {0}, cell[16];
            uint64_t code[PYRI_CODE_WORDS];
            pyri_box chunk, domain;
            pos_of(&s, n, want);
            pyri_grid_domain(&s.grid, 0, want, &chunk);
            for (int d = 0; d < s.form.ndim; d++) {
                REQUIRE(chunk.lo[d] == want[d] * s.chunk[d]);
                REQUIRE(chunk.hi[d] == chunk.lo[d] + s.chunk[d]);
                cell[d] = rng_from(&r, chunk.lo[d], chunk.hi[d] - 1);
            }
            pyri_grid_code(&s.grid, want, code);
            for (int level = s.grid.levels; level > 0; level--) {
                pyri_grid_domain(&s.grid, level, at, &domain);
                REQUIRE(pyri_box_contains(s.form.ndim, &domain, &chunk));
                for (int d = 0; d < s.form.ndim; d++)
                    REQUIRE(at[d] == want[d] >> s.grid.shift[level][d]);
                pyri_grid_child(&s.grid, level, at,
                                pyri_grid_slot(code, level), at);
            }
            REQUIRE(number_of(&s, at) == n);
            pyri_grid_chunk_of(&s.grid, cell, at);
            REQUIRE(number_of(&s, at) == n);
        }
    }
}

static void
the_root_covers_the_whole_shape(void)
{
    for (uint64_t seed = 0; seed < 400; seed++) {
        const uint64_t root[PYR_MAX_DIMS] = {0};
        rng r = rng_of(seed);
        setting s;
        pyri_box all;
        make(&s, &r);
        REQUIRE(s.grid.levels == pyri_grid_levels(&s.form));
        pyri_grid_domain(&s.grid, s.grid.levels, root, &all);
        for (int d = 0; d < s.form.ndim; d++)
            REQUIRE(all.lo[d] == 0 && all.hi[d] >= s.form.shape[d]);
    }
}

/* --- growing ------------------------------------------------------------- */

static void
grow(setting *to, const setting *from, rng *r)
{
    uint64_t shape[PYR_MAX_DIMS];
    *to = *from;
    for (int d = 0; d < from->form.ndim; d++)
        shape[d] = from->form.shape[d] + rng_below(r, 3) * rng_below(r, 300);
    OK(pyri_form_change(&to->form, 1, shape, to->chunk));
    measure(to);
}

static void
check_kept(const setting *was, const setting *is, const uint64_t *pos)
{
    int n = was->form.ndim;
    uint64_t before[PYRI_CODE_WORDS], after[PYRI_CODE_WORDS];
    pyri_grid_code(&was->grid, pos, before);
    pyri_grid_code(&is->grid, pos, after);
    REQUIRE(memcmp(before, after, sizeof before) == 0);
    for (int level = 0; level <= was->grid.levels; level++) {
        uint64_t at[PYR_MAX_DIMS];
        pyri_box old, new;
        for (int d = 0; d < n; d++)
            at[d] = pos[d] >> was->grid.shift[level][d];
        pyri_grid_domain(&was->grid, level, at, &old);
        pyri_grid_domain(&is->grid, level, at, &new);
        REQUIRE(pyri_box_contains(n, &new, &old));
        if (level < was->grid.levels)
            REQUIRE(pyri_box_equal(n, &new, &old));
    }
}

static void
old_nodes_keep_their_place_when_an_array_grows(void)
{
    int grown = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        rng r = rng_of(seed);
        setting was, is;
        make(&was, &r);
        grow(&is, &was, &r);
        grown += is.grid.levels > was.grid.levels;
        for (uint64_t n = 0; n < was.chunks && n < MOST; n++) {
            uint64_t pos[PYR_MAX_DIMS];
            pos_of(&was, n, pos);
            check_kept(&was, &is, pos);
        }
    }
    CHECK(grown > 50);
}

/* --- the ends of 64 bits ------------------------------------------------- */

static void
the_last_chunk_of_64_bits_has_a_place(void)
{
    const uint64_t shape[1] = {UINT64_MAX}, chunk[1] = {1};
    uint64_t pos[1] = {UINT64_MAX - 1}, at[1] = {0};
    uint64_t code[PYRI_CODE_WORDS];
    pyri_form form;
    pyri_grid g;
    pyri_box domain;
    OK(pyri_form_init(&form, 1, shape, chunk));
    pyri_grid_init(&g, &form, chunk);
    CHECK(g.levels == 16);
    pyri_grid_code(&g, pos, code);
    for (int level = g.levels; level > 0; level--) {
        pyri_grid_domain(&g, level, at, &domain);
        CHECK(domain.lo[0] <= pos[0] && domain.hi[0] > pos[0]);
        pyri_grid_child(&g, level, at, pyri_grid_slot(code, level), at);
    }
    CHECK(at[0] == pos[0]);
}

/* The longest keys that there can be. */
static void
sixteen_long_axes_have_a_place_each(void)
{
    static pyri_grid g;
    uint64_t shape[16], chunk[16], pos[16], at[16] = {0};
    uint64_t code[PYRI_CODE_WORDS];
    pyri_form form;
    for (uint64_t d = 0; d < 16; d++) {
        shape[d] = 1ull << 63;
        chunk[d] = 1;
        pos[d] = (1ull << 63) - 1 - d * 0x123456789abcd;
    }
    OK(pyri_form_init(&form, 16, shape, chunk));
    CHECK(form.norder == 16 * 63);
    pyri_grid_init(&g, &form, chunk);
    pyri_grid_code(&g, pos, code);
    for (int level = g.levels; level > 0; level--)
        pyri_grid_child(&g, level, at, pyri_grid_slot(code, level), at);
    CHECK(memcmp(at, pos, sizeof pos) == 0);
}

TESTS(T(the_children_of_the_root_reach_every_chunk_once),
      T(the_code_of_a_chunk_leads_to_it), T(the_root_covers_the_whole_shape),
      T(old_nodes_keep_their_place_when_an_array_grows),
      T(the_last_chunk_of_64_bits_has_a_place),
      T(sixteen_long_axes_have_a_place_each))
