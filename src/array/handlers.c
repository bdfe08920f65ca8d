/*
 * array/handlers.c - handlers at work: noticed, loaded, run.
 *
 * An array handle keeps the handlers that it met last, with their mark. A
 * write that is told another mark loads them anew; those that are under way
 * keep what they began with. So a handler applies to every write that begins
 * after pyr_handler_add() has returned, in any process.
 */
#include "array/handlers.h"

#include "array/keys.h"

#include "base/hash.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct running {
    uint32_t number;
    const char *text;
    pyri_program program;
    pyri_kernels kernels;
} running;

struct pyri_handlers {
    atomic_uint references;
    uint64_t mark;
    const pyri_array *array; /* the handle outlives them */
    pyri_handler_list list;
    bool uniform;
    pyri_buf text;
    size_t n;
    running run[]; /* n of them, those of the event */
};

/* --- loading ------------------------------------------------------------- */

static int
fail_of(const pyri_array *a, uint32_t number, const char *text, int err)
{
    return pyri_fail_at(err, "array '%s', handler %u, %s", a->name, number,
                        text);
}

/* Compile one; what it calls must be on this machine. */
static int
prepare(const pyri_array *a, const pyri_handler *from, running *to)
{
    pyri_expr *e = pyri_sys_malloc(sizeof *e);
    if (!e)
        return pyri_fail_nomem("a handler");
    int err = pyri_handler_parse(a, from->text, e, &to->kernels, NULL);
    to->number = from->number;
    to->text = from->text;
    if (err == 0)
        to->program = e->program;
    free(e);
    return err < 0 ? fail_of(a, from->number, from->text, err) : 0;
}

static void
free_handlers(pyri_handlers *h)
{
    if (!h)
        return;
    pyri_handler_list_fini(&h->list);
    pyri_buf_fini(&h->text);
    free(h);
}

static int
prepare_all(const pyri_array *a, pyri_handlers *h)
{
    int err = 0;
    h->uniform = true;
    for (size_t i = 0; i < h->list.n && err == 0; i++) {
        running *r = &h->run[h->n];
        if (h->list.list[i].event != PYRI_HANDLER_ON_WRITE)
            continue; /* of a later kind */
        if ((err = prepare(a, &h->list.list[i], r)) < 0)
            break;
        h->uniform &= pyri_program_uniform(&r->program) && r->kernels.same;
        if (h->n++)
            pyri_buf_add(&h->text, "; ", 2);
        pyri_buf_add(&h->text, r->text, strlen(r->text));
    }
    pyri_buf_u8(&h->text, 0);
    for (size_t i = 0; i < h->n; i++) /* as they are on this machine now */
        pyri_kernels_note(&h->run[i].kernels, &h->text);
    return err < 0 ? err : pyri_buf_check(&h->text, "handlers");
}

/* Gives those that a record lists. */
static int
load(const pyri_array *a, pyri_bytes record, uint64_t mark,
     pyri_handlers **out)
{
    pyri_handlers *h =
        pyri_sys_calloc(1, sizeof *h + PYRI_MAX_HANDLERS * sizeof h->run[0]);
    if (!h)
        return pyri_fail_nomem("handlers");
    atomic_init(&h->references, 1);
    h->mark = mark;
    h->array = a;
    int err = pyri_handler_list_decode(record, &h->list);
    if (err < 0)
        err = pyri_fail_at(err, "array '%s'", a->name);
    else
        err = prepare_all(a, h);
    if (err < 0) {
        free_handlers(h);
        h = NULL;
    }
    *out = h;
    return err;
}

/* --- noticing ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards
                                                            array->handlers */

static const pyri_handlers *
refer(pyri_handlers *h)
{
    if (h)
        atomic_fetch_add(&h->references, 1);
    return h;
}

const pyri_handlers *
pyri_handlers_again(const pyri_handlers *h)
{
    return refer((pyri_handlers *)(uintptr_t)h);
}

void
pyri_handlers_end(const pyri_handlers *h)
{
    pyri_handlers *mine = (pyri_handlers *)(uintptr_t)h;
    if (mine && atomic_fetch_sub(&mine->references, 1) == 1)
        free_handlers(mine);
}

/* The handlers of a mark that is not 0. */
static int
meet(pyri_array *a, pyri_bytes record, bool found, uint64_t mark,
     const pyri_handlers **out)
{
    pyri_handlers *h = NULL;
    if (!found)
        return pyri_fail(PYR_ECORRUPT, "array '%s' has lost its handlers",
                         a->name);
    int err = load(a, record, mark, &h);
    if (err < 0)
        return err;
    pthread_mutex_lock(&lock);
    pyri_handlers *before = a->handlers;
    a->handlers = h;
    *out = refer(h);
    pthread_mutex_unlock(&lock);
    pyri_handlers_end(before);
    return 0;
}

static bool
known(pyri_array *a, uint64_t mark, const pyri_handlers **out)
{
    pthread_mutex_lock(&lock);
    bool same = a->handlers && a->handlers->mark == mark;
    if (same)
        *out = refer(a->handlers);
    pthread_mutex_unlock(&lock);
    return same;
}

int
pyri_handlers_latest(pyri_array *a, pyri_reader *r, uint64_t *label,
                     uint64_t *shape, const pyri_handlers **out)
{
    pyri_engine *e = a->engine;
    uint64_t mark = 0;
    pyri_bytes record = {0};
    bool found = false, marks = pyri_engine_has_marks(e);
    pyri_key k;
    *out = NULL;
    int err = marks ? pyri_engine_marked(e, r, a->id, label, shape, &mark)
                    : pyri_engine_latest(e, r, a->id, label, shape);
    if (err < 0 || (marks && mark == 0) || (marks && known(a, mark, out)))
        return err;
    k = pyri_key_id("handler/", a->id);
    err = pyri_engine_get_record(e, r, pyri_key_bytes(&k), &record, &found);
    if (err < 0 || (!marks && !found))
        return err;
    if (!marks)
        mark = pyri_hash64(record.data, record.size);
    if (marks || !known(a, mark, out))
        err = meet(a, record, found, mark, out);
    if (err == 0 && (*out)->n == 0) { /* all were removed */
        pyri_handlers_end(*out);
        *out = NULL;
    }
    return err;
}

int
pyri_handlers_begin(pyri_array *a, uint64_t *label, uint64_t *shape,
                    const pyri_handlers **out)
{
    pyri_reader *r;
    *out = NULL;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_handlers_latest(a, r, label, shape, out);
    pyri_engine_end(a->engine, r);
    return err;
}

/* --- running ------------------------------------------------------------- */

const char *
pyri_handlers_text(const pyri_handlers *h)
{
    return (const char *)h->text.data;
}

bool
pyri_handlers_uniform(const pyri_handlers *h)
{
    return h->uniform;
}

bool
pyri_handlers_list(const pyri_handlers *h, const pyri_program **list, int *n)
{
    for (size_t i = 0; i < h->n; i++) {
        if (h->run[i].kernels.n)
            return false;
        list[(*n)++] = &h->run[i].program;
    }
    return true;
}

/* Memory for what kernels make, a block per source. */
static int
run_one(const pyri_array *a, const running *run, const pyri_box *box,
        uint8_t *cells)
{
    const pyri_schema *s = &a->schema;
    size_t cell = pyri_type_size(s->type);
    size_t bytes = (size_t)pyri_box_cells(s->ndim, box) * cell;
    const void *src[PYRI_OP_MAX_SOURCES] = {cells};
    uint8_t *made = NULL;
    int err = 0;
    if (run->kernels.n &&
        !(made = pyri_scratch_take((size_t)run->kernels.n * bytes)))
        return pyri_fail_nomem("the cells of a handler");
    for (int k = 1; k < run->program.sources && err == 0; k++) {
        int which = run->kernels.of[k];
        uint8_t *out = made + (size_t)which * bytes;
        src[k] = out;
        err = pyri_kernel_run(&run->kernels.bound[which], box,
                              pyri_mem_dense(s->ndim, cell, box, cells), out);
    }
    if (err == 0)
        err = pyri_program_run(&run->program, s->ndim, box, src, s->type,
                               cells);
    pyri_scratch_give(made);
    return err;
}

int
pyri_handlers_run(const pyri_handlers *h, const pyri_box *box, void *cells)
{
    for (size_t i = 0; i < h->n; i++) {
        const running *run = &h->run[i];
        int err = run_one(h->array, run, box, cells);
        if (err < 0)
            return fail_of(h->array, run->number, run->text, err);
    }
    return 0;
}
