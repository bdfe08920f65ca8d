/*
 * Programs as bytes: they come back as they went, hostile ones are refused or
 * do no harm; and both variants of the loops give the same bits.
 */
#include "op/lanes.h"
#include "op/op.h"
#include "op/verify.h"
#include "support/check.h"
#include "support/rng.h"

#include <float.h>
#include <math.h>

enum { CELLS = 1030, GUARD = 64 };

static rng dice;
static pyri_program program;

static uint64_t
pick(uint64_t n)
{
    return rng_below(&dice, n);
}

static void
encode(const char *text, pyr_type type, int ndim, pyri_buf *b)
{
    pyri_expr e;
    OK(pyri_expr_parse(text, type, ndim, &e, NULL, NULL));
    pyri_program_encode(&e.program, b);
    OK(pyri_buf_check(b, "program"));
}

/* Sources are exactly as large as they are said to be, and the output stands
 * between guards; sanitizers see the rest. */
static void
run_and_look_around(const pyri_program *p)
{
    const pyri_box box = {.lo = {3, UINT64_MAX - 600},
                          .hi = {5, UINT64_MAX - 85}};
    size_t width = pyri_type_size(p->cell);
    const void *src[PYRI_OP_MAX_SOURCES] = {NULL};
    uint8_t *cells = (uint8_t *)malloc(CELLS * width);
    uint8_t *out = (uint8_t *)malloc(CELLS * 8 + 2 * GUARD);
    pyr_type type = (pyr_type)pick(10);
    REQUIRE(cells && out);
    for (size_t i = 0; i < CELLS * width; i++)
        cells[i] = (uint8_t)rng_next(&dice);
    memset(out, 0xa5, CELLS * 8 + 2 * GUARD);
    for (int s = p->uses_x ? 0 : 1; s < p->sources; s++)
        src[s] = cells;
    if (p->axes < 4)
        OK(pyri_program_run(p, 2, &box, src, type, out + GUARD));
    else
        FAILS(PYR_EINVAL, pyri_program_run(p, 2, &box, src, type, out + GUARD));
    size_t end = GUARD + CELLS * pyri_type_size(type);
    bool whole = true;
    for (size_t i = 0; i < GUARD; i++)
        whole = whole && out[i] == 0xa5 && out[end + i] == 0xa5;
    CHECK(whole);
    free(cells);
    free(out);
}

static const char *const texts[] = {
    "x * 1.8 + 32",
    "where(x > 3, x@5, i0) + sqrt(x@9)",
    "x",
    "i1 % 7 == x",
    "clip(x ** 2, 1, 1e3) // 3",
    "sin(x) ** cos(x@2) - atan2(i0, i1)",
    "max(x, 3, i1) && !(x < 2 || isnan(x * 0.5))",
    "42",
    "u8(x) << 3 | 1",
    "hypot(x, x@1) % 2.5 + abs(round(x / 3.0))",
    "i64(x) ** u64(x@4) >> 2",
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static void
programs_come_back_as_they_went(void)
{
    dice = rng_of(1);
    for (int t = 0; t < TEXTS; t++)
        for (int type = 0; type < 10; type++) {
            pyri_buf a = {0}, b = {0};
            encode(texts[t], (pyr_type)type, 2, &a);
            OK(pyri_program_decode(a.data, a.size, &program));
            pyri_program_encode(&program, &b);
            REQUIRE(a.size == b.size);
            CHECK(memcmp(a.data, b.data, a.size) == 0);
            run_and_look_around(&program);
            pyri_buf_fini(&a);
            pyri_buf_fini(&b);
        }
}

static void
truncated_and_longer_ones_are_refused(void)
{
    pyri_buf b = {0};
    encode(texts[1], PYR_I32, 2, &b);
    for (size_t n = 0; n < b.size; n++) {
        uint8_t *copy = (uint8_t *)malloc(n ? n : 1);
        REQUIRE(copy);
        memcpy(copy, b.data, n);
        FAILS(PYR_ECORRUPT, pyri_program_decode(copy, n, &program));
        CHECK(program.code_size == 0 && program.sources == 0);
        free(copy);
    }
    pyri_buf_u8(&b, 0);
    FAILS(PYR_ECORRUPT, pyri_program_decode(b.data, b.size, &program));
    b.data[2] = 2;
    FAILS(PYR_EFORMAT, pyri_program_decode(b.data, b.size, &program));
    pyri_buf_fini(&b);
}

static bool
changed_byte_is_refused(const char *text, size_t at, uint8_t to)
{
    pyri_buf b = {0};
    encode(text, PYR_F64, 2, &b);
    REQUIRE(at < b.size && b.data[at] != to);
    b.data[at] = to;
    int err = pyri_program_decode(b.data, b.size, &program);
    pyri_buf_fini(&b);
    return err == PYR_ECORRUPT;
}

/* "x * 2 + i0": head, 1 constant at 12, COORD at 20, I_TO_F at 25, MUL_ADD at
 * 30. */
static void
every_rule_of_the_verifier_holds(void)
{
    const char *t = "x * 2.5 + i0";
    pyri_buf b = {0};
    encode(t, PYR_F64, 2, &b);
    OK(pyri_program_decode(b.data, b.size, &program));
    REQUIRE(b.size == 35 && program.code_size == 3 && program.regs == 1 &&
            program.code[2].op == PYRI_MUL_ADD_F);
    pyri_buf_fini(&b);
    CHECK(changed_byte_is_refused(t, 3, 10));       /* type */
    CHECK(changed_byte_is_refused(t, 3, PYR_I64));  /* x of another class */
    CHECK(changed_byte_is_refused(t, 4, PYRI_INT)); /* result's class */
    CHECK(changed_byte_is_refused(t, 4, 3));
    CHECK(changed_byte_is_refused(t, 5, 0)); /* registers */
    CHECK(changed_byte_is_refused(t, 5, 17));
    CHECK(changed_byte_is_refused(t, 6, 65)); /* constants */
    CHECK(changed_byte_is_refused(t, 7, 0));  /* sources */
    CHECK(changed_byte_is_refused(t, 7, 17));
    CHECK(changed_byte_is_refused(t, 8, 0x40)); /* result */
    CHECK(changed_byte_is_refused(t, 8, 1));
    CHECK(changed_byte_is_refused(t, 9, 1));
    CHECK(changed_byte_is_refused(t, 11, 2));        /* 515 instructions */
    CHECK(changed_byte_is_refused(t, 20, PYRI_OPS)); /* instruction */
    CHECK(changed_byte_is_refused(t, 20, 0xff));
    CHECK(changed_byte_is_refused(t, 21, 1));       /* its register */
    CHECK(changed_byte_is_refused(t, 22, 16));      /* axis */
    CHECK(changed_byte_is_refused(t, 23, 0));       /* operand too many */
    CHECK(changed_byte_is_refused(t, 27, 0x41));    /* constant not there */
    CHECK(changed_byte_is_refused(t, 27, 0x40));    /* no such variant */
    CHECK(changed_byte_is_refused(t, 27, 0x80));    /* class */
    CHECK(changed_byte_is_refused(t, 32, 0x81));    /* source not there */
    CHECK(changed_byte_is_refused(t, 32, 0x20));    /* no operand at all */
    CHECK(changed_byte_is_refused(t, 34, 1));       /* register not there */
    CHECK(changed_byte_is_refused(t, 34, 0xff));    /* operand missing */
    CHECK(changed_byte_is_refused("x@7", 8, 0x80)); /* unused source */
    /* registers that were never written */
    CHECK(changed_byte_is_refused("sqrt(x)", 14, 0));
}

static void
mutated_programs_are_refused_or_harmless(void)
{
    uint64_t rounds = by_scale(3000, 30000, 3000000), ran = 0;
    dice = rng_of(test_seed());
    for (uint64_t i = 0; i < rounds; i++) {
        pyri_buf b = {0};
        encode(texts[pick(TEXTS)], (pyr_type)pick(10), 2, &b);
        for (uint64_t k = 1 + pick(3); k > 0; k--) {
            size_t at = 2 + pick(b.size - 2);
            uint8_t small = (uint8_t)(rng_once_in(&dice, 2) ? pick(20)
                                                            : 0x7e + pick(6));
            b.data[at] = rng_once_in(&dice, 3) ? (uint8_t)rng_next(&dice)
                         : rng_once_in(&dice, 2)
                             ? (uint8_t)(b.data[at] ^ (1 << pick(8)))
                             : small;
        }
        if (pyri_program_decode(b.data, b.size, &program) == 0) {
            run_and_look_around(&program);
            ran++;
        }
        pyri_buf_fini(&b);
    }
    CHECK(ran > rounds / 100); /* or this tests little */
}

static void
random_bytes_are_refused_or_harmless(void)
{
    uint64_t rounds = by_scale(20000, 200000, 5000000);
    dice = rng_of(test_seed() + 1);
    for (uint64_t i = 0; i < rounds; i++) {
        uint8_t bytes[200];
        size_t size = pick(sizeof bytes);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)rng_next(&dice);
        if (size > 12 && !rng_once_in(&dice, 4)) {
            /* A head that could be one, so that the rest is looked at. */
            uint8_t n = (uint8_t)pick((size - 12) / 5 + 1);
            const uint8_t head[] = {'P',
                                    'X',
                                    1,
                                    (uint8_t)pick(10),
                                    (uint8_t)pick(3),
                                    (uint8_t)pick(17),
                                    0,
                                    1,
                                    (uint8_t)pick(3),
                                    0,
                                    n,
                                    0};
            memcpy(bytes, head, sizeof head);
            size = 12 + 5 * (size_t)n;
            for (size_t k = 12; k < size; k += 5) {
                bytes[k] = (uint8_t)pick(PYRI_OPS);
                for (int a = 1; a < 5; a++)
                    bytes[k + (size_t)a] =
                        (uint8_t)(rng_once_in(&dice, 2)   ? pick(3)
                                  : rng_once_in(&dice, 2) ? 0x80
                                                          : 0xff);
            }
        }
        if (pyri_program_decode(bytes, size, &program) == 0)
            run_and_look_around(&program);
    }
}

static void
the_longest_program_runs(void)
{
    pyri_program p = {.cell = PYR_F64,
                      .kind = PYRI_REAL,
                      .regs = 16,
                      .sources = 1,
                      .code_size = PYRI_OP_MAX_CODE};
    for (int i = 0; i < PYRI_OP_MAX_CODE; i++)
        p.code[i] = (pyri_instr){PYRI_ATAN2_F,
                                 (uint8_t)(i % 16),
                                 {i ? (uint8_t)((i - 1) % 16) : PYRI_ARG_SOURCE,
                                  PYRI_ARG_SOURCE, PYRI_ARG_NONE}};
    p.result = (PYRI_OP_MAX_CODE - 1) % 16;
    pyri_buf b = {0};
    pyri_program_encode(&p, &b);
    dice = rng_of(3);
    OK(pyri_program_decode(b.data, b.size, &program));
    CHECK(program.cost > 512 * 10000);
    run_and_look_around(&program);
    pyri_buf_fini(&b);
}

static void
boxes_that_make_no_sense_are_refused(void)
{
    pyri_expr e;
    const pyri_box huge = {.hi = {UINT64_MAX, UINT64_MAX}};
    const pyri_box empty = {.lo = {5, 5}, .hi = {5, 9}};
    double x = 0, out = 7;
    const void *src[] = {&x};
    OK(pyri_expr_parse("x + i1", PYR_F64, 2, &e, NULL, NULL));
    FAILS(PYR_EINVAL,
          pyri_program_run(&e.program, 1, &empty, src, PYR_F64, &out));
    FAILS(PYR_EINVAL,
          pyri_program_run(&e.program, 0, &empty, src, PYR_F64, &out));
    FAILS(PYR_EINVAL,
          pyri_program_run(&e.program, 17, &empty, src, PYR_F64, &out));
    FAILS(PYR_EINVAL,
          pyri_program_run(&e.program, 2, &huge, src, PYR_F64, &out));
    FAILS(PYR_EINVAL,
          pyri_program_run(&e.program, 2, &empty, src, (pyr_type)10, &out));
    OK(pyri_program_run(&e.program, 2, &empty, src, PYR_F64, &out));
    CHECK(out == 7);
}

/* --- both variants -------------------------------------------------------- */

#ifdef PYRI_HAVE_AVX2
static uint64_t
random_word(char class_)
{
    static const double reals[] = {0.0,         -0.0,    1,        -1,
                                   0.5,         NAN,     INFINITY, -INFINITY,
                                   DBL_MIN / 8, DBL_MAX, 1e10,     0x1p63,
                                   -0x1p63,     0x1p64,  2.5,      -3.5};
    static const uint64_t wholes[] = {
        0, 1, 2, 63, 64, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX};
    uint64_t bits = rng_next(&dice);
    if (class_ == 'F') {
        if (rng_once_in(&dice, 2))
            memcpy(&bits, &reals[pick(16)], 8);
        return bits;
    }
    return rng_once_in(&dice, 2) ? wholes[pick(8)] : bits;
}

/* NaNs are NaNs. */
static bool
same(const uint64_t *a, const uint64_t *b, size_t n, char class_)
{
    for (size_t i = 0; i < n; i++) {
        double x, y;
        memcpy(&x, &a[i], 8);
        memcpy(&y, &b[i], 8);
        if (a[i] != b[i] && !(class_ == 'F' && isnan(x) && isnan(y)))
            return false;
    }
    return true;
}

static void
both_variants_of_the_loops_agree(void)
{
    enum { N = 517 };
    static uint64_t in[3][N + 1], base[N], fast[N];
    if (!__builtin_cpu_supports("avx2"))
        return;
    dice = rng_of(test_seed() + 2);
    for (int op = 0; op < PYRI_OPS; op++)
        for (int variant = 0; variant < 8; variant++) {
            pyri_lane_fn *f = pyri_lanes_baseline.op[op][variant];
            CHECK(!f == !pyri_lanes_avx2.op[op][variant]);
            if (!f)
                continue;
            const pyri_opcode_info *info = &pyri_opcodes[op];
            for (int a = 0; info->args[a]; a++)
                for (int i = 0; i < N; i++)
                    in[a][i] = random_word(info->args[a]);
            f(base, in[0], in[1], in[2], N);
            pyri_lanes_avx2.op[op][variant](fast, in[0], in[1], in[2], N);
            if (!same(base, fast, N, info->result))
                CHECK_NOTE("instruction %d, variant %d", op, variant);
        }
}

static void
both_variants_of_the_casts_agree(void)
{
    enum { N = 517 };
    static uint64_t in[N], base[N], fast[N];
    if (!__builtin_cpu_supports("avx2"))
        return;
    dice = rng_of(test_seed() + 3);
    const pyri_lanes *b = &pyri_lanes_baseline, *f = &pyri_lanes_avx2;
    for (int type = 0; type < 10; type++) {
        char class_ = type >= PYR_F32 ? 'F' : 'W';
        for (int i = 0; i < N; i++)
            in[i] = random_word(class_);
        b->load_f[type](base, in, N);
        f->load_f[type](fast, in, N);
        CHECK(same(base, fast, N, 'F'));
        if (class_ == 'W') {
            b->load_w[type](base, in, N);
            f->load_w[type](fast, in, N);
            CHECK(same(base, fast, N, 'W'));
        }
        for (int kind = 0; kind < 3; kind++) {
            for (int i = 0; i < N; i++)
                in[i] = random_word(kind == PYRI_REAL ? 'F' : 'W');
            memset(base, 0, sizeof base);
            memset(fast, 0, sizeof fast);
            b->store[kind][type](base, in, N);
            f->store[kind][type](fast, in, N);
            CHECK(type == PYR_F32 || same(base, fast, N, class_));
        }
    }
}

static void
both_variants_of_the_sums_agree(void)
{
    enum { N = 512 };
    static double v[N];
    if (!__builtin_cpu_supports("avx2"))
        return;
    dice = rng_of(test_seed() + 4);
    const pyri_lanes *b = &pyri_lanes_baseline, *f = &pyri_lanes_avx2;
    for (size_t n = 0; n <= N; n += 1 + n / 7) {
        for (size_t i = 0; i < n; i++)
            v[i] = ((double)pick(1u << 30) - 0x1p29) / 1024;
        double x = b->sum(v, n), y = f->sum(v, n);
        double s = b->squares(v, n, 3), t = f->squares(v, n, 3);
        CHECK(memcmp(&x, &y, 8) == 0 && memcmp(&s, &t, 8) == 0);
        for (int kind = 0; kind < 3; kind++)
            CHECK(b->sum_int(v, n, (pyri_kind)kind) ==
                      f->sum_int(v, n, (pyri_kind)kind) &&
                  b->truths(v, n, (pyri_kind)kind) ==
                      f->truths(v, n, (pyri_kind)kind));
    }
}
#define VARIANTS                                                               \
    , T(both_variants_of_the_loops_agree),                                     \
        T(both_variants_of_the_casts_agree),                                   \
        T(both_variants_of_the_sums_agree)
#else
#define VARIANTS
#endif

TESTS(T(programs_come_back_as_they_went),
      T(truncated_and_longer_ones_are_refused),
      T(every_rule_of_the_verifier_holds),
      T(mutated_programs_are_refused_or_harmless),
      T(random_bytes_are_refused_or_harmless), T(the_longest_program_runs),
      T(boxes_that_make_no_sense_are_refused) VARIANTS)
