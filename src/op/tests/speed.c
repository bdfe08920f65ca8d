/*
 * How fast programs run over cells in memory, beside loops written by hand for
 * the same expression and compiled alike. No test: built with -Dbench=true.
 *
 *   op_speed [MEGACELLS]
 *
 * Prints the best of some rounds, taken in turns, in ns of CPU per cell.
 */
#include "op/op.h"

#include <pyramid/error.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double
cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

typedef void hand_fn(void *d, const void *s, size_t n);

/* Also for AVX2, as the compiler likes it. */
#if defined(__x86_64__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

#define HAND(name, T, value)                                                  \
    CLONES static void name(void *pd, const void *ps, size_t n)               \
    {                                                                         \
        T *restrict d = (T *)pd;                                              \
        const T *restrict s = (const T *)ps;                                  \
        for (size_t i = 0; i < n; i++) {                                      \
            T x = s[i];                                                       \
            d[i] = (T)(value);                                                \
        }                                                                     \
    }

HAND(celsius, double, x * 1.8 + 32)
HAND(celsius_f32, float, (double)x * 1.8 + 32)
HAND(ten, double,
     ((x - 3) * 0.5 + x * x) / (x * 2 + 1000) > 0.1
         ? (x + 1) * 0.25
         : x - 7)
HAND(horner, double, (((x * 0.1 + 0.2) * x + 0.3) * x + 0.4) * x + 0.5)
HAND(threshold_u16, uint16_t, x > 1000 ? 65535 : 0)
HAND(scale_u8, uint8_t, (int64_t)x * 2 + 1 > 255 ? 255 : x * 2 + 1)
HAND(scale_u16, uint16_t,
     (double)x * 1.8 + 32 > 65535 ? 65535 : (double)x * 1.8 + 32)
HAND(dark_i16, int16_t, x - 100 < -32768 ? -32768 : x - 100)
HAND(twice_i32, int32_t,
     (int64_t)x * 2 > INT32_MAX   ? INT32_MAX
     : (int64_t)x * 2 < INT32_MIN ? INT32_MIN
                                  : (int64_t)x * 2)
HAND(root, double, sqrt(fabs(x)))
HAND(grow, double, exp(x * 0.001))

static const struct {
    const char *text;
    pyr_type type;
    hand_fn *hand;
} cases[] = {
    {"x*1.8 + 32", PYR_F64, celsius},
    {"x*1.8 + 32", PYR_F32, celsius_f32},
    {"where(((x-3)*0.5 + x*x) / (x*2+1000) > 0.1, (x+1)*0.25, x-7)", PYR_F64,
     ten},
    {"(((x*0.1+0.2)*x+0.3)*x+0.4)*x+0.5", PYR_F64, horner},
    {"where(x > 1000, 65535, 0)", PYR_U16, threshold_u16},
    {"x*2 + 1", PYR_U8, scale_u8},
    {"x*1.8 + 32", PYR_U16, scale_u16},
    {"x - 100", PYR_I16, dark_i16},
    {"x * 2", PYR_I32, twice_i32},
    {"sqrt(abs(x))", PYR_F64, root},
    {"exp(x*0.001)", PYR_F64, grow},
};

static void
measure(size_t which, size_t n, size_t times, void *d, void *s)
{
    pyri_expr e;
    const void *src[] = {s};
    const pyri_box box = {.hi = {n}};
    pyr_type type = cases[which].type;
    double hand = INFINITY, ours = INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (type == PYR_F64)
            ((double *)s)[i] = (double)(i * 2654435761u % 1000);
        else if (type == PYR_F32)
            ((float *)s)[i] = (float)(i * 2654435761u % 1000);
        else
            ((uint8_t *)s)[i] = (uint8_t)(i * 2654435761u >> 7);
    }
    if (pyri_expr_parse(cases[which].text, type, 1, &e, NULL, NULL) < 0)
        exit((puts(pyr_errmsg()), 1));
    for (int round = 0; round < 7; round++) {
        double t = cpu_ns();
        for (size_t i = 0; i < times; i++)
            cases[which].hand(d, s, n);
        double now = cpu_ns();
        hand = fmin(hand, now - t);
        t = cpu_ns();
        for (size_t i = 0; i < times; i++)
            pyri_program_run(&e.program, 1, &box, src, type, d);
        ours = fmin(ours, cpu_ns() - t);
    }
    double cells = (double)n * (double)times;
    printf("%-4s %8zu cells  hand %6.3f  program %6.3f  ratio %.2f  %s\n",
           pyri_type_name(type), n, hand / cells, ours / cells, hand / ours,
           cases[which].text);
}

int
main(int argc, char **argv)
{
    size_t large = (argc > 1 ? (size_t)atoi(argv[1]) : 16) << 20;
    const size_t sizes[] = {8192, 1 << 17, large}; /* 64 KiB, 1 MiB of f64 */
    void *d = malloc(8 * large), *s = malloc(8 * large);
    if (!d || !s)
        return 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 3; k++)
            measure(i, sizes[k], large / sizes[k], d, s);
    free(d);
    free(s);
    return 0;
}
