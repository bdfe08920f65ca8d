/*
 * array/verify_chunk.c - leaves: are the fragments there, are they what the
 * leaf says, and is its summary that of the cells?
 *
 * Leaves are gathered and shared out among threads, each with a reader of its
 * own. Such a reader began later than the walk: what has gone meanwhile it does
 * not see. So threads only raise suspicion; a leaf under suspicion is looked at
 * again through the reader of the walk, and what that finds is reported.
 *
 * They take turns in the order of what is read, not in that of the walk, and
 * each reads before the next one does: so files are read from one end to the
 * other, which the system notices, and the device is at work while cells are
 * looked at.
 */
#include "array/verifier.h"

#include "base/checked.h"
#include "base/pool.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH_LEAVES = 8192,
    MOST_COPIED = 64 << 20,
    BATCH_BYTES = 256 << 20, /* that are read before progress is told */
    LARGE_BYTES = 64 << 10   /* of a leaf; worth to be read in order */
};

/* One thread at work; with `loud`, what it finds is reported. */
typedef struct lane {
    pyri_verifier *v;
    pyri_reader *reader;
    bool loud;
    pthread_mutex_t *reading; /* held until it has read, or NULL */
    pyri_chain chain;
    pyri_buf blob, room;
    pyri_fetcher fetcher;
} lane;

/* --- what is wrong ------------------------------------------------------- */

static int
found(lane *l, pyri_leaf_job *job, const pyri_box *box)
{
    char what[1024];
    job->suspect = true;
    if (!l->loud)
        return 0;
    strncpy(what, pyr_errmsg(), sizeof what - 1);
    what[sizeof what - 1] = 0;
    return pyri_verify_harm_in(l->v, job->view, box, what);
}

/* Go on after harm, not after other failures. */
static int
after(lane *l, pyri_leaf_job *job, const pyri_box *box, int err)
{
    return pyri_is_harm(err) ? found(l, job, box) : err;
}

/* --- turns --------------------------------------------------------------- */

static int
by_place(const void *a, const void *b)
{
    const pyri_leaf_turn *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->place[i] != y->place[i])
            return x->place[i] < y->place[i] ? -1 : 1;
    return 0;
}

static int
begin_turns(pyri_verifier *v)
{
    if (!pyri_room(&v->turns, &v->turn_room, v->njobs, sizeof *v->turns))
        return pyri_fail_nomem("a list of chunks");
    for (size_t i = 0; i < v->njobs; i++) {
        const pyri_leaf_job *job = &v->jobs[i];
        v->turns[i] = (pyri_leaf_turn){{job->place[0], job->place[1]}, i};
    }
    if (v->deep && v->njobs > 1)
        qsort(v->turns, v->njobs, sizeof *v->turns, by_place);
    v->in_order = v->deep && v->job_bytes / LARGE_BYTES >= v->njobs;
    atomic_store(&v->next_turn, 0);
    pthread_mutex_init(&v->turn_lock, NULL);
    for (int i = 0; i < PYRI_READ_LOCKS; i++)
        pthread_mutex_init(&v->read_locks[i], NULL);
    return 0;
}

static void
end_turns(pyri_verifier *v)
{
    for (int i = 0; i < PYRI_READ_LOCKS; i++)
        pthread_mutex_destroy(&v->read_locks[i]);
    pthread_mutex_destroy(&v->turn_lock);
}

/* Who takes a turn reads its first blob before anyone else reads of that
 * segment: then the system sees it read from one end to the other, and reads
 * ahead. The rest is done while others read. Where blobs are small that is not
 * worth the locks. */
static bool
take_turn(lane *l, size_t *turn)
{
    pyri_verifier *v = l->v;
    if (!v->in_order) {
        *turn = atomic_fetch_add(&v->next_turn, 1);
        return *turn < v->njobs;
    }
    pthread_mutex_lock(&v->turn_lock);
    *turn = atomic_fetch_add(&v->next_turn, 1);
    if (*turn < v->njobs && v->jobs[v->turns[*turn].job].placed) {
        l->reading = &v->read_locks[v->turns[*turn].place[0] % PYRI_READ_LOCKS];
        pthread_mutex_lock(l->reading);
    }
    pthread_mutex_unlock(&v->turn_lock);
    return *turn < v->njobs;
}

static void
let_others_read(lane *l)
{
    if (l->reading)
        pthread_mutex_unlock(l->reading);
    l->reading = NULL;
}

/* --- fragments ----------------------------------------------------------- */

/* All of a blob. */
static int
get_whole(lane *l, const pyri_frag *f, const uint8_t **head,
          const uint8_t **payload)
{
    pyri_blob_get get = {.ref = {f->ref[0], f->ref[1]},
                         .size = pyri_frag_blob_size(f),
                         .cold = true};
    pyri_buf_reset(&l->blob);
    if (get.size <= MOST_COPIED) /* it may be a lie */
        get.room = pyri_buf_extend(&l->blob, (size_t)get.size);
    int err = pyri_buf_check(&l->blob, "a fragment");
    if (err == 0)
        err = pyri_engine_get_blobs(l->v->e, l->reader, &get, 1);
    let_others_read(l);
    if (err < 0)
        return err;
    *head = get.data;
    *payload = get.data + pyri_frag_head_size(f);
    return 0;
}

/* Is it what the leaf says it is, and is its last byte there? */
static int
check_ends(lane *l, const pyri_frag *f)
{
    pyri_ref ref = {f->ref[0], f->ref[1]};
    uint64_t size = pyri_frag_blob_size(f);
    pyri_blob_get gets[2] = {{.ref = ref, .size = pyri_frag_head_size(f)},
                             {.ref = ref, .offset = size - 1, .size = 1}};
    int err = pyri_engine_get_blobs(l->v->e, l->reader, gets, 2);
    return err < 0 ? err : pyri_frag_check_head(f, gets[0].data);
}

static int
check_frag(lane *l, const pyri_leaf_job *job, const pyri_frag *f,
           pyri_summary *sum)
{
    const pyri_array *a = job->view->kin->array;
    size_t cell = pyri_type_size(a->schema.type);
    const uint8_t *head, *payload;
    if (f->version > job->node.label)
        return pyri_fail(PYR_ECORRUPT, "a fragment is newer than its leaf");
    if (f->kind == PYRI_FRAG_SAME)
        return pyri_frag_check_same(f, a->schema.ndim);
    if (f->kind == PYRI_FRAG_PLAIN && !f->masked &&
        f->stored != pyri_box_cells(a->schema.ndim, &f->box) * cell)
        return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
    if (!l->v->deep)
        return check_ends(l, f);
    int err = get_whole(l, f, &head, &payload);
    return err < 0 ? err
                   : pyri_frag_check(f, &a->style, head, payload, &l->room,
                                     sum);
}

/* --- cells and summary --------------------------------------------------- */

/* `wrong`: what was found to be wrong already, or NULL. */
static int
compare(lane *l, pyri_leaf_job *job, const pyri_box *shown,
        const pyri_summary *cells, const char *wrong)
{
    const pyri_view *view = job->view;
    const pyri_tree *t = &view->snap.tree;
    pyri_about about;
    pyri_box domain;
    char text[128];
    int err = pyri_node_about(&job->node, t->type, &about);
    pyri_grid_domain(t->grid, 0, job->pos, &domain);
    pyri_summary now = about.summary;
    if (err < 0 || !about.known)
        return err;
    if (about.label != view->snap.label &&
        !pyri_summary_now(t->form, t->type, t->fill, about.label, &domain,
                          &now))
        return 0; /* of cells that are not all shown any more */
    const char *what = pyri_summary_differs(t->type, &now, cells);
    if (!what && now.count == about.summary.count)
        what = wrong; /* regions are of the cells that were there then */
    if (!what)
        return 0;
    if (l->loud && l->v->repairing && about.label == view->snap.label) {
        uint8_t key[PYRI_MAX_KEY];
        size_t size = pyri_node_key(
            pyri_lineage_owner(t->lineage, about.label), about.label, 0,
            t->grid->ndim, job->pos, key);
        return pyri_verify_amend(l->v, (pyri_bytes){key, size}, &job->node,
                                 t->type, -1, cells);
    }
    strcpy(text, "the summary is not that of the cells: ");
    strncat(text, what, 60);
    pyri_fail(PYR_ECORRUPT, "%s", text);
    return found(l, job, shown);
}

static int
sum_box(lane *l, const pyri_box *box, pyri_summary *sum)
{
    pyri_fetch fetch = {
        .links = l->chain.links, .n = l->chain.n, .box = *box, .sum = sum};
    pyri_summary_init(sum);
    return pyri_fetch_run(&l->fetcher, &fetch, 1);
}

/* Region by region; *wrong tells what the leaf says of one that is not so. */
static int
sum_regions(lane *l, const pyri_leaf_job *job, const pyri_box *shown,
            const pyri_regions *r, pyri_summary *sum, const char **wrong)
{
    const pyri_tree *t = &job->view->snap.tree;
    pyri_box domain, region, part;
    pyri_summary cells;
    int err = 0;
    pyri_grid_domain(t->grid, 0, job->pos, &domain);
    for (int i = 0; i < r->n && err == 0; i++) {
        pyri_region_box(t->grid->ndim, &domain, i, &region);
        pyri_summary_init(&cells);
        if (pyri_box_intersect(t->grid->ndim, &region, shown, &part))
            err = sum_box(l, &part, &cells);
        if (!*wrong && err == 0)
            *wrong = pyri_region_differs(r, i, t->type, &cells);
        pyri_summary_merge(sum, t->type, &cells);
    }
    return err;
}

/* Sum up the chunk as the snapshot shows it, from all its fragments. */
static int
sum_chunk(lane *l, const pyri_leaf_job *job, const pyri_box *shown,
          const pyri_regions *r, pyri_summary *sum, const char **wrong)
{
    pyri_tree t = job->view->snap.tree;
    t.reader = l->reader;
    l->fetcher.array = job->view->kin->array;
    l->fetcher.reader = l->reader;
    pyri_chain_reset(&l->chain);
    pyri_summary_init(sum);
    int err = pyri_chain_load(&l->chain, &t, job->pos, &job->node, NULL, 0);
    if (err < 0)
        return err;
    return r->n ? sum_regions(l, job, shown, r, sum, wrong)
                : sum_box(l, shown, sum);
}

/* Are the cells of this fragment, and no others, what is shown? */
static bool
is_all(const pyri_leaf_job *job, const pyri_frag *f, const pyri_box *shown)
{
    return !f->masked && f->kind != PYRI_FRAG_SAME &&
           pyri_box_equal(job->view->snap.grid.ndim, &f->box, shown);
}

static bool
is_fresh(const pyri_leaf_job *job, int i)
{
    return i >= 64 || job->fresh >> i & 1;
}

/* What of a fragment to name: what the snapshot shows of it, if it does. */
static pyri_box
shown_of(const pyri_leaf_job *job, const pyri_frag *f)
{
    const pyri_snapshot *s = &job->view->snap;
    pyri_box clip = {.lo = {0}}, box;
    pyri_form_clip(&s->record.form, f->version, clip.hi);
    return pyri_box_intersect(s->grid.ndim, &f->box, &clip, &box) ? box
                                                                  : f->box;
}

static int
check_leaf(lane *l, pyri_leaf_job *job)
{
    const pyri_grid *g = &job->view->snap.grid;
    pyri_box domain, shown, named;
    pyri_leaf_walk w;
    pyri_summary sum;
    bool some = pyri_grid_shown(g, 0, job->pos, &shown), summed = false;
    pyri_grid_domain(g, 0, job->pos, &domain);
    pyri_summary_init(&sum);
    int err = pyri_leaf_begin(&job->node, g->ndim, &domain, &w);
    for (int i = 0; err == 0 && w.left; i++) {
        pyri_frag f;
        if ((err = pyri_leaf_next(&w, &f)) < 0)
            break;
        if (!is_fresh(job, i))
            continue;
        bool all = i == 0 && some && is_all(job, &f, &shown);
        int wrong = check_frag(l, job, &f, all ? &sum : NULL);
        summed |= all;
        named = shown_of(job, &f);
        if (wrong < 0 && (err = after(l, job, &named, wrong)) != 0)
            return err;
    }
    if (err < 0)
        return after(l, job, some ? &shown : NULL, err);
    if (!l->v->deep || !some || job->suspect || l->v->forgotten)
        return 0;
    pyri_about about;
    pyri_regions regions = {0};
    const char *odd = NULL;
    pyr_type type = job->view->snap.tree.type;
    err = pyri_node_about(&job->node, type, &about);
    if (err == 0 && about.known)
        err = pyri_leaf_regions(&job->node, type, g->ndim, &domain, &regions);
    if (err == 0 && about.known && (!summed || regions.n))
        err = sum_chunk(l, job, &shown, &regions, &sum, &odd);
    if (err == 0 && about.known)
        err = compare(l, job, &shown, &sum, odd);
    return after(l, job, &shown, err);
}

/* Without reading: do the leaves that this one lies on make sense? */
static int
check_chain(lane *l, pyri_leaf_job *job)
{
    pyri_tree t = job->view->snap.tree;
    pyri_box shown;
    t.reader = l->reader;
    if (l->v->forgotten || job->suspect)
        return 0;
    bool some = pyri_grid_shown(t.grid, 0, job->pos, &shown);
    pyri_chain_reset(&l->chain);
    int err = pyri_chain_load(&l->chain, &t, job->pos, &job->node, NULL, 0);
    return err < 0 ? after(l, job, some ? &shown : NULL, err) : 0;
}

static int
check(lane *l, pyri_leaf_job *job)
{
    int err = check_leaf(l, job);
    return err != 0 ? err : check_chain(l, job);
}

static void
fini(lane *l)
{
    pyri_chain_fini(&l->chain);
    pyri_fetcher_fini(&l->fetcher);
    pyri_buf_fini(&l->blob);
    pyri_buf_fini(&l->room);
}

/* --- many of them -------------------------------------------------------- */

static int
run_lane(void *ctx, size_t i, unsigned worker)
{
    pyri_verifier *v = ctx;
    lane l = {.v = v};
    (void)i, (void)worker;
    int err = pyri_engine_begin(v->e, &l.reader);
    while (err == 0) {
        size_t turn;
        if (!take_turn(&l, &turn))
            break;
        err = check(&l, &v->jobs[v->turns[turn].job]);
        let_others_read(&l);
    }
    fini(&l);
    pyri_engine_end(v->e, l.reader);
    return err;
}

/* Through the reader of the walk, aloud. */
static int
look_again(pyri_verifier *v)
{
    lane l = {.v = v, .reader = v->r, .loud = true};
    int err = 0;
    for (size_t i = 0; i < v->njobs && err == 0; i++) {
        pyri_leaf_job *job = &v->jobs[i];
        if (!job->suspect)
            continue;
        job->suspect = false;
        err = check(&l, job);
    }
    fini(&l);
    return err;
}

static unsigned
lanes_of(const pyri_verifier *v)
{
    unsigned jobs = v->spec->jobs;
    return jobs == 0 || jobs > PYRI_MAX_WORKERS ? PYRI_MAX_WORKERS : jobs;
}

void
pyri_view_leave(pyri_view *view)
{
    if (!view || --view->users > 0)
        return;
    pyri_verify_untold(view);
    pyri_snapshot_close(&view->snap);
    free(view);
}

int
pyri_verify_flush(pyri_verifier *v)
{
    int err = v->njobs ? begin_turns(v) : 0;
    if (err == 0 && v->njobs) {
        err = pyri_pool_run(lanes_of(v), run_lane, v);
        end_turns(v);
    }
    if (err == 0)
        err = look_again(v);
    for (size_t i = 0; i < v->njobs; i++)
        pyri_view_leave(v->jobs[i].view);
    v->njobs = 0;
    v->done += v->job_bytes;
    v->job_bytes = 0;
    if (err == 0 && v->spec->progress.each && !v->quiet)
        err = v->spec->progress.each(v->spec->progress.ctx,
                                     pyri_min64(v->done, v->total), v->total);
    return err;
}

/* --- noting a leaf ------------------------------------------------------- */

static int
reach_blob(pyri_verifier *v, pyri_leaf_job *job, const pyri_frag *f,
           bool *fresh)
{
    uint64_t name[3] = {f->ref[0], f->ref[1], pyri_frag_blob_size(f)};
    int err = pyri_reached_add(&v->blobs, name, sizeof name, fresh);
    if (err < 0 || !*fresh)
        return err;
    v->out->fragments += !v->forgotten;
    v->out->bytes += v->forgotten ? 0
                     : v->deep    ? pyri_frag_blob_size(f)
                                  : pyri_frag_head_size(f);
    v->job_bytes += pyri_frag_blob_size(f);
    if (!job->placed)
        memcpy(job->place, f->ref, sizeof job->place);
    job->placed = true;
    return 0;
}

/* Which of its blobs were not reached before? */
static int
reach_blobs(pyri_verifier *v, pyri_leaf_job *job)
{
    const pyri_grid *g = &job->view->snap.grid;
    pyri_leaf_walk w;
    pyri_box domain;
    pyri_grid_domain(g, 0, job->pos, &domain);
    int err = pyri_leaf_begin(&job->node, g->ndim, &domain, &w);
    for (int i = 0; err == 0 && w.left; i++) {
        pyri_frag f;
        bool fresh = true;
        if ((err = pyri_leaf_next(&w, &f)) == 0 && f.kind != PYRI_FRAG_SAME)
            err = reach_blob(v, job, &f, &fresh);
        if (err == 0 && fresh && i < 64)
            job->fresh |= UINT64_C(1) << i;
    }
    if (err == PYR_ECORRUPT) {
        job->view->kin->lost = true; /* reported when it is looked at */
        err = 0;
    }
    return err;
}

int
pyri_verify_leaf(pyri_verifier *v, pyri_view *view, const pyri_node *node,
                 const uint64_t *pos)
{
    if (!pyri_room(&v->jobs, &v->job_room, v->njobs + 1, sizeof *v->jobs))
        return pyri_fail_nomem("a list of chunks");
    pyri_leaf_job *job = &v->jobs[v->njobs];
    *job = (pyri_leaf_job){.view = view, .node = *node};
    memcpy(job->pos, pos, sizeof job->pos);
    int err = reach_blobs(v, job);
    if (err < 0 || v->forgotten)
        return err;
    view->users++;
    v->njobs++;
    if (v->njobs < BATCH_LEAVES && v->job_bytes < BATCH_BYTES)
        return 0;
    return pyri_verify_flush(v);
}
