/*
 * Summaries against a plain reference that goes cell by cell; the variants of
 * the loops against each other; merging, subtracting and storing.
 */
#include "base/cpu.h"
#include "chunk/chunk.h"
#include "chunk/summary_kernels.h"
#include "support/check.h"

#include <float.h>
#include <math.h>

#define BOUND (36 * 0x1p-53) /* of the sum of |x|; stated in summary.c */

/* --- cells to try -------------------------------------------------------- */

enum { LONGEST = 1100, ROOM = 70016 };

typedef enum mix { ALIKE, TAME, EDGES, NANS, WILD, MIXES } mix;

static uint64_t seed = 1;

static uint64_t
dice(void)
{
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t
bits_of(pyr_type type, double v)
{
    uint64_t bits = 0;
    float f = (float)v;
    if (type == PYR_F32)
        memcpy(&bits, &f, 4);
    else
        memcpy(&bits, &v, 8);
    return bits;
}

static uint64_t
cut(pyr_type type, uint64_t bits)
{
    return bits & (UINT64_MAX >> (64 - 8 * pyri_type_size(type)));
}

static uint64_t
edge_cell(pyr_type type)
{
    uint64_t top = (uint64_t)1 << (8 * pyri_type_size(type) - 1);
    const uint64_t edges[] = {0, 1, top, top - 1, top + 1, UINT64_MAX};
    const uint64_t reals[] = {0, 1, top, top | 1, bits_of(type, 1),
                              bits_of(type, -1.5)};
    uint64_t r = dice() % 6;
    return cut(type, pyri_type_is_float(type) ? reals[r] : edges[r]);
}

static uint64_t
wild_real(pyr_type type)
{
    switch (dice() % 6) {
    case 0: return bits_of(type, INFINITY);
    case 1: return bits_of(type, -INFINITY);
    case 2: return bits_of(type, type == PYR_F32 ? FLT_MAX : DBL_MAX);
    default: return cut(type, dice());
    }
}

static double
tame_value(void)
{
    return ((double)(dice() >> 11) * 0x1p-53 - 0.3) * pow(2, dice() % 40);
}

static uint64_t
one_cell(pyr_type type, mix m)
{
    bool real = pyri_type_is_float(type);
    switch (m) {
    case ALIKE: return real ? bits_of(type, 2.75) : 77;
    case EDGES: return edge_cell(type);
    case WILD: return real ? wild_real(type) : cut(type, dice());
    case NANS:
        if (real && dice() % 3 == 0)
            return bits_of(type, NAN) | dice() % 4;
        break;
    default: break;
    }
    return real ? bits_of(type, tame_value()) : cut(type, dice());
}

static void
fill_cells(pyr_type type, mix m, uint8_t *cells, size_t n)
{
    size_t size = pyri_type_size(type);
    for (size_t i = 0; i < n; i++)
        pyri_cell_store(type, cells + i * size, one_cell(type, m));
}

/* --- the reference ------------------------------------------------------- */

typedef struct reference {
    pyri_summary s;          /* counts, range and whole sums, exact */
    long double sum, squares, size; /* size: sum of |x| */
} reference;

static bool
comes_before(pyr_type type, uint64_t a, uint64_t b)
{
    double x = pyri_cell_double(type, a), y = pyri_cell_double(type, b);
    if (pyri_type_is_float(type))
        return x < y || (x == y && signbit(x) && !signbit(y));
    if (pyri_type_is_signed(type))
        return x < y || (x == y && (int64_t)a < (int64_t)b);
    return a < b;
}

static pyri_u128
whole_value(pyr_type type, uint64_t bits)
{
    switch (type) {
    case PYR_I8: return (pyri_u128)(__int128)(int8_t)bits;
    case PYR_I16: return (pyri_u128)(__int128)(int16_t)bits;
    case PYR_I32: return (pyri_u128)(__int128)(int32_t)bits;
    case PYR_I64: return (pyri_u128)(__int128)(int64_t)bits;
    default: return bits;
    }
}

static void
refer(reference *r, pyr_type type, uint64_t fill, uint64_t bits)
{
    double x = pyri_cell_double(type, bits);
    pyri_summary *s = &r->s;
    bool nan = pyri_type_is_float(type) && isnan(x);
    s->equal = s->count == 0 || (s->equal && bits == s->min);
    s->not_fill += bits != fill;
    if (s->count == 0 || (!nan && s->count == s->nans))
        s->min = s->max = bits;
    s->count++;
    s->nans += nan;
    if (nan)
        return;
    if (comes_before(type, bits, s->min))
        s->min = bits;
    if (comes_before(type, s->max, bits))
        s->max = bits;
    r->sum += x;
    r->size += fabs(x);
    r->squares += (long double)x * x;
    if (!pyri_type_is_float(type))
        s->sum_int += whole_value(type, bits);
}

static void
refer_cells(reference *r, pyr_type type, uint64_t fill, const uint8_t *cells,
            size_t n)
{
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < n; i++)
        refer(r, type, fill,
              pyri_cell_load(type, cells + i * pyri_type_size(type)));
}

static bool
same_counts(const pyri_summary *a, const pyri_summary *b)
{
    return a->count == b->count && a->nans == b->nans &&
           a->not_fill == b->not_fill && a->min == b->min &&
           a->max == b->max && a->sum_int == b->sum_int &&
           a->equal == b->equal;
}

/* Bit for bit. */
static bool
same_sums(const pyri_summary *a, const pyri_summary *b)
{
    return memcmp(&a->sum, &b->sum, sizeof a->sum) == 0 &&
           memcmp(&a->sum_lost, &b->sum_lost, sizeof a->sum_lost) == 0 &&
           memcmp(&a->squares, &b->squares, sizeof a->squares) == 0;
}

static bool
good_sum(const pyri_summary *s, pyr_type type, const reference *r)
{
    if (!pyri_type_is_float(type))
        return s->sum == 0 && s->sum_lost == 0;
    if (isnan((double)r->sum))
        return isnan(s->sum) && s->sum_lost == 0;
    if (isinf((double)r->size)) /* infinities inside, or an overflow */
        /* a part may have overflowed to the other side: then it is NaN */
        return isinf(r->sum) ? (s->sum == (double)r->sum || isnan(s->sum)) &&
                                   s->sum_lost == 0
                             : s->sum_lost == 0 || isfinite(s->sum_lost);
    long double off = fabsl((long double)s->sum + s->sum_lost - r->sum);
    return off <= r->size * (BOUND + 0x1p-53) &&
           fabs(s->sum_lost) <= fabs(s->sum) * 0x1p-53;
}

static bool
good_squares(const pyri_summary *s, const reference *r)
{
    if ((double)r->squares > DBL_MAX / 2)
        return s->squares > DBL_MAX / 4;
    long double off = fabsl(s->squares - r->squares);
    return off <= r->squares * 0x1p-46 + (long double)s->count * DBL_MIN;
}

static bool
agrees(const pyri_summary *s, pyr_type type, const reference *r)
{
    return same_counts(s, &r->s) && good_sum(s, type, r) &&
           good_squares(s, r);
}

static uint8_t *
room_for_cells(void)
{
    static _Alignas(64) uint8_t room[ROOM * 8 + 64];
    return room;
}

/* --- adding -------------------------------------------------------------- */

static void
adding_agrees_with_the_reference(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (mix m = 0; m < MIXES; m++)
            for (size_t n = 0; n <= LONGEST; n++) {
                uint8_t *cells = room_for_cells() + (n + m) % 9;
                fill_cells(type, m, cells, n);
                uint64_t fill = n % 3 ? one_cell(type, m) : 0;
                reference r;
                pyri_summary s;
                refer_cells(&r, type, fill, cells, n);
                pyri_summary_init(&s);
                pyri_summary_add(&s, type, fill, cells, n);
                if (!agrees(&s, type, &r))
                    CHECK_NOTE("%s, mix %d, %zu cells",
                               pyri_type_name(type), (int)m, n);
            }
}

static void
cells_of_any_address_are_welcome(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (size_t offset = 0; offset < 64; offset++) {
            uint8_t *cells = room_for_cells() + offset;
            fill_cells(type, NANS, cells, 777);
            reference r;
            pyri_summary s = {0};
            refer_cells(&r, type, 5, cells, 777);
            pyri_summary_add(&s, type, 5, cells, 777);
            CHECK(agrees(&s, type, &r));
        }
}

static void
many_cells_agree_too(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (mix m = 0; m < MIXES; m++) {
            size_t n = ROOM - dice() % 100;
            reference r;
            pyri_summary s = {0};
            fill_cells(type, m, room_for_cells(), n);
            refer_cells(&r, type, 0, room_for_cells(), n);
            pyri_summary_add(&s, type, 0, room_for_cells(), n);
            CHECK(agrees(&s, type, &r));
        }
}

/* Values at which narrow lanes would overflow first. */
static void
the_greatest_cells_fit_the_lanes(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_U64; type++) {
        uint64_t top = (uint64_t)1 << (8 * pyri_type_size(type) - 1);
        const uint64_t values[] = {top, top - 1, cut(type, UINT64_MAX)};
        for (int k = 0; k < 3; k++)
            for (int fill = 0; fill < 2; fill++) {
                size_t size = pyri_type_size(type), n = ROOM - (size_t)k;
                for (size_t i = 0; i < n; i++)
                    pyri_cell_store(type, room_for_cells() + i * size,
                                    values[k]);
                reference r;
                pyri_summary s = {0};
                uint64_t f = fill ? values[k] : 0;
                refer_cells(&r, type, f, room_for_cells(), n);
                pyri_summary_add(&s, type, f, room_for_cells(), n);
                CHECK(agrees(&s, type, &r));
            }
    }
}

#ifdef PYRI_HAVE_AVX2
static void
compare_with_baseline(pyri_kernel_fn *const *kernels)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (mix m = 0; m < MIXES; m++)
            for (size_t n = 1; n <= 6000; n += n < LONGEST ? 1 : 487) {
                uint8_t *cells = room_for_cells() + (n + m) % 9;
                fill_cells(type, m, cells, n);
                uint64_t fill = n % 2 ? 0 : one_cell(type, m);
                pyri_summary a, b;
                pyri_kernels_baseline[type](&a, fill, cells, n);
                kernels[type](&b, fill, cells, n);
                if (!same_counts(&a, &b) || !same_sums(&a, &b))
                    CHECK_NOTE("%s, mix %d, %zu cells",
                               pyri_type_name(type), (int)m, n);
            }
}
#endif

static void
the_variant_for_avx2_gives_the_same_bits(void)
{
#ifdef PYRI_HAVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        compare_with_baseline(pyri_kernels_avx2);
#endif
}

static void
the_variant_for_avx512_gives_the_same_bits(void)
{
#ifdef PYRI_HAVE_AVX512
    if (pyri_cpu_has_avx512())
        compare_with_baseline(pyri_kernels_avx512);
#endif
}

static void
minus_zero_is_below_zero(void)
{
    double cells[3] = {0.0, -0.0, 0.0};
    for (int at = 0; at < 3; at++) {
        memset(cells, 0, sizeof cells);
        cells[at] = -0.0;
        pyri_summary s = {0};
        for (int i = 0; i < 3; i++)
            pyri_summary_add(&s, PYR_F64, 0, &cells[i], 1);
        CHECK(s.min == bits_of(PYR_F64, -0.0) && s.max == 0);
        CHECK(!s.equal && s.not_fill == 1 && s.sum == 0);
    }
}

static void
mix_zeros(pyr_type type, double low, double high)
{
    size_t size = pyri_type_size(type);
    for (size_t n = 1; n < 70; n++) {
        uint8_t cells[70 * 8];
        for (size_t i = 0; i < n; i++)
            pyri_cell_store(type, cells + i * size,
                            bits_of(type, dice() % 2 ? low : high));
        reference r;
        pyri_summary s = {0};
        refer_cells(&r, type, 0, cells, n);
        pyri_summary_add(&s, type, 0, cells, n);
        CHECK(agrees(&s, type, &r));
    }
}

static void
zeros_keep_their_signs_among_many(void)
{
    const double sides[] = {0.0, -0.0, 1.5, -1.5};
    for (int low = 0; low < 4; low++)
        for (int high = 0; high < 4; high++) {
            mix_zeros(PYR_F32, sides[low], sides[high]);
            mix_zeros(PYR_F64, sides[low], sides[high]);
        }
}

static void
infinite_sums_stay_infinite(void)
{
    const double up[] = {1, INFINITY, 2}, down[] = {-INFINITY, 3};
    const double big[] = {DBL_MAX, DBL_MAX};
    pyri_summary s = {0}, t = {0};
    pyri_summary_add(&s, PYR_F64, 0, up, 3);
    pyri_summary_add(&s, PYR_F64, 0, up, 3);
    CHECK(s.sum == INFINITY && s.sum_lost == 0 && s.squares == INFINITY);
    pyri_summary_add(&t, PYR_F64, 0, big, 1);
    pyri_summary_add(&t, PYR_F64, 0, big, 2);
    CHECK(t.sum == INFINITY && t.sum_lost == 0);
    pyri_summary_add(&s, PYR_F64, 0, down, 2);
    CHECK(isnan(s.sum) && s.sum_lost == 0 && s.nans == 0);
    CHECK(s.min == bits_of(PYR_F64, -INFINITY));
    CHECK(s.max == bits_of(PYR_F64, INFINITY));
}

static void
what_a_sum_loses_is_kept(void)
{
    pyri_summary s = {0};
    const double big = 0x1p60, one = 1, minus = -0x1p60;
    pyri_summary_add(&s, PYR_F64, 0, &big, 1);
    for (int i = 0; i < 1000; i++)
        pyri_summary_add(&s, PYR_F64, 0, &one, 1);
    pyri_summary_add(&s, PYR_F64, 0, &minus, 1);
    CHECK(s.sum == 1000 && s.sum_lost == 0);
}

/* --- one value ----------------------------------------------------------- */

static void
adding_the_same_is_adding_each(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (int k = 0; k < 200; k++) {
            uint64_t bits = one_cell(type, (mix)(k % MIXES));
            uint64_t fill = k % 2 ? bits : 0;
            size_t n = dice() % 500, size = pyri_type_size(type);
            for (size_t i = 0; i < n; i++)
                pyri_cell_store(type, room_for_cells() + i * size, bits);
            reference r;
            pyri_summary s = {0};
            refer_cells(&r, type, fill, room_for_cells(), n);
            pyri_summary_add_same(&s, type, fill, bits, n);
            if (!agrees(&s, type, &r))
                CHECK_NOTE("%s, %zu times %llx", pyri_type_name(type), n,
                           (unsigned long long)bits);
        }
}

static void
the_most_cells_of_one_value(void)
{
    pyri_summary s = {0};
    pyri_summary_add_same(&s, PYR_I64, 0, (uint64_t)1 << 63, UINT64_MAX);
    CHECK(s.sum_int == (pyri_u128)0 - ((pyri_u128)UINT64_MAX << 63));
    CHECK(s.squares == 0x1p190 && s.equal && s.not_fill == UINT64_MAX);
    pyri_summary_init(&s);
    pyri_summary_add_same(&s, PYR_U64, 0, UINT64_MAX, UINT64_MAX);
    CHECK(s.sum_int == (pyri_u128)UINT64_MAX * UINT64_MAX);
    pyri_summary_init(&s);
    pyri_summary_add_same(&s, PYR_F32, 0, bits_of(PYR_F32, -0.5), UINT64_MAX);
    CHECK(s.sum == -0x1p63 && s.squares == 0x1p62);
    pyri_summary_init(&s);
    pyri_summary_add_same(&s, PYR_F64, 0, bits_of(PYR_F64, NAN), UINT64_MAX);
    CHECK(s.nans == UINT64_MAX && s.sum == 0 && s.equal);
    pyri_summary_add_same(&s, PYR_F64, 0, bits_of(PYR_F64, 1), 0);
    CHECK(s.count == UINT64_MAX);
}

/* --- merging ------------------------------------------------------------- */

static void
merges_agree_however_cells_are_split(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (int k = 0; k < 400; k++) {
            size_t size = pyri_type_size(type), n = dice() % 5000;
            mix m = (mix)(k % MIXES);
            fill_cells(type, m, room_for_cells(), n);
            reference r;
            pyri_summary left = {0}, right = {0};
            refer_cells(&r, type, 0, room_for_cells(), n);
            for (size_t at = 0, step; at < n; at += step) {
                step = 1 + dice() % (n - at);
                pyri_summary part = {0};
                pyri_summary_add(&part, type, 0, room_for_cells() + at * size,
                                 step);
                pyri_summary_merge(dice() % 2 ? &left : &right, type, &part);
            }
            /* the first NaN is not the first of all, if the order is not */
            if (r.s.count == r.s.nans)
                continue;
            pyri_summary_merge(&left, type, &right);
            if (!agrees(&left, type, &r))
                CHECK_NOTE("%s, mix %d, %zu cells", pyri_type_name(type),
                           (int)m, n);
        }
}

static void
an_empty_summary_changes_nothing(void)
{
    pyri_summary s = {0}, none;
    pyri_summary_init(&none);
    pyri_summary_merge(&s, PYR_F32, &none);
    CHECK(s.count == 0 && !s.equal);
    pyri_summary_add_same(&s, PYR_F32, 0, bits_of(PYR_F32, 3), 7);
    pyri_summary_merge(&s, PYR_F32, &none);
    CHECK(s.count == 7 && s.equal && s.sum == 21);
    pyri_summary_merge(&none, PYR_F32, &s);
    CHECK(none.count == 7 && none.equal && none.sum == 21);
}

static void
equal_needs_the_same_bits(void)
{
    pyri_summary a = {0}, b = {0}, c = {0};
    pyri_summary_add_same(&a, PYR_F64, 0, 0, 3);
    pyri_summary_add_same(&b, PYR_F64, 0, bits_of(PYR_F64, -0.0), 3);
    pyri_summary_add_same(&c, PYR_F64, 0, 0, 2);
    pyri_summary_merge(&c, PYR_F64, &a);
    CHECK(c.equal && c.count == 5);
    pyri_summary_merge(&a, PYR_F64, &b);
    CHECK(!a.equal);
}

/* --- subtracting --------------------------------------------------------- */

static bool
remains_good(const pyri_summary *got, pyr_type type, const reference *r)
{
    if (!same_counts(got, &r->s))
        return false;
    long double most =
        r->squares * 0x1p-34 + (long double)got->count * DBL_MIN;
    if ((double)r->squares > DBL_MAX / 2) {
        if (got->squares <= DBL_MAX / 4)
            return false;
    } else if (fabsl(got->squares - r->squares) > most) {
        return false;
    }
    if (!pyri_type_is_float(type) || !isfinite((double)r->size))
        return true;
    long double measure = sqrtl(r->squares * (long double)got->count);
    return fabsl((long double)got->sum + got->sum_lost - r->sum) <=
           measure * 0x1p-40 + DBL_MIN;
}

/* Take cells from..to of n off, having looked at the others, or not; could it? */
static bool
try_after_a_look(pyr_type type, size_t n, size_t from, size_t to, bool look)
{
    reference r;
    size_t size = pyri_type_size(type);
    uint8_t *cells = room_for_cells();
    pyri_summary s = {0}, part = {0}, rest = {0}, before;
    pyri_summary_add(&s, type, 0, cells, n);
    pyri_summary_add(&part, type, 0, cells + from * size, to - from);
    pyri_summary_add(&rest, type, 0, cells, from);
    pyri_summary_add(&rest, type, 0, cells + to * size, n - to);
    before = s;
    if (!pyri_summary_subtract(&s, type, 0, &part, look ? &rest : NULL)) {
        CHECK(same_counts(&s, &before) && same_sums(&s, &before));
        return false;
    }
    memmove(cells + from * size, cells + to * size, (n - to) * size);
    refer_cells(&r, type, 0, cells, n - (to - from));
    if (!remains_good(&s, type, &r))
        CHECK_NOTE("%s, %zu..%zu of %zu", pyri_type_name(type), from, to, n);
    return true;
}

static bool
try_to_subtract(pyr_type type, size_t n, size_t from, size_t to)
{
    return try_after_a_look(type, n, from, to, false);
}

static void
subtracting_is_right_when_it_says_so(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (mix m = 0; m < MIXES; m++) {
            int done = 0, looked = 0;
            for (int k = 0; k < 500; k++) {
                size_t n = 2 + dice() % 700;
                size_t from = dice() % (n + 1);
                size_t to = from + dice() % (n - from + 1);
                fill_cells(type, m, room_for_cells(), n);
                done += try_to_subtract(type, n, from, to);
                fill_cells(type, m, room_for_cells(), n);
                looked += try_after_a_look(type, n, from, to, true);
            }
            CHECK(done > 0 && looked > 0);
            CHECK(m != TAME || looked > done);
            CHECK(m != ALIKE || done == 500);
            CHECK(m != TAME || done < 500);
        }
}

/* Great and small cells together: what remains may be lost in the noise. */
static void
subtracting_refuses_what_it_cannot_tell(void)
{
    double *cells = (double *)(void *)room_for_cells();
    int done = 0, refused = 0;
    for (int k = 0; k < 3000; k++) {
        size_t n = 20 + dice() % 300, to = 2 + dice() % (n - 2);
        double great = pow(2, dice() % 80);
        cells[0] = -great;
        cells[1] = great;
        for (size_t i = 2; i < n; i++)
            cells[i] = (i < to ? great : 1) * (tame_value() * 0x1p-40);
        /* the extremes remain in half of the cases */
        bool can = try_to_subtract(PYR_F64, n, k % 2 ? 2 : 0, to);
        done += can;
        refused += !can;
    }
    CHECK(done > 100 && refused > 100);
}

/* The whole's rounding is as great as the little that would remain. */
static void
a_small_remainder_is_refused(void)
{
    double *cells = (double *)(void *)room_for_cells();
    const size_t n = 10000;
    for (size_t i = 0; i < n; i++)
        cells[i] = i % 2 ? 0.9 : -0.9;
    cells[0] = -1;
    cells[1] = 1;
    CHECK(!try_to_subtract(PYR_F64, n, 2, n - 10));
    CHECK(!try_to_subtract(PYR_F64, n, 2, n - 100));
    CHECK(try_to_subtract(PYR_F64, n, 2, n - 1000));
}

static void
the_only_maximum_cannot_be_taken(void)
{
    const int32_t cells[] = {1, 5, 9, 5};
    pyri_summary s = {0}, least = {0}, most = {0}, middle = {0};
    pyri_summary_add(&s, PYR_I32, 0, cells, 4);
    pyri_summary_add(&least, PYR_I32, 0, cells, 1);
    pyri_summary_add(&most, PYR_I32, 0, cells + 2, 1);
    pyri_summary_add(&middle, PYR_I32, 0, cells + 1, 1);
    CHECK(!pyri_summary_subtract(&s, PYR_I32, 0, &least, NULL) &&
          !pyri_summary_subtract(&s, PYR_I32, 0, &most, NULL));
    CHECK(pyri_summary_subtract(&s, PYR_I32, 0, &middle, NULL));
    CHECK(s.count == 3 && s.sum_int == 15 && s.squares == 107);
}

static void
a_maximum_can_be_taken_if_the_next_one_is_known(void)
{
    const int32_t cells[] = {9, 1, 5, 8, 2, 6};
    pyri_summary s = {0}, both = {0}, rest = {0};
    pyri_summary_add(&s, PYR_I32, 0, cells, 6);
    pyri_summary_add(&both, PYR_I32, 0, cells, 2);
    pyri_summary_add(&rest, PYR_I32, 0, cells + 2, 4);
    CHECK(!pyri_summary_subtract(&s, PYR_I32, 0, &both, NULL));
    CHECK(pyri_summary_subtract(&s, PYR_I32, 0, &both, &rest));
    CHECK(s.count == 4 && s.min == 2 && s.max == 8 && s.sum_int == 21);
}

static void
fill_may_be_taken_as_long_as_some_remains(void)
{
    const int32_t cells[] = {7, 7, 9, 11};
    pyri_summary s = {0}, one = {0};
    pyri_summary_add(&s, PYR_I32, 7, cells, 4);
    pyri_summary_add(&one, PYR_I32, 7, cells, 1);
    CHECK(pyri_summary_subtract(&s, PYR_I32, 7, &one, NULL));
    CHECK(s.count == 3 && s.min == 7 && s.sum_int == 27);
    CHECK(!pyri_summary_subtract(&s, PYR_I32, 7, &one, NULL));
}

static void
nans_may_be_taken(void)
{
    const float cells[] = {4, 4, NAN, 4};
    pyri_summary s = {0}, nan = {0}, rest = {0};
    pyri_summary_add(&s, PYR_F32, 0, cells, 4);
    pyri_summary_add(&nan, PYR_F32, 0, cells + 2, 1);
    pyri_summary_add(&rest, PYR_F32, 0, cells, 2);
    CHECK(!s.equal && !pyri_summary_subtract(&s, PYR_F32, 0, &rest, NULL));
    CHECK(pyri_summary_subtract(&s, PYR_F32, 0, &nan, NULL));
    CHECK(s.equal && s.count == 3 && s.nans == 0 && s.sum == 12);
    CHECK(pyri_summary_subtract(&s, PYR_F32, 0, &rest, NULL));
    CHECK(s.equal && s.count == 1 && s.sum == 4 && s.squares == 16);
    pyri_summary last = s;
    CHECK(pyri_summary_subtract(&s, PYR_F32, 0, &last, NULL));
    CHECK(s.count == 0 && !s.equal && s.sum == 0);
}

/* The first NaN's bits are kept; who knows which one was taken? */
static void
one_of_several_nans_cannot_be_taken(void)
{
    const uint32_t cells[] = {0x7fc00001, 0x7fc00002};
    pyri_summary s = {0}, part = {0};
    pyri_summary_add(&s, PYR_F32, 0, cells, 2);
    pyri_summary_add(&part, PYR_F32, 0, cells, 1);
    CHECK(s.nans == 2 && !s.equal && s.min == cells[0] && s.max == cells[0]);
    CHECK(!pyri_summary_subtract(&s, PYR_F32, 0, &part, NULL));
}

/* --- stored form --------------------------------------------------------- */

static void
stored_summaries_come_back(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (int k = 0; k < 500; k++) {
            uint8_t bytes[PYRI_SUMMARY_BYTES], again[PYRI_SUMMARY_BYTES];
            size_t n = dice() % 40;
            fill_cells(type, (mix)(k % MIXES), room_for_cells(), n);
            pyri_summary s = {0}, t;
            pyri_summary_add(&s, type, 0, room_for_cells(), n);
            pyri_summary_encode(&s, type, bytes);
            OK(pyri_summary_decode(&t, type, bytes));
            CHECK(same_counts(&s, &t));
            pyri_summary_encode(&t, type, again);
            CHECK(memcmp(bytes, again, sizeof bytes) == 0);
        }
}

static void
a_flipped_flag_is_noticed(void)
{
    for (pyr_type type = PYR_I8; type <= PYR_F64; type++)
        for (int k = 0; k < 100; k++)
            for (int bit = 0; bit < 64; bit++) {
                uint8_t bytes[PYRI_SUMMARY_BYTES];
                size_t n = dice() % 40;
                fill_cells(type, (mix)(k % MIXES), room_for_cells(), n);
                pyri_summary s = {0}, t;
                pyri_summary_add(&s, type, 0, room_for_cells(), n);
                if (n > 1 && s.nans == n)
                    continue; /* either flag could be true */
                pyri_summary_encode(&s, type, bytes);
                bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
                FAILS(PYR_ECORRUPT, pyri_summary_decode(&t, type, bytes));
                CHECK(t.count == 0);
            }
}

static void
expect_corrupt(const pyri_summary *s, pyr_type type)
{
    uint8_t bytes[PYRI_SUMMARY_BYTES];
    pyri_summary t;
    pyri_summary_encode(s, type, bytes);
    FAILS(PYR_ECORRUPT, pyri_summary_decode(&t, type, bytes));
}

static void
contradictions_are_noticed(void)
{
    const float cells[] = {1, 2, 3};
    enum { WRONG = 11 };
    pyri_summary good = {0}, bad[WRONG];
    pyri_summary_add(&good, PYR_F32, 0, cells, 3);
    for (int i = 0; i < WRONG; i++)
        bad[i] = good;
    bad[0].nans = 4;
    bad[1].nans = 3;
    bad[2].not_fill = 4;
    bad[3].count = 0;
    bad[4].min = good.max + 1;
    bad[5].max |= (uint64_t)1 << 32;
    bad[6].max = bits_of(PYR_F32, NAN);
    bad[7].max = good.min;
    bad[8].squares = -1;
    bad[9].squares = NAN;
    bad[10].sum_lost = INFINITY;
    for (int i = 0; i < WRONG; i++)
        expect_corrupt(&bad[i], PYR_F32);
    good = (pyri_summary){.count = 2, .nans = 1, .max = 1};
    expect_corrupt(&good, PYR_I32);
}

static void
random_bytes_never_do_harm(void)
{
    for (int k = 0; k < 200000; k++) {
        uint8_t bytes[PYRI_SUMMARY_BYTES] = {0}, again[PYRI_SUMMARY_BYTES];
        pyr_type type = (pyr_type)(dice() % PYRI_TYPES);
        pyri_summary s;
        for (int i = 0; i < 10; i++)
            bytes[dice() % sizeof bytes] = (uint8_t)dice();
        if (pyri_summary_decode(&s, type, bytes) < 0)
            continue;
        pyri_summary_encode(&s, type, again);
        CHECK(memcmp(bytes, again, sizeof bytes) == 0);
    }
}

TESTS(T(adding_agrees_with_the_reference), T(cells_of_any_address_are_welcome),
      T(many_cells_agree_too), T(the_greatest_cells_fit_the_lanes),
      T(the_variant_for_avx2_gives_the_same_bits),
      T(the_variant_for_avx512_gives_the_same_bits),
      T(minus_zero_is_below_zero),
      T(zeros_keep_their_signs_among_many), T(infinite_sums_stay_infinite),
      T(what_a_sum_loses_is_kept),
      T(adding_the_same_is_adding_each), T(the_most_cells_of_one_value),
      T(merges_agree_however_cells_are_split),
      T(an_empty_summary_changes_nothing), T(equal_needs_the_same_bits),
      T(subtracting_is_right_when_it_says_so),
      T(subtracting_refuses_what_it_cannot_tell),
      T(a_maximum_can_be_taken_if_the_next_one_is_known),
      T(fill_may_be_taken_as_long_as_some_remains),
      T(a_small_remainder_is_refused), T(the_only_maximum_cannot_be_taken),
      T(nans_may_be_taken),
      T(one_of_several_nans_cannot_be_taken),
      T(stored_summaries_come_back), T(a_flipped_flag_is_noticed),
      T(contradictions_are_noticed), T(random_bytes_never_do_harm))
