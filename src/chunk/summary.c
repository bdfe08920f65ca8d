/*
 * chunk/summary.c - what cells have in common.
 *
 * Cells are looked at in summary_kernels.inc; here summaries are put together
 * and taken apart.
 *
 * Accuracy. Sums of integers are exact. A sum of reals is made of blocks of at
 * most 512 cells in 16 lanes, each cell going through at most 31 + 4 roundings,
 * and blocks are added without loss but for terms of 2^-106. So, as long as
 * nothing overflows and fewer than 2^40 blocks and merges are involved,
 *
 *     |sum + sum_lost - exact|  <=  36 * 2^-53 * (sum of |x|)
 *
 * Squares are all positive, so their relative error is at most (38 + blocks +
 * merges) * 2^-53, and 0 for integers as long as they stay below 2^53.
 *
 * Stored form, 72 bytes, little-endian:
 *
 *      0  flags     8 bytes; bit 0: equal; the others 0
 *      8  count     8
 *     16  nans      8; 0 unless reals
 *     24  not_fill  8
 *     32  min       8; bits of a cell, zero-extended
 *     40  max       8
 *     48  sum      16; integers: two's complement; reals: sum, then sum_lost
 *     64  squares   8; a double
 *
 * All are 0 if count is.
 */
#include "chunk/chunk.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "chunk/summary_kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FLAG_EQUAL = 1 };

/* --- cells --------------------------------------------------------------- */

static uint64_t
sign_bit(pyr_type type)
{
    return (uint64_t)1 << (8 * pyri_type_size(type) - 1);
}

uint64_t
pyri_cell_order(pyr_type type, uint64_t bits)
{
    uint64_t sign = sign_bit(type);
    if (pyri_type_is_float(type))
        return bits & sign ? ~bits & (2 * sign - 1) : bits | sign;
    return pyri_type_is_signed(type) ? bits ^ sign : bits;
}

uint64_t
pyri_cell_of_order(pyr_type type, uint64_t order)
{
    uint64_t sign = sign_bit(type);
    if (pyri_type_is_float(type))
        return order & sign ? order ^ sign : ~order & (2 * sign - 1);
    return pyri_type_is_signed(type) ? order ^ sign : order;
}

static bool
is_nan(pyr_type type, uint64_t bits)
{
    if (type == PYR_F64)
        return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    return type == PYR_F32 && (bits & 0x7fffffff) > 0x7f800000;
}

/* An integer cell as two's complement of 128 bits. */
static pyri_u128
widen(pyr_type type, uint64_t bits)
{
    pyri_u128 sign = pyri_type_is_signed(type) ? sign_bit(type) : 0;
    return ((pyri_u128)bits ^ sign) - sign;
}

static bool
has_numbers(const pyri_summary *s)
{
    return s->count > s->nans;
}

/* --- adding -------------------------------------------------------------- */

void
pyri_summary_init(pyri_summary *s)
{
    memset(s, 0, sizeof *s);
}

/* Cells of 16 and 32 bits gain little from AVX-512. */
static pyri_kernel_fn *
kernel_for(pyr_type type)
{
#ifdef PYRI_HAVE_AVX512
    size_t cell = pyri_type_size(type);
    if ((cell == 1 || cell == 8) && pyri_cpu_has_avx512())
        return pyri_kernels_avx512[type];
#endif
#ifdef PYRI_HAVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return pyri_kernels_avx2[type];
#endif
    return pyri_kernels_baseline[type];
}

void
pyri_summary_add(pyri_summary *s, pyr_type type, uint64_t fill,
                 const void *cells, size_t n)
{
    if (n == 0)
        return;
    pyri_summary more;
    kernel_for(type)(&more, fill, cells, n);
    pyri_summary_merge(s, type, &more);
}

/* Everything but not_fill, of n > 0 cells of one value. */
static void
summarise_same(pyri_summary *s, pyr_type type, uint64_t bits, uint64_t n)
{
    pyri_summary_init(s);
    s->count = n;
    s->min = s->max = bits;
    s->equal = true;
    if (is_nan(type, bits)) {
        s->nans = n;
        return;
    }
    double x = pyri_cell_double(type, bits), squares = x * x * (double)n;
    s->squares = squares;
    if (pyri_type_is_float(type))
        pyri_sum_add(&s->sum, &s->sum_lost, x * (double)n, 0);
    else
        s->sum_int = widen(type, bits) * n;
}

void
pyri_summary_add_same(pyri_summary *s, pyr_type type, uint64_t fill,
                      uint64_t bits, uint64_t n)
{
    if (n == 0)
        return;
    pyri_summary more;
    summarise_same(&more, type, bits, n);
    more.not_fill = bits != fill ? n : 0;
    pyri_summary_merge(s, type, &more);
}

static void
merge_range(pyri_summary *s, pyr_type type, const pyri_summary *other)
{
    if (!has_numbers(other))
        return;
    bool first = !has_numbers(s);
    if (first || pyri_cell_order(type, other->min) < pyri_cell_order(type, s->min))
        s->min = other->min;
    if (first || pyri_cell_order(type, other->max) > pyri_cell_order(type, s->max))
        s->max = other->max;
}

void
pyri_summary_merge(pyri_summary *s, pyr_type type, const pyri_summary *other)
{
    if (other->count == 0)
        return;
    if (s->count == 0) {
        *s = *other;
        return;
    }
    s->equal = s->equal && other->equal && s->min == other->min;
    merge_range(s, type, other);
    s->count += other->count;
    s->nans += other->nans;
    s->not_fill += other->not_fill;
    s->sum_int += other->sum_int;
    if (pyri_type_is_float(type))
        pyri_sum_add(&s->sum, &s->sum_lost, other->sum, other->sum_lost);
    s->squares += other->squares;
}

/* --- taking off ---------------------------------------------------------- */

/*
 * The error of what remains is that of the whole and of the part, so what
 * remains must not be much smaller. sqrt(count * squares), which is at least
 * the sum of |x|, is the measure: if it shrinks by no more than 2^6, the sum
 * is good to 2 * 36 * 2^-53 * 2^6 < 2^-40 of it.
 */
static bool
stays_accurate(const pyri_summary *s, pyr_type type, const pyri_summary *part)
{
    double squares = s->squares - part->squares;
    if (!isfinite(s->squares) || !isfinite(part->squares))
        return false;
    if (!pyri_type_is_float(type))
        return s->squares <= 0x1p53 || squares >= s->squares * 0x1p-12;
    if (!isfinite(s->sum) || !isfinite(part->sum))
        return false;
    /* Squares near zero have lost their digits and measure nothing. */
    if (squares < DBL_MIN * 0x1p53)
        return false;
    double cells = (double)(s->count - part->count) / (double)s->count;
    return cells * (squares / s->squares) >= 0x1p-12;
}

/* The part is neither empty nor all, and the whole is not of one value. */
static bool
can_subtract(const pyri_summary *s, pyr_type type, uint64_t fill,
             const pyri_summary *part, const pyri_summary *rest)
{
    if (s->count - s->nans == part->count - part->nans)
        return false; /* NaNs remain: which bits does the first one have? */
    if (!has_numbers(part))
        return true;
    /* Cells of fill are counted: it is known whether some remain. */
    bool fill_remains =
        s->count - s->not_fill > part->count - part->not_fill;
    bool looked = rest && has_numbers(rest);
    bool min_remains =
        pyri_cell_order(type, part->min) > pyri_cell_order(type, s->min) ||
        (fill_remains && s->min == fill);
    bool max_remains =
        pyri_cell_order(type, part->max) < pyri_cell_order(type, s->max) ||
        (fill_remains && s->max == fill);
    return (looked || (min_remains && max_remains)) &&
           stays_accurate(s, type, part);
}

bool
pyri_summary_subtract(pyri_summary *s, pyr_type type, uint64_t fill,
                      const pyri_summary *part, const pyri_summary *rest)
{
    if (part->count > s->count || part->nans > s->nans ||
        part->not_fill > s->not_fill)
        return false; /* no part of it: one of them was read from a lie */
    if (part->count == 0)
        return true;
    uint64_t count = s->count - part->count;
    uint64_t not_fill = s->not_fill - part->not_fill;
    if (count == 0) {
        pyri_summary_init(s);
    } else if (s->equal) {
        summarise_same(s, type, s->min, count);
        s->not_fill = not_fill;
    } else if (can_subtract(s, type, fill, part, rest)) {
        s->count = count;
        s->nans -= part->nans;
        s->not_fill = not_fill;
        s->sum_int -= part->sum_int;
        if (pyri_type_is_float(type) && has_numbers(part))
            pyri_sum_add(&s->sum, &s->sum_lost, -part->sum, -part->sum_lost);
        s->squares -= part->squares;
        if (rest && has_numbers(part)) {
            s->min = rest->min;
            s->max = rest->max;
        }
        s->equal = s->nans == 0 && s->min == s->max;
    } else {
        return false;
    }
    return true;
}

/* --- comparing ----------------------------------------------------------- */

/*
 * Sums that were put together, taken apart and put together again. One step
 * is good to 2^-40 of sqrt(count * squares) (see stays_accurate); steps add
 * up, so a little more is allowed. Squares of a step are good to 2^-30.
 */
static bool
sums_agree(const pyri_summary *a, const pyri_summary *b)
{
    double x = a->sum + a->sum_lost, y = b->sum + b->sum_lost;
    double size = (double)b->count * b->squares;
    if (!isfinite(x) || !isfinite(y) || !isfinite(size))
        return true; /* it depends on the order what overflows when */
    return (x - y) * (x - y) <= size * 0x1p-64 + DBL_MIN;
}

static bool
squares_agree(const pyri_summary *a, const pyri_summary *b)
{
    if (!isfinite(a->squares) || !isfinite(b->squares))
        return true;
    double off = a->squares - b->squares, most = b->squares * 0x1p-24 + DBL_MIN;
    return off <= most && -off <= most;
}

const char *
pyri_summary_differs(pyr_type type, const pyri_summary *a,
                     const pyri_summary *b)
{
    if (a->count != b->count)
        return "number of cells";
    if (a->nans != b->nans)
        return "number of NaNs";
    if (a->not_fill != b->not_fill)
        return "number of cells that are not fill";
    if (a->equal != b->equal)
        return "whether all cells are equal";
    if ((has_numbers(a) || a->equal) && a->min != b->min)
        return "minimum";
    if ((has_numbers(a) || a->equal) && a->max != b->max)
        return "maximum";
    if (pyri_type_is_float(type) ? !sums_agree(a, b)
                                 : a->sum_int != b->sum_int)
        return "sum";
    return squares_agree(a, b) ? NULL : "sum of squares";
}

/* --- stored form --------------------------------------------------------- */

static void
store_double(uint8_t *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    pyri_store64(out, bits);
}

static double
load_double(const uint8_t *in)
{
    uint64_t bits = pyri_load64(in);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

void
pyri_summary_encode(const pyri_summary *s, pyr_type type,
                    uint8_t out[PYRI_SUMMARY_BYTES])
{
    pyri_store64(out, s->equal ? FLAG_EQUAL : 0);
    pyri_store64(out + 8, s->count);
    pyri_store64(out + 16, s->nans);
    pyri_store64(out + 24, s->not_fill);
    pyri_store64(out + 32, s->min);
    pyri_store64(out + 40, s->max);
    if (pyri_type_is_float(type)) {
        store_double(out + 48, s->sum);
        store_double(out + 56, s->sum_lost);
    } else {
        pyri_store64(out + 48, (uint64_t)s->sum_int);
        pyri_store64(out + 56, (uint64_t)(s->sum_int >> 64));
    }
    store_double(out + 64, s->squares);
}

/* NULL, or what the counts and the range of a decoded summary contradict. */
static const char *
contradiction(const pyri_summary *s, pyr_type type)
{
    uint64_t widest = 2 * sign_bit(type) - 1;
    if (s->nans > s->count || s->not_fill > s->count)
        return "more cells of a kind than cells";
    if (s->nans > 0 && !pyri_type_is_float(type))
        return "NaNs among integers";
    if (s->min > widest || s->max > widest)
        return "a cell wider than its type";
    if (is_nan(type, s->min) != !has_numbers(s) ||
        is_nan(type, s->max) != !has_numbers(s))
        return "NaNs at odds with their count";
    if (pyri_cell_order(type, s->min) > pyri_cell_order(type, s->max))
        return "minimum above maximum";
    if (!has_numbers(s) && s->min != s->max)
        return "two first cells";
    bool one_kind = (s->nans == 0 || s->nans == s->count) &&
                    (s->not_fill == 0 || s->not_fill == s->count);
    if (s->equal && (s->min != s->max || !one_kind))
        return "equal cells that differ";
    if (!s->equal && s->min == s->max && (s->nans == 0 || s->count == 1))
        return "different cells that are equal";
    return NULL;
}

static const char *
contradiction_of_sums(const pyri_summary *s)
{
    if (!(s->squares >= 0) || signbit(s->squares))
        return "negative squares";
    if (!isfinite(s->sum_lost) || (!isfinite(s->sum) && s->sum_lost != 0))
        return "a sum that lost more than it has";
    return NULL;
}

static bool
is_all_zero(const uint8_t *in)
{
    uint8_t any = 0;
    for (int i = 0; i < PYRI_SUMMARY_BYTES; i++)
        any |= in[i];
    return any == 0;
}

int
pyri_summary_decode(pyri_summary *s, pyr_type type,
                    const uint8_t in[PYRI_SUMMARY_BYTES])
{
    uint64_t flags = pyri_load64(in);
    const char *wrong = NULL;
    pyri_summary_init(s);
    if (is_all_zero(in))
        return 0;
    s->equal = flags & FLAG_EQUAL;
    s->count = pyri_load64(in + 8);
    s->nans = pyri_load64(in + 16);
    s->not_fill = pyri_load64(in + 24);
    s->min = pyri_load64(in + 32);
    s->max = pyri_load64(in + 40);
    if (pyri_type_is_float(type)) {
        s->sum = load_double(in + 48);
        s->sum_lost = load_double(in + 56);
    } else {
        s->sum_int = (pyri_u128)pyri_load64(in + 56) << 64 |
                     pyri_load64(in + 48);
    }
    s->squares = load_double(in + 64);
    if (flags & ~(uint64_t)FLAG_EQUAL)
        wrong = "unknown flags";
    else if (s->count == 0)
        wrong = "something known of no cells";
    else if (!(wrong = contradiction(s, type)))
        wrong = contradiction_of_sums(s);
    if (!wrong)
        return 0;
    pyri_summary_init(s);
    return pyri_fail(PYR_ECORRUPT, "summary of cells: %s", wrong);
}

bool
pyri_summary_peek_same(const uint8_t *in, uint64_t *bits, uint64_t *count)
{
    *bits = pyri_load64(in + 32);
    *count = pyri_load64(in + 8);
    return pyri_load64(in) & FLAG_EQUAL;
}
