/*
 * op/op.h - functions sent to the data: expressions over cells, compiled to
 * small bounded programs, and reductions. The door of the layer.
 *
 *   pyri_expr e;
 *   if ((err = pyri_expr_parse("x*1.8 + 32", PYR_F64, 2, &e, NULL, NULL)) < 0)
 *       return err;                           // pyr_errmsg() has a caret
 *   const void *src[] = {cells};              // one per e.program.sources
 *   err = pyri_program_run(&e.program, 2, &box, src, PYR_F64, out);
 *
 * No I/O, no threads, no globals. Parsing allocates a bounded amount and gives
 * it back; everything that a storage node does - decode, run, reduce, merge -
 * allocates nothing but the bins of serve.c (it takes about 160 KiB of stack), and is safe whatever
 * bytes it is given. The language is told in docs/expressions.md.
 */
#ifndef PYRI_OP_OP_H
#define PYRI_OP_OP_H

#include "base/buf.h"
#include "nd/nd.h"

enum {
    PYRI_EXPR_MAX_TEXT = 4096,  /* bytes of an expression */
    PYRI_EXPR_MAX_NODES = 1024, /* operands and operators in it */
    PYRI_EXPR_MAX_DEPTH = 200,  /* parentheses inside parentheses */
    PYRI_OP_CELLS = 512,        /* cells that are worked on at a time */
    PYRI_OP_MAX_REGS = 16,      /* of so many cells each */
    PYRI_OP_MAX_CONSTS = 64,
    PYRI_OP_MAX_SOURCES = 16, /* x, and 15 other snapshots */
    PYRI_OP_MAX_CODE = 512,   /* instructions */
    PYRI_OP_MAX_BINS = 65536,
    PYRI_EXPR_MAX_CALLS = 8, /* of kernels */
    PYRI_CALL_MAX_PARAMS = 16,
    PYRI_CALL_MAX_NAME = 63
};

/* --- programs (program.c, execute.c) ------------------------------------- */

/* What a value is while it is computed: 64 bits in any case. */
typedef enum pyri_kind { PYRI_INT, PYRI_UINT, PYRI_REAL } pyri_kind;

/* Operands: below 16 a register, then as said; see program.c. */
enum { PYRI_ARG_CONST = 0x40, PYRI_ARG_SOURCE = 0x80, PYRI_ARG_NONE = 0xff };

typedef struct pyri_instr {
    uint8_t op, dst, arg[3];
} pyri_instr;

/*
 * A verified program: straight code, no jumps, so that it ends after code_size
 * steps per block. It comes from pyri_expr_parse() or pyri_program_decode() and
 * from nowhere else; running it trusts it.
 */
typedef struct pyri_program {
    pyr_type cell;  /* the type of the cells that it reads */
    pyri_kind kind; /* of its result */
    uint8_t regs, consts, sources;
    uint8_t result; /* operand */
    bool uses_x;    /* src[0] is read; the others always are */
    bool identity;  /* it is just `x` */
    uint16_t axes;  /* bit k: coordinate ik is used */
    uint16_t calls; /* bit s: source s is cells that a kernel makes of x;
                       version[s] is which call of the expression */
    uint16_t code_size;
    uint32_t cost; /* about this many ns for 1000 cells; a rough guess */
    uint64_t version[PYRI_OP_MAX_SOURCES]; /* of sources 1, 2, ...; [0]: 0 */
    uint64_t constant[PYRI_OP_MAX_CONSTS]; /* bits */
    pyri_instr code[PYRI_OP_MAX_CODE];
} pyri_program;

/* Append its bytes to b; ask pyri_buf_check(). The layout is in program.c. Not
 * of a program with calls: kernels have no bytes. */
void pyri_program_encode(const pyri_program *p, pyri_buf *b);
/* Several, into a buffer that is empty; out[i] are the bytes of each in it. */
void pyri_programs_encode(const pyri_program *const *list, int n, pyri_buf *b,
                          pyri_bytes *out);
/*
 * From bytes of any origin. 0, and then it is safe to run, or PYR_ECORRUPT, or
 * PYR_EFORMAT for bytes of a newer kind; then *p is zero.
 */
int pyri_program_decode(const void *bytes, size_t size, pyri_program *p);

/* True if cells that are alike in every source give results that are alike:
 * no coordinate is used. Then a constant chunk is worth one cell's work. */
static inline bool
pyri_program_uniform(const pyri_program *p)
{
    return p->axes == 0;
}

/*
 * Compute the cells of a box. src[s] points to the box's cells in source s,
 * dense and row-major; out gets as many of out_type. Any alignment. src[0] is
 * x, and may be NULL if it is not used. out may be one of the sources if cells
 * are no larger than theirs; else it must not overlap any. An empty box is
 * nothing. Conversion to out_type saturates, NaN becomes 0 in integers.
 *
 * Errors: PYR_EINVAL if the program uses axes that the box lacks, or the box
 * has more cells than memory can.
 */
int pyri_program_run(const pyri_program *p, int ndim, const pyri_box *box,
                     const void *const *src, pyr_type out_type, void *out);

/* --- reductions (partial.c, histogram.c, quantile.c) ---------------------- */

typedef enum pyri_reduce_op {
    PYRI_RED_COUNT,
    PYRI_RED_SUM,
    PYRI_RED_MEAN,
    PYRI_RED_VAR,
    PYRI_RED_STD,
    PYRI_RED_MIN,
    PYRI_RED_MAX,
    PYRI_RED_ARGMIN,
    PYRI_RED_ARGMAX,
    PYRI_RED_ANY,
    PYRI_RED_ALL,
    PYRI_RED_HISTOGRAM,
    PYRI_RED_QUANTILE
} pyri_reduce_op;

typedef struct pyri_reduction {
    pyri_reduce_op op;
    double lo, hi; /* of a histogram */
    uint32_t bins;
    double q; /* of a quantile, 0 to 1 */
} pyri_reduction;

typedef __int128 pyri_i128;

/*
 * What is known of some cells, for every reduction but histograms and
 * quantiles. Zero is "no cells". NaNs are counted and take no other part.
 * Only what the reduction needs is kept up to date.
 */
typedef struct pyri_partial {
    uint64_t count; /* cells that are not NaN */
    uint64_t nans;
    uint64_t truths;      /* cells that are neither 0 nor NaN */
    pyri_i128 sum_int;    /* of integer kinds: exact */
    double sum, sum_lost; /* of reals: the sum, and what it lost by rounding */
    double mean, mean_lost; /* of variances: the mean, likewise */
    double squares;         /* of differences from it */
    int64_t key;            /* best so far of min and max, as an ordered key */
    uint64_t at[PYR_MAX_DIMS]; /* its coordinates, for argmin and argmax */
} pyri_partial;

/* The value of a finished reduction. */
typedef struct pyri_value {
    bool none;      /* there is no value: no cell took part */
    pyri_kind kind; /* which of the next two holds it */
    double real;    /* also the nearest double, if kind is not PYRI_REAL */
    pyri_i128 whole;
    uint64_t at[PYR_MAX_DIMS]; /* argmin, argmax: where; `whole` is not used */
} pyri_value;

void pyri_partial_init(pyri_partial *t);
/*
 * Run the program over a box and add the cells to the partial. The box gives
 * the coordinates for argmin and argmax too.
 */
int pyri_partial_run(pyri_partial *t, const pyri_reduction *r,
                     const pyri_program *p, int ndim, const pyri_box *box,
                     const void *const *src);
/*
 * The same for a box whose cells are alike in every source: src[s] points to
 * one cell. PYR_EINVAL if the program is not uniform.
 */
int pyri_partial_run_same(pyri_partial *t, const pyri_reduction *r,
                          const pyri_program *p, int ndim, const pyri_box *box,
                          const void *const *src);
/* Merging is commutative, and what it gives does not depend on the order but
 * for the rounding of sums, whose bounds stand in partial.c. */
void pyri_partial_merge(pyri_partial *t, const pyri_reduction *r, int ndim,
                        const pyri_partial *other);
void pyri_partial_finish(const pyri_partial *t, const pyri_reduction *r,
                         pyri_kind kind, int ndim, pyri_value *out);
/* True if no more cells can change the value: any and all, once decided. */
bool pyri_partial_decided(const pyri_partial *t, const pyri_reduction *r);

/* A partial as bytes, from and to other machines. */
enum { PYRI_PARTIAL_BYTES = 88 + 8 * PYR_MAX_DIMS };
void pyri_partial_encode(const pyri_partial *t,
                         uint8_t out[PYRI_PARTIAL_BYTES]);
int pyri_partial_decode(pyri_partial *t, const uint8_t in[PYRI_PARTIAL_BYTES]);

/* What a summary of cells tells, in plain numbers. */
typedef struct pyri_known {
    uint64_t count, nans;
    uint64_t not_fill;    /* cells whose bits differ from fill's */
    uint64_t fill;        /* bits of a cell */
    uint64_t min, max;    /* bits of a cell; of no meaning if all are NaN */
    pyri_i128 sum_int;    /* of integer types */
    double sum, sum_lost; /* of reals */
    double squares;       /* sum of squares */
    bool equal;           /* all cells have the same bits; they are min's */
} pyri_known;

/*
 * Add cells of which only a summary is known. False, and nothing is added, if
 * the summary does not tell: the expression must be plain `x`, or the cells
 * alike and the expression uniform and of x alone. Histograms, quantiles and
 * positions (unless the cells are alike) are never told. `tolerance` is the
 * relative error that a variance of reals may have because of it; 0: only if
 * it is exact. `box` holds the cells.
 */
bool pyri_partial_known(pyri_partial *t, const pyri_reduction *r,
                        const pyri_program *p, int ndim, const pyri_box *box,
                        const pyri_known *k, double tolerance);

/*
 * Histograms: `bins` equal parts of [lo, hi]; the last one includes hi. The
 * counts are the caller's memory, bins of them, zero at first; those of two
 * parts are merged by adding. Cells outside go to below and above.
 */
typedef struct pyri_histogram {
    uint64_t below, above, nans;
    uint64_t *bin;
} pyri_histogram;

int pyri_histogram_run(pyri_histogram *h, const pyri_reduction *r,
                       const pyri_program *p, int ndim, const pyri_box *box,
                       const void *const *src);
int pyri_histogram_run_same(pyri_histogram *h, const pyri_reduction *r,
                            const pyri_program *p, int ndim,
                            const pyri_box *box, const void *const *src);
void pyri_histogram_merge(pyri_histogram *h, uint32_t bins,
                          const pyri_histogram *other);

/*
 * Quantiles: exact, by passes over all cells, each of which narrows the range
 * that the value must lie in by the number of bins: four with 65536.
 *
 *   pyri_quantile_init(&q, &reduction, kind, 65536, bins);
 *   while (!q.done) {
 *       for each part: pyri_quantile_run(&q, program, ...);   // or merge
 *       pyri_quantile_next(&q);                // zeroes the bins for more
 *   }
 *   pyri_quantile_finish(&q, &value);
 *
 * A part elsewhere starts from a copy of the struct with bins of its own that
 * are zero, and is merged. If the least and greatest value are known,
 * pyri_quantile_limit() saves passes.
 */
typedef struct pyri_quantile {
    double q;
    pyri_kind kind;
    uint32_t bins;
    bool done, none;
    int64_t lo, hi; /* keys between which the value lies */
    uint64_t count; /* cells that are not NaN, of the first pass */
    uint64_t rank;  /* of the value, from 0 */
    double part;    /* how far on to the next one */
    int64_t value, next;
    /* Of this pass, zero or as said at its beginning: */
    uint64_t below, inside, above, nans;
    int64_t next_above; /* least key above hi; INT64_MAX at first */
    uint64_t *bin;
} pyri_quantile;

void pyri_quantile_init(pyri_quantile *q, const pyri_reduction *r,
                        pyri_kind kind, uint32_t bins, uint64_t *bin);
/* All values lie in [min, max], given as bits of the kind. Before any pass. */
void pyri_quantile_limit(pyri_quantile *q, uint64_t min, uint64_t max);
int pyri_quantile_run(pyri_quantile *q, const pyri_program *p, int ndim,
                      const pyri_box *box, const void *const *src);
int pyri_quantile_run_same(pyri_quantile *q, const pyri_program *p, int ndim,
                           const pyri_box *box, const void *const *src);
void pyri_quantile_merge(pyri_quantile *q, const pyri_quantile *other);
/* The pass is over: narrow the range and begin another, or be done.
 * PYR_EINVAL if the cells were not the same in each pass. */
int pyri_quantile_next(pyri_quantile *q);
void pyri_quantile_finish(const pyri_quantile *q, pyri_value *out);

/*
 * Reductions of cells that are elsewhere (serve.c). One side asks, for one
 * pass of a quantile or once, the other one runs it over its cells, and what it
 * answers is taken into *t, or added to what *h or *q have: only the one that
 * the reduction is about is looked at. Both are safe whatever bytes they get;
 * bins take memory (PYR_ENOMEM).
 */
void pyri_serve_ask(const pyri_reduction *r, const pyri_quantile *q,
                    pyri_buf *out);
int pyri_serve_run(pyri_bytes how, const pyri_program *p, int ndim,
                   const pyri_box *box, const void *const *src, pyri_buf *out);
int pyri_serve_take(const pyri_reduction *r, pyri_bytes answer,
                    pyri_partial *t, pyri_histogram *h, pyri_quantile *q);

/* --- expressions (expr.c) ------------------------------------------------- */

typedef enum pyri_expr_form {
    PYRI_FORM_CELLS, /* a value per cell */
    PYRI_FORM_REDUCE /* one value of all cells */
} pyri_expr_form;

typedef struct pyri_param {
    char key[PYRI_CALL_MAX_NAME + 1];
    pyri_kind kind;
    uint64_t bits; /* of the value, of that kind */
    double real;   /* the value, or the nearest to it */
} pyri_param;

/* name(key=value, ...): a kernel to be found by name. Its cells are a source of
 * the program, beside x and the other snapshots. */
typedef struct pyri_call {
    char name[PYRI_CALL_MAX_NAME + 1];
    int n;
    pyri_param param[PYRI_CALL_MAX_PARAMS];
} pyri_call;

typedef struct pyri_expr {
    pyri_expr_form form;
    pyri_program program;     /* of cells, and of what is reduced */
    pyri_reduction reduction; /* if form is PYRI_FORM_REDUCE */
    int calls; /* those that a source is made by, and maybe some that not */
    pyri_call call[PYRI_EXPR_MAX_CALLS];
} pyri_expr;

/* Where a text is wrong. */
typedef struct pyri_expr_error {
    unsigned column; /* of the byte, from 1; one past the end: at the end */
    char text[160];
} pyri_expr_error;

/*
 * Parse, check and compile a text for cells of a type in so many dimensions.
 * If `canon` is given, the canonical text is appended to it, ended by a zero
 * byte that counts: it means the same, however the user put it, and is its own
 * canonical text.
 *
 * Errors: PYR_EINVAL, whose text shows a caret under the place, and then also
 * *where if it is given; PYR_ENOMEM.
 */
int pyri_expr_parse(const char *text, pyr_type cell, int ndim, pyri_expr *out,
                    pyri_buf *canon, pyri_expr_error *where);

#endif
