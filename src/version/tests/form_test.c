/*
 * Forms of arrays, against a list of every shape that an array ever had.
 */
#include "base/checked.h"
#include "support/check.h"
#include "support/rng.h"
#include "version/version.h"

enum { CHANGES = 24 };

/* An array that changes its shape with every version. */
typedef struct story {
    rng r;
    int ndim;
    uint64_t chunk[PYR_MAX_DIMS];
    uint64_t shape[CHANGES + 1][PYR_MAX_DIMS]; /* by label */
    pyri_form form[CHANGES + 1];
} story;

static void
pick_shape(story *s, uint64_t *shape, const uint64_t *before)
{
    for (int d = 0; d < s->ndim; d++) {
        uint64_t dice = rng_below(&s->r, 8);
        shape[d] = dice < 3    ? before[d]
                   : dice == 3 ? rng_next(&s->r) >> rng_below(&s->r, 64)
                   : dice == 4 ? before[d] + rng_below(&s->r, 9)
                               : rng_below(&s->r, 40);
    }
    for (int d = 0; !pyri_countable(s->ndim, shape); d = (d + 1) % s->ndim)
        shape[d] = shape[d] / 2 + 1;
}

static void
tell(story *s, uint64_t seed)
{
    const uint64_t none[PYR_MAX_DIMS] = {0};
    *s = (story){.r = rng_of(seed)};
    s->ndim = (int)rng_from(&s->r, 1, 5);
    for (int d = 0; d < s->ndim; d++)
        s->chunk[d] = rng_from(&s->r, 1, 9);
    pick_shape(s, s->shape[0], none);
    OK(pyri_form_init(&s->form[0], s->ndim, s->shape[0], s->chunk));
    for (uint64_t v = 1; v <= CHANGES; v++) {
        pick_shape(s, s->shape[v], s->shape[v - 1]);
        OK(pyri_form_copy(&s->form[v], &s->form[v - 1]));
        OK(pyri_form_change(&s->form[v], v, s->shape[v], s->chunk));
    }
}

static void
forget(story *s)
{
    for (int v = 0; v <= CHANGES; v++)
        pyri_form_fini(&s->form[v]);
}

static void
a_form_has_the_shape_it_was_changed_to(void)
{
    story s;
    for (uint64_t seed = 0; seed < 300; seed++) {
        tell(&s, seed);
        for (int v = 0; v <= CHANGES; v++)
            for (int d = 0; d < s.ndim; d++)
                REQUIRE(s.form[v].shape[d] == s.shape[v][d]);
        forget(&s);
    }
}

static void
halvings_are_added_at_the_coarse_end_only(void)
{
    story s;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        tell(&s, seed);
        for (int v = 1; v <= CHANGES; v++) {
            const pyri_form *was = &s.form[v - 1], *is = &s.form[v];
            REQUIRE(is->norder >= was->norder);
            REQUIRE(memcmp(was->order, is->order, (size_t)was->norder) == 0);
        }
        forget(&s);
    }
}

/* Halvings of an axis are enough for the longest it ever was, and no more. */
static void
halvings_tell_all_chunks_apart_and_no_more(void)
{
    story s;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        uint64_t most[PYR_MAX_DIMS] = {0};
        tell(&s, seed);
        for (int v = 0; v <= CHANGES; v++) {
            int have[PYR_MAX_DIMS] = {0};
            for (int i = 0; i < s.form[v].norder; i++)
                have[s.form[v].order[i]]++;
            for (int d = 0; d < s.ndim; d++) {
                most[d] = pyri_max64(most[d], s.shape[v][d]);
                uint64_t last = most[d] ? (most[d] - 1) / s.chunk[d] : 0;
                int need = 0;
                for (; last; last >>= 1)
                    need++;
                REQUIRE(have[d] == need);
            }
        }
        forget(&s);
    }
}

/* A cell that version f stored is shown as of v if no shape since then left
 * it out. */
static void
clip_shows_what_no_shape_since_has_left_out(void)
{
    story s;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        tell(&s, seed);
        for (int v = 0; v <= CHANGES; v++)
            for (int f = 0; f <= v; f++) {
                uint64_t clip[PYR_MAX_DIMS];
                pyri_form_clip(&s.form[v], (uint64_t)f, clip);
                for (int d = 0; d < s.ndim; d++) {
                    uint64_t want = s.shape[f][d];
                    for (int w = f; w <= v; w++)
                        want = pyri_min64(want, s.shape[w][d]);
                    REQUIRE(pyri_min64(clip[d], s.shape[f][d]) == want);
                    REQUIRE(clip[d] <= s.shape[v][d]);
                }
            }
        forget(&s);
    }
}

static void
cuts_that_say_nothing_are_dropped(void)
{
    const uint64_t chunk[1] = {4}, shape[1] = {100};
    pyri_form f;
    OK(pyri_form_init(&f, 1, shape, chunk));
    for (uint64_t v = 1; v < 100; v += 2) { /* none less deep than another */
        uint64_t less[1] = {100 - v / 4};
        OK(pyri_form_change(&f, v, less, chunk));
        CHECK(f.ncuts == (v < 4 ? 0 : 1));
        CHECK(v < 4 || f.cuts[0].label == v);
        OK(pyri_form_change(&f, v + 1, shape, chunk));
    }
    pyri_form_fini(&f);
}

/* --- limits -------------------------------------------------------------- */

/* A form with n cuts, none of which hides another. */
static void
with_cuts(pyri_form *f, int n)
{
    const uint64_t shape[1] = {1u << 20}, chunk[1] = {1u << 20};
    OK(pyri_form_init(f, 1, shape, chunk));
    f->cuts = malloc((size_t)n * sizeof *f->cuts);
    REQUIRE(f->cuts);
    f->ncuts = n;
    for (int i = 0; i < n; i++)
        f->cuts[i] = (pyri_cut){(uint64_t)(n - i), (uint64_t)(n - i), 0};
}

static void
a_form_that_was_cut_too_often_fits_no_more(void)
{
    const uint64_t chunk[1] = {1u << 20}, whole[1] = {1u << 20};
    pyri_form f;
    with_cuts(&f, PYRI_MAX_CUTS / 2 - 1);
    uint64_t less[1] = {PYRI_MAX_CUTS / 2};
    OK(pyri_form_fits(&f, less, chunk));
    CHECK(f.ncuts == PYRI_MAX_CUTS / 2 - 1); /* it only asked */
    OK(pyri_form_change(&f, PYRI_MAX_CUTS, less, chunk));
    CHECK(f.ncuts == PYRI_MAX_CUTS / 2);
    OK(pyri_form_change(&f, PYRI_MAX_CUTS + 1, whole, chunk));
    less[0]++;
    FAILS(PYR_EINVAL, pyri_form_fits(&f, less, chunk));
    less[0] = 0; /* but it hides all the others */
    OK(pyri_form_fits(&f, less, chunk));
    pyri_form_fini(&f);
}

static void
a_form_of_too_many_chunks_does_not_fit(void)
{
    uint64_t shape[16], chunk[16];
    pyri_form f;
    for (int d = 0; d < 16; d++) {
        shape[d] = UINT64_MAX;
        chunk[d] = 1;
    }
    FAILS(PYR_EINVAL, pyri_form_init(&f, 16, shape, chunk));
    OK(pyri_form_init(&f, 15, shape, chunk));
    CHECK(f.norder == 15 * 64);
    FAILS(PYR_EINVAL, pyri_form_fits(&f, shape, chunk));
    for (int d = 0; d < 16; d++)
        shape[d] = 1ull << 31;
    OK(pyri_form_init(&f, 16, shape, chunk));
    OK(pyri_form_fits(&f, shape, chunk));
    shape[3] = 1ull << 45;
    OK(pyri_form_fits(&f, shape, chunk)); /* 510 halvings */
    shape[3] = (1ull << 45) + 1;
    FAILS(PYR_EINVAL, pyri_form_fits(&f, shape, chunk));
}

/* --- stored form --------------------------------------------------------- */

static bool
same_form(const pyri_form *a, const pyri_form *b)
{
    bool same = a->ndim == b->ndim && a->norder == b->norder &&
                a->ncuts == b->ncuts &&
                memcmp(a->order, b->order, (size_t)a->norder) == 0;
    for (int d = 0; d < a->ndim && same; d++)
        same = a->shape[d] == b->shape[d];
    for (int i = 0; i < a->ncuts && same; i++)
        same = a->cuts[i].label == b->cuts[i].label &&
               a->cuts[i].extent == b->cuts[i].extent &&
               a->cuts[i].axis == b->cuts[i].axis;
    return same;
}

static void
a_form_survives_being_stored(void)
{
    story s;
    for (uint64_t seed = 0; seed < 300; seed++) {
        tell(&s, seed);
        for (int v = 0; v <= CHANGES; v++) {
            pyri_buf b = {0};
            pyri_form back;
            pyri_form_encode(&s.form[v], &b);
            pyri_buf_u8(&b, 0xab); /* what follows is left alone */
            pyri_cursor c = pyri_cursor_of(b.data, b.size);
            OK(pyri_form_decode(&c, &back));
            REQUIRE(same_form(&s.form[v], &back));
            REQUIRE(c.end - c.at == 1);
            pyri_form_fini(&back);
            pyri_buf_fini(&b);
        }
        forget(&s);
    }
}

/* Decode from memory of just that size, so that a checker sees a step beyond
 * it. Whatever comes out must be safe to use. */
static bool
decodes(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size + !size);
    pyri_form f;
    REQUIRE(exact);
    memcpy(exact, bytes, size);
    pyri_cursor c = pyri_cursor_of(exact, size);
    int err = pyri_form_decode(&c, &f);
    if (err < 0)
        FAILS(PYR_ECORRUPT, err);
    if (err == 0) {
        uint64_t clip[PYR_MAX_DIMS];
        REQUIRE(f.ndim >= 1 && f.ndim <= PYR_MAX_DIMS);
        REQUIRE(f.norder >= 0 && f.norder <= PYRI_MAX_ORDER);
        REQUIRE(f.ncuts >= 0 && f.ncuts <= PYRI_MAX_CUTS);
        for (int i = 0; i < f.norder; i++)
            REQUIRE(f.order[i] < f.ndim);
        for (int i = 0; i < f.ncuts; i++) {
            REQUIRE(f.cuts[i].axis >= 0 && f.cuts[i].axis < f.ndim);
            REQUIRE(i == 0 || f.cuts[i].label <= f.cuts[i - 1].label);
        }
        pyri_form_clip(&f, 0, clip);
        pyri_form_fini(&f);
    }
    free(exact);
    return err == 0;
}

static void
a_form_cut_short_is_refused(void)
{
    story s;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pyri_buf b = {0};
        tell(&s, seed);
        pyri_form_encode(&s.form[CHANGES], &b);
        for (size_t size = 0; size < b.size; size++)
            REQUIRE(!decodes(b.data, size));
        CHECK(decodes(b.data, b.size));
        pyri_buf_fini(&b);
        forget(&s);
    }
}

static void
a_form_with_flipped_bits_is_refused_or_harmless(void)
{
    story s;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pyri_buf b = {0};
        tell(&s, seed);
        pyri_form_encode(&s.form[CHANGES], &b);
        for (size_t i = 0; i < 8 * b.size; i++) {
            b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
            decodes(b.data, b.size);
            b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        }
        for (size_t i = 0; i < b.size; i++) {
            uint8_t was = b.data[i];
            b.data[i] = 0xff;
            decodes(b.data, b.size);
            b.data[i] = was;
        }
        pyri_buf_fini(&b);
        forget(&s);
    }
}

/* An index has 64 bits: there is no halving of an axis past those. */
static void
more_halvings_of_an_axis_than_it_has_bits_are_refused(void)
{
    pyri_form f = {.ndim = 2, .shape = {9, 9}, .norder = 65};
    pyri_buf b = {0};
    pyri_form_encode(&f, &b);
    CHECK(!decodes(b.data, b.size));
    pyri_buf_reset(&b);
    f.norder = 64;
    pyri_form_encode(&f, &b);
    CHECK(decodes(b.data, b.size));
    pyri_buf_fini(&b);
}

TESTS(T(a_form_has_the_shape_it_was_changed_to),
      T(halvings_are_added_at_the_coarse_end_only),
      T(halvings_tell_all_chunks_apart_and_no_more),
      T(clip_shows_what_no_shape_since_has_left_out),
      T(cuts_that_say_nothing_are_dropped),
      T(a_form_that_was_cut_too_often_fits_no_more),
      T(a_form_of_too_many_chunks_does_not_fit),
      T(a_form_survives_being_stored), T(a_form_cut_short_is_refused),
      T(a_form_with_flipped_bits_is_refused_or_harmless),
      T(more_halvings_of_an_axis_than_it_has_bits_are_refused))
