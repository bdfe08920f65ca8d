/*
 * nd/copy.c - copies between strided memories.
 *
 * Axes that are contiguous on both sides are joined first; what remains is a
 * nest of outer axes around runs of bytes, or, where even the innermost axis
 * has gaps, around a loop over single cells.
 */
#include "nd/nd.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum {
    LINE = 64,
    MIN_STREAM = 4 * LINE,
    MIN_FETCH = 4 * LINE,
    LONG_ROW = 16 << 10,
    AHEAD = 4 << 10 /* bytes */
};

pyri_mem
pyri_mem_dense(int n, size_t cell, const pyri_box *box, void *base)
{
    pyri_mem m = {.base = base};
    int64_t step = (int64_t)cell;
    for (int d = n - 1; d >= 0; d--) {
        m.step[d] = step;
        step *= (int64_t)(box->hi[d] - box->lo[d]);
    }
    return m;
}

pyri_mem
pyri_mem_move(int n, pyri_mem m, const uint64_t *from, const uint64_t *to)
{
    int64_t by = 0;
    for (int d = 0; d < n; d++)
        by += (int64_t)(to[d] - from[d]) * m.step[d];
    if (by) /* memory that is not there stays where it is */
        m.base += by;
    return m;
}

/* A nest of loops over two memories, innermost axis last. */
typedef struct nest {
    int n;
    bool past;           /* the caches */
    pyri_prefetch *next; /* rows to fetch meanwhile, or NULL */
    uint64_t extent[PYR_MAX_DIMS];
    int64_t dst[PYR_MAX_DIMS], src[PYR_MAX_DIMS];
} nest;

/* Drop axes of extent 1 and join neighbours that are contiguous in both. */
static bool
join(int n, const uint64_t *extent, const int64_t *dst, const int64_t *src,
     nest *out)
{
    out->n = 0;
    out->past = false;
    out->next = NULL;
    for (int d = 0; d < n; d++) {
        if (extent[d] == 0)
            return false;
        if (extent[d] == 1)
            continue;
        int last = out->n - 1;
        if (last >= 0 && out->dst[last] == dst[d] * (int64_t)extent[d] &&
            out->src[last] == src[d] * (int64_t)extent[d]) {
            out->extent[last] *= extent[d];
            out->dst[last] = dst[d];
            out->src[last] = src[d];
            continue;
        }
        out->extent[out->n] = extent[d];
        out->dst[out->n] = dst[d];
        out->src[out->n++] = src[d];
    }
    return true;
}

#define COPY_CELLS(type)                                                       \
    do {                                                                       \
        for (uint64_t i = 0; i < count; i++) {                                 \
            type v;                                                            \
            memcpy(&v, src + (int64_t)i * ss, sizeof v);                       \
            memcpy(dst + (int64_t)i * ds, &v, sizeof v);                       \
        }                                                                      \
    } while (0)

static void
copy_cells(size_t cell, uint64_t count, uint8_t *dst, int64_t ds,
           const uint8_t *src, int64_t ss)
{
    switch (cell) {
    case 1: COPY_CELLS(uint8_t); break;
    case 2: COPY_CELLS(uint16_t); break;
    case 4: COPY_CELLS(uint32_t); break;
    default: COPY_CELLS(uint64_t); break;
    }
}

/*
 * Lines that are written whole need not be read first, if the processor is told
 * so: the copy then takes little more than half the time. Two lines at a time,
 * all loads first, did best; with registers of 16 bytes it hardly pays.
 */
#ifdef __x86_64__
__attribute__((target("avx"))) static void
stream(uint8_t *dst, const uint8_t *src, size_t size)
{
    size_t head = -(uintptr_t)dst % LINE;
    memcpy(dst, src, head);
    for (dst += head, src += head, size -= head; size >= 2 * LINE;
         dst += 2 * LINE, src += 2 * LINE, size -= 2 * LINE) {
        const __m256i_u *from = (const __m256i_u *)(const void *)src;
        __m256i *to = (__m256i *)(void *)dst;
        __m256i a = from[0], b = from[1], c = from[2], d = from[3];
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
        _mm256_stream_si256(to + 2, c);
        _mm256_stream_si256(to + 3, d);
    }
    memcpy(dst, src, size);
}

static bool
can_stream(void)
{
    return __builtin_cpu_supports("avx");
}

/* Such writes are not ordered among others. */
static void
end_stream(void)
{
    _mm_sfence();
}
#else
#define stream memcpy
#define can_stream() false
#define end_stream() (void)0
#endif

static void
copy_run(const nest *s, uint8_t *dst, const uint8_t *src, size_t size)
{
    if (s->past && size >= MIN_STREAM)
        stream(dst, src, size);
    else
        memcpy(dst, src, size);
}

/* How many rows of a source to be ahead of the copy: the processor does not
 * foresee where the next one is, unless all are in one piece. */
static uint64_t
rows_ahead(size_t run, int64_t step)
{
    bool foreseen = run < MIN_FETCH || run >= LONG_ROW || step == (int64_t)run;
    return foreseen ? UINT64_MAX : AHEAD / run + 1;
}

static void
fetch(const uint8_t *row, size_t size)
{
    for (size_t k = 0; k < size; k += LINE)
        __builtin_prefetch(row + k, 0, 2);
}

static void
copy_nest(const nest *s, int axis, size_t cell, uint8_t *dst,
          const uint8_t *src)
{
    uint64_t count = s->extent[axis];
    int64_t ds = s->dst[axis], ss = s->src[axis];
    if (axis == s->n - 1) {
        if (ds == (int64_t)cell && ss == (int64_t)cell)
            copy_run(s, dst, src, count * cell);
        else
            copy_cells(cell, count, dst, ds, src, ss);
        return;
    }
    if (axis == s->n - 2 && s->dst[axis + 1] == (int64_t)cell &&
        s->src[axis + 1] == (int64_t)cell) {
        size_t run = s->extent[axis + 1] * cell;
        uint64_t ahead = rows_ahead(run, ss);
        for (uint64_t i = 0; i < count; i++, dst += ds, src += ss) {
            if (ahead < count - i)
                fetch(src + (int64_t)ahead * ss, run);
            copy_run(s, dst, src, run);
            if (s->next)
                pyri_prefetch_more(s->next, run);
        }
        return;
    }
    for (uint64_t i = 0; i < count; i++, dst += ds, src += ss)
        copy_nest(s, axis + 1, cell, dst, src);
}

void
pyri_copy(int n, size_t cell, const uint64_t *extent, pyri_mem dst,
          pyri_mem src)
{
    pyri_copy_before(n, cell, extent, dst, src, NULL);
}

void
pyri_copy_before(int n, size_t cell, const uint64_t *extent, pyri_mem dst,
                 pyri_mem src, pyri_prefetch *next)
{
    nest s;
    if (!join(n, extent, dst.step, src.step, &s))
        return;
    s.next = next && next->left ? next : NULL;
    if (s.n == 0)
        memcpy(dst.base, src.base, cell);
    else
        copy_nest(&s, 0, cell, dst.base, src.base);
}

void
pyri_copy_past(int n, size_t cell, const uint64_t *extent, pyri_mem dst,
               pyri_mem src)
{
    nest s;
    if (!join(n, extent, dst.step, src.step, &s))
        return;
    s.past = can_stream();
    if (s.n == 0)
        memcpy(dst.base, src.base, cell);
    else
        copy_nest(&s, 0, cell, dst.base, src.base);
    end_stream();
}

static void
set_cells(size_t cell, uint64_t count, uint8_t *dst, int64_t step,
          uint64_t bits)
{
    uint8_t one[8];
    bool same = true;
    uint8_t low = (uint8_t)bits;
    for (size_t i = 0; i < cell; i++) {
        one[i] = (uint8_t)(cell == 1 ? bits : 0);
        same &= (uint8_t)(bits >> (8 * i)) == low;
    }
    uint16_t v16 = (uint16_t)bits;
    uint32_t v32 = (uint32_t)bits;
    if (cell == 2)
        memcpy(one, &v16, 2);
    else if (cell == 4)
        memcpy(one, &v32, 4);
    else if (cell == 8)
        memcpy(one, &bits, 8);
    if (same && step == (int64_t)cell)
        memset(dst, low, count * cell);
    else
        copy_cells(cell, count, dst, step, one, 0);
}

static void
set_nest(const nest *s, int axis, size_t cell, uint8_t *dst, uint64_t bits)
{
    if (axis == s->n - 1) {
        set_cells(cell, s->extent[axis], dst, s->dst[axis], bits);
        return;
    }
    for (uint64_t i = 0; i < s->extent[axis]; i++, dst += s->dst[axis])
        set_nest(s, axis + 1, cell, dst, bits);
}

void
pyri_set(int n, size_t cell, const uint64_t *extent, pyri_mem dst,
         uint64_t bits)
{
    nest s;
    if (!join(n, extent, dst.step, dst.step, &s))
        return;
    if (s.n == 0)
        set_cells(cell, 1, dst.base, (int64_t)cell, bits);
    else
        set_nest(&s, 0, cell, dst.base, bits);
}

void
pyri_rows_of(int n, size_t cell, const uint64_t *extent, const int64_t *step,
             pyri_rows *out)
{
    nest s;
    *out = (pyri_rows){.run = cell, .pieces = 1};
    if (!join(n, extent, step, step, &s)) {
        out->pieces = 0;
        return;
    }
    out->outer = s.n;
    if (s.n > 0 && s.dst[s.n - 1] == (int64_t)cell) {
        out->outer--;
        out->run = cell * s.extent[s.n - 1];
    }
    for (int d = 0; d < out->outer; d++) {
        out->extent[d] = s.extent[d];
        out->step[d] = s.dst[d];
        out->pieces *= s.extent[d];
    }
}
