/*
 * Cells out of fragments that lie over each other, against painting them one
 * after the other into a plain array.
 */
#include "array/chain.h"
#include "base/checked.h"
#include "support/check.h"
#include "support/rng.h"

enum { CELLS = 16384, LINKS = 12, JOBS = 4, CUT = 50 };

/* One chunk with its fragments, and the chunk as it should be. */
typedef struct world {
    rng r;
    pyri_array array;
    pyri_reader *reader;
    pyri_form form;
    pyri_box chunk;
    pyri_chain chain;
    uint64_t model[CELLS]; /* bits of each cell */
    int kinds[3], masked, clipped, aligned, small;
} world;

static size_t
cell_size(const world *w)
{
    return pyri_type_size(w->array.schema.type);
}

static uint64_t
number_of(const world *w, const uint64_t *cell)
{
    uint64_t n = 0;
    for (int d = 0; d < w->form.ndim; d++)
        n = n * (w->chunk.hi[d] - w->chunk.lo[d]) + cell[d] - w->chunk.lo[d];
    return n;
}

/* The i-th cell of a box, row-major. */
static void
cell_of(const world *w, const pyri_box *box, uint64_t i, uint64_t *cell)
{
    for (int d = w->form.ndim - 1; d >= 0; d--) {
        uint64_t side = box->hi[d] - box->lo[d];
        cell[d] = box->lo[d] + i % side;
        i /= side;
    }
}

static void
pick_box(world *w, const pyri_box *inside, pyri_box *out)
{
    for (int d = 0; d < w->form.ndim; d++) {
        out->lo[d] = rng_from(&w->r, inside->lo[d], inside->hi[d] - 1);
        out->hi[d] = rng_from(&w->r, out->lo[d] + 1, inside->hi[d]);
        if (rng_once_in(&w->r, 3)) {
            out->lo[d] = inside->lo[d];
            out->hi[d] = inside->hi[d];
        }
    }
}

static void
begin(world *w, uint64_t seed)
{
    static const uint64_t sides[] = {0, CELLS, 128, 25, 11};
    uint64_t shape[PYR_MAX_DIMS], side[PYR_MAX_DIMS];
    *w = (world){.r = rng_of(seed)};
    pyri_schema *s = &w->array.schema;
    s->ndim = (int)rng_from(&w->r, 1, 4);
    s->type = (pyr_type)rng_below(&w->r, 10);
    s->fill = pyri_type_size(s->type) == 1 ? 7 : 777;
    for (int d = 0; d < s->ndim; d++) {
        side[d] = sides[s->ndim] - (s->ndim > 1 ? rng_below(&w->r, 4) : 0);
        w->chunk.lo[d] = side[d] * rng_below(&w->r, 3);
        w->chunk.hi[d] = w->chunk.lo[d] + side[d];
        shape[d] = w->chunk.hi[d];
    }
    OK(pyri_form_init(&w->form, s->ndim, shape, side));
    if (rng_once_in(&w->r, 2)) { /* older cells are cut along an axis */
        uint64_t less[PYR_MAX_DIMS];
        int axis = (int)rng_below(&w->r, (uint64_t)s->ndim);
        memcpy(less, shape, sizeof less);
        less[axis] -= rng_below(&w->r, side[axis]);
        OK(pyri_form_change(&w->form, CUT, less, side));
        OK(pyri_form_change(&w->form, CUT + 1, shape, side));
    }
    strcpy(w->array.name, "a");
    w->array.id = 9;
    w->array.style = (pyri_frag_style){.array = 9, .ndim = s->ndim,
                                       .type = s->type, .fill = s->fill};
    OK(pyri_engine_open("mem:", PYR_OPEN_CREATE, NULL, &w->array.engine));
    for (size_t i = 0; i < CELLS; i++)
        w->model[i] = s->fill;
}

static void
end(world *w)
{
    pyri_chain_fini(&w->chain);
    pyri_form_fini(&w->form);
    if (w->reader)
        pyri_engine_end(w->array.engine, w->reader);
    pyri_engine_close(w->array.engine);
    w->array.engine = NULL;
}

/* --- fragments ----------------------------------------------------------- */

/* Cells of a fragment: bits of the i-th cell of its box. */
static uint64_t
value_of(const world *w, uint64_t version, int look, uint64_t i)
{
    uint64_t bits = look == 0   ? version
                    : look == 1 ? version + i / 5
                                : rng_mix(version * CELLS + i);
    return cell_size(w) == 8 ? bits : bits & ((1ull << 8 * cell_size(w)) - 1);
}

static void
paint(world *w, const pyri_link *link, int look, const uint8_t *mask)
{
    const pyri_box *box = &link->frag.box;
    for (uint64_t i = 0; i < pyri_box_cells(w->form.ndim, box); i++) {
        uint64_t cell[PYR_MAX_DIMS];
        bool shown = !mask || (mask[i / 8] >> (i % 8) & 1);
        cell_of(w, box, i, cell);
        for (int d = 0; d < w->form.ndim; d++)
            shown &= cell[d] < link->shown.hi[d];
        if (shown)
            w->model[number_of(w, cell)] =
                value_of(w, link->frag.version, look, i);
    }
}

static void
store(world *w, pyri_packer *p, pyri_frag *f)
{
    if (f->kind == PYRI_FRAG_SAME)
        return;
    pyri_blob_put put = {.iov = p->iov, .niov = p->niov, .size = p->size,
                         .aligned = p->aligned};
    OK(pyri_engine_put_blobs(w->array.engine, &put, 1));
    f->ref[0] = put.ref.a;
    f->ref[1] = put.ref.b;
}

/* Add a fragment over all that are there. The chain stays newest last until
 * turn() is called. */
static void
add_frag(world *w, uint64_t version)
{
    static uint8_t dense[8 * CELLS], mask[CELLS / 8 + 8];
    pyri_frag_style style = w->array.style;
    pyri_packer p = {0};
    pyri_summary s;
    pyri_frag f;
    pyri_box box;
    int look = (int)rng_below(&w->r, 3);
    bool masked = rng_once_in(&w->r, 3);
    uint64_t set = 0;
    pick_box(w, &w->chunk, &box);
    style.codec = (pyr_codec)rng_below(&w->r, 3);
    memset(mask, 0, sizeof mask);
    for (uint64_t i = 0; i < pyri_box_cells(w->form.ndim, &box); i++) {
        if (masked && i && rng_once_in(&w->r, 3))
            continue;
        uint64_t bits = value_of(w, version, look, i);
        mask[i / 8] |= (uint8_t)(1u << (i % 8));
        pyri_cell_store(style.type, dense + set++ * cell_size(w), bits);
    }
    pyri_summary_init(&s);
    pyri_mem src = pyri_mem_dense(style.ndim, cell_size(w), &box, dense);
    OK(pyri_frag_pack(&p, &style, &box, src, masked ? mask : NULL, set, &f,
                      &s));
    f.version = version;
    store(w, &p, &f);
    pyri_packer_fini(&p);
    OK(pyri_chain_add(&w->chain, &w->form, &f));
    const pyri_link *link = &w->chain.links[w->chain.n - 1];
    paint(w, link, look, masked ? mask : NULL);
    w->kinds[f.kind]++;
    w->masked += f.masked;
    w->aligned += f.kind == PYRI_FRAG_PLAIN && pyri_frag_aligned(&f);
    w->small += f.kind == PYRI_FRAG_PLAIN && f.stored > PYRI_BLOCK &&
                !pyri_frag_aligned(&f);
    w->clipped += !pyri_box_contains(w->form.ndim, &link->shown, &box);
}

static void
turn(world *w)
{
    for (int i = 0, k = w->chain.n - 1; i < k; i++, k--) {
        pyri_link was = w->chain.links[i];
        w->chain.links[i] = w->chain.links[k];
        w->chain.links[k] = was;
    }
    OK(pyri_engine_begin(w->array.engine, &w->reader));
}

static void
make(world *w, uint64_t seed)
{
    begin(w, seed);
    int n = (int)rng_below(&w->r, LINKS + 1);
    for (int i = 0; i < n; i++)
        add_frag(w, CUT - 6 + (uint64_t)i);
    turn(w);
}

/* --- fetching ------------------------------------------------------------ */

/* Gives links of its own to a job. */
static void
take_links(const world *w, pyri_fetch *job)
{
    size_t size = (size_t)w->chain.n * sizeof *job->links;
    job->n = w->chain.n;
    REQUIRE((job->links = malloc(size + 1)));
    if (size)
        memcpy(job->links, w->chain.links, size);
}

/* Memory with gaps for a box; returns its size. */
static size_t
pick_memory(world *w, const pyri_box *box, pyri_mem *to)
{
    int64_t step = (int64_t)cell_size(w);
    for (int d = w->form.ndim - 1; d >= 0; d--) {
        if (rng_once_in(&w->r, 3))
            step += (int64_t)cell_size(w);
        to->step[d] = step;
        step *= (int64_t)(box->hi[d] - box->lo[d]);
    }
    return (size_t)step;
}

static void
check_fetched(const world *w, const pyri_fetch *job, size_t size)
{
    size_t cell = cell_size(w), touched = 0;
    for (uint64_t i = 0; i < pyri_box_cells(w->form.ndim, &job->box); i++) {
        uint64_t at[PYR_MAX_DIMS];
        uint8_t *got = job->to.base;
        cell_of(w, &job->box, i, at);
        for (int d = 0; d < w->form.ndim; d++)
            got += (int64_t)(at[d] - job->box.lo[d]) * job->to.step[d];
        REQUIRE(pyri_cell_load(w->array.schema.type, got) ==
                w->model[number_of(w, at)]);
        memset(got, 0xe7, cell);
        touched += cell;
    }
    for (size_t i = 0; i < size; i++) /* gaps were left alone */
        REQUIRE(job->to.base[i] == 0xe7);
    CHECK(touched <= size);
}

static void
fetch_some(world *w, pyri_fetcher *f)
{
    pyri_fetch jobs[JOBS];
    size_t sizes[JOBS], n = (size_t)rng_from(&w->r, 1, JOBS);
    for (size_t i = 0; i < n; i++) {
        jobs[i] = (pyri_fetch){.sum = NULL};
        take_links(w, &jobs[i]);
        pick_box(w, &w->chunk, &jobs[i].box);
        sizes[i] = pick_memory(w, &jobs[i].box, &jobs[i].to);
        REQUIRE((jobs[i].to.base = malloc(sizes[i])));
        memset(jobs[i].to.base, 0xe7, sizes[i]);
    }
    OK(pyri_fetch_run(f, jobs, n));
    for (size_t i = 0; i < n; i++) {
        check_fetched(w, &jobs[i], sizes[i]);
        free(jobs[i].to.base);
        free(jobs[i].links);
    }
}

static void
fetched_cells_are_those_that_were_painted_last(void)
{
    static world w;
    int kinds[3] = {0}, masked = 0, clipped = 0, aligned = 0, small = 0;
    for (uint64_t i = 0; i < 150; i++) {
        make(&w, test_seed() + i);
        pyri_fetcher f = {.array = &w.array, .reader = w.reader};
        for (int k = 0; k < 6; k++)
            fetch_some(&w, &f);
        for (int k = 0; k < 3; k++)
            kinds[k] += w.kinds[k];
        masked += w.masked;
        clipped += w.clipped;
        aligned += w.aligned;
        small += w.small;
        pyri_fetcher_fini(&f);
        end(&w);
    }
    CHECK(kinds[0] > 20 && kinds[1] > 20 && kinds[2] > 20);
    CHECK(masked > 20 && clipped > 20 && aligned > 10 && small > 20);
}

static void
cells_summed_up_where_they_are_are_the_same_cells(void)
{
    static world w;
    for (uint64_t i = 0; i < 150; i++) {
        make(&w, test_seed() + 1000 + i);
        pyri_fetcher f = {.array = &w.array, .reader = w.reader};
        const pyri_schema *s = &w.array.schema;
        pyri_summary got, want;
        pyri_box box;
        pick_box(&w, &w.chunk, &box);
        pyri_summary_init(&got);
        pyri_summary_init(&want);
        for (uint64_t k = 0; k < pyri_box_cells(w.form.ndim, &box); k++) {
            uint64_t at[PYR_MAX_DIMS];
            cell_of(&w, &box, k, at);
            pyri_summary_add_same(&want, s->type, s->fill,
                                  w.model[number_of(&w, at)], 1);
        }
        pyri_fetch job = {.links = w.chain.links, .n = w.chain.n, .box = box,
                          .sum = &got};
        OK(pyri_fetch_run(&f, &job, 1));
        CHECK(got.count == want.count && got.nans == want.nans);
        CHECK(got.not_fill == want.not_fill && got.sum_int == want.sum_int);
        if (got.count > got.nans)
            CHECK(got.min == want.min && got.max == want.max);
        pyri_fetcher_fini(&f);
        end(&w);
    }
}

/* The second time the fetcher remembers nothing that it should not. */
static void
boxes_in_any_order_and_number_do_not_disturb_each_other(void)
{
    static world w;
    for (uint64_t i = 0; i < 10; i++) {
        make(&w, test_seed() + 2000 + i);
        pyri_fetcher f = {.array = &w.array, .reader = w.reader};
        for (int k = 0; k < 50; k++)
            fetch_some(&w, &f);
        pyri_fetcher_fini(&f);
        end(&w);
    }
}

/* --- damage -------------------------------------------------------------- */

/* A world with just one fragment over the whole chunk, of any kind but same. */
static void
make_one(world *w, uint64_t seed)
{
    do {
        if (w->array.engine)
            end(w);
        begin(w, seed++);
        add_frag(w, CUT + 5);
        turn(w);
    } while (w->chain.links[0].frag.kind == PYRI_FRAG_SAME ||
             !pyri_box_equal(w->form.ndim, &w->chain.links[0].frag.box,
                             &w->chunk));
}

static int
fetch_all(world *w)
{
    static uint8_t cells[8 * CELLS];
    pyri_fetcher f = {.array = &w->array, .reader = w->reader};
    pyri_fetch job = {.links = w->chain.links, .n = w->chain.n,
                      .box = w->chunk};
    job.to = pyri_mem_dense(w->form.ndim, cell_size(w), &w->chunk, cells);
    int err = pyri_fetch_run(&f, &job, 1);
    pyri_fetcher_fini(&f);
    return err;
}

static void
a_fragment_with_the_wrong_checksum_or_size_is_refused(void)
{
    static world w;
    for (uint64_t i = 0; i < 20; i++) {
        make_one(&w, 100 * i);
        pyri_frag *f = &w.chain.links[0].frag;
        f->check ^= 1; /* first: no engine has seen it good */
        FAILS(PYR_ECORRUPT, fetch_all(&w));
        f->check ^= 1;
        OK(fetch_all(&w));
        f->stored -= 1;
        FAILS(PYR_ECORRUPT, fetch_all(&w));
        f->stored += 2; /* more than there is */
        FAILS(PYR_ECORRUPT, fetch_all(&w));
        end(&w);
    }
}

TESTS(T(fetched_cells_are_those_that_were_painted_last),
      T(cells_summed_up_where_they_are_are_the_same_cells),
      T(boxes_in_any_order_and_number_do_not_disturb_each_other),
      T(a_fragment_with_the_wrong_checksum_or_size_is_refused))
