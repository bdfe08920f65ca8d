/*
 * support/work.c - writers whose every write can be told from its name alone.
 */
#include "support/work.h"

#include "support/model.h"
#include "support/rng.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

work
work_sample(int which, uint64_t seed)
{
    static const work samples[] = {
        {.array = "plane", .ndim = 2, .shape = {61, 47}, .chunk = {16, 16},
         .type = PYR_U32},
        {.array = "line", .ndim = 1, .shape = {3001}, .chunk = {100},
         .type = PYR_I16, .codec = PYR_CODEC_LZ4},
        {.array = "cube", .ndim = 3, .shape = {13, 17, 11},
         .chunk = {5, 17, 4}, .type = PYR_U64},
        {.array = "sheet", .ndim = 2, .shape = {400, 500},
         .chunk = {400, 500}, .type = PYR_U32, .large = true},
    };
    work k = samples[(unsigned)which % WORK_SAMPLES];
    k.seed = seed;
    return k;
}

size_t
work_bytes(const work *k)
{
    size_t n = model_type_size(k->type);
    for (int d = 0; d < k->ndim; d++)
        n *= (size_t)k->shape[d];
    return n;
}

int
work_create(const work *k, pyr_store *store, pyr_array **array)
{
    return pyr_create(store, k->array,
                      &(pyr_spec){.ndim = k->ndim, .shape = k->shape,
                                  .chunk = k->chunk, .type = k->type,
                                  .codec = k->codec},
                      array);
}

/* --- writes -------------------------------------------------------------- */

static void
make_part(const work *k, rng *r, work_item *item, size_t i)
{
    bool run = rng_once_in(r, 4), big = rng_once_in(r, 8);
    uint64_t n = 1, least = 1;
    if (k->large)
        run = false, big = true;
    for (int d = 0; d < k->ndim; d++) {
        if (k->large)
            least = k->shape[d] / 2;
        uint64_t at = rng_below(r, k->shape[d] - least + 1);
        uint64_t room = k->shape[d] - at;
        uint64_t most = big ? room : k->shape[d] / 5 + 1;
        uint64_t size = rng_from(r, least, most < room ? most : room);
        item->offset[i][d] = at;
        item->count[i][d] = 1;
        if (run && size > 2) {
            uint64_t stride = rng_from(r, 2, size);
            item->count[i][d] = (size - 1) / stride + 1;
            item->stride[i][d] = stride;
            size = 1;
        } else {
            item->stride[i][d] = size;
        }
        item->size[i][d] = size;
        n *= size * item->count[i][d];
    }
    item->parts[i] = (pyr_part){.offset = item->offset[i],
                                .size = item->size[i],
                                .count = run ? item->count[i] : NULL,
                                .stride = run ? item->stride[i] : NULL};
    size_t cell = model_type_size(k->type);
    uint8_t *cells = malloc(n * cell);
    if (!cells)
        abort();
    uint64_t base = rng_next(r);
    bool same = rng_once_in(r, 6) && !k->large;
    for (uint64_t c = 0; c < n; c++) {
        uint64_t bits = rng_mix(base + (same ? 0 : c));
        memcpy(cells + c * cell, &bits, cell);
    }
    item->parts[i].buf = cells;
}

void
work_item_make(const work *k, uint32_t writer, uint32_t seq, work_item *out)
{
    rng r = rng_of(k->seed ^ rng_mix(((uint64_t)writer << 32) + seq));
    *out = (work_item){0};
    out->n = rng_once_in(&r, 2) ? 1 : rng_from(&r, 2, WORK_MAX_PARTS);
    for (size_t i = 0; i < out->n; i++)
        make_part(k, &r, out, i);
    snprintf(out->message, sizeof out->message, "w%" PRIu32 " s%" PRIu32,
             writer, seq);
}

void
work_item_fini(work_item *item)
{
    for (size_t i = 0; i < item->n; i++)
        free(item->parts[i].buf);
    *item = (work_item){0};
}

static int
write_item(pyr_array *array, const work_item *item, const work_order *o,
           uint32_t seq, pyr_version *made)
{
    bool boxes = true;
    for (size_t i = 0; i < item->n; i++)
        boxes &= item->parts[i].count == NULL;
    pyr_write_options options = {.message = item->message};
    if (o->nowait && seq % o->nowait == 0)
        options.flags = PYR_WRITE_NOWAIT;
    if (!o->batch || seq % 3 || !boxes)
        return pyr_write_list(array, item->parts, item->n, &options, made);
    pyr_batch *batch;
    int err = pyr_batch_begin(array, &batch);
    if (err < 0)
        return err;
    for (size_t i = 0; i < item->n; i++) {
        err = pyr_batch_write(batch, item->offset[i], item->size[i],
                              item->parts[i].buf);
        if (err < 0) {
            pyr_batch_abort(batch);
            return err;
        }
    }
    return pyr_batch_commit(batch, &options, made);
}

static int
open_log(const work_order *o)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/w%" PRIu32 ".log", o->logs, o->writer);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        abort();
    return fd;
}

static void
log_line(int fd, const work_line *line)
{
    if (write(fd, line, sizeof *line) != (ssize_t)sizeof *line)
        abort();
}

static int
do_one(const work *k, pyr_array *array, const work_order *o, uint32_t seq,
       int log)
{
    work_item item;
    work_item_make(k, o->writer, seq, &item);
    work_line line = {.writer = o->writer, .seq = seq, .from_ns = now_ns()};
    log_line(log, &line);
    line.err = write_item(array, &item, o, seq, &line.version);
    line.to_ns = now_ns();
    pyr_version latest = 0;
    if (line.err == 0 && !(o->nowait && seq % o->nowait == 0))
        line.unseen = pyr_latest(array, &latest) < 0 || latest < line.version;
    line.over = 1;
    log_line(log, &line);
    work_item_fini(&item);
    return line.err;
}

int
work_write(const work *k, pyr_array *array, const work_order *o)
{
    int log = open_log(o), err = 0, retries = o->retries;
    for (uint32_t i = 0; i < o->n; i++) {
        if (i > 0 && o->until_ns && now_ns() > o->until_ns)
            break;
        err = do_one(k, array, o, o->first + i, log);
        if (err == PYR_EFENCED && retries-- > 0)
            err = 0;
        if (err < 0)
            break;
    }
    close(log);
    return err;
}

/* --- logs ---------------------------------------------------------------- */

/* Where a logged write was found in the history. */
typedef struct fate {
    work_line line;
    uint64_t found; /* version, 0 if none */
} fate;

typedef struct fates {
    fate *list;
    size_t n;
} fates;

static int
by_name(const void *a, const void *b)
{
    const work_line *x = &((const fate *)a)->line;
    const work_line *y = &((const fate *)b)->line;
    if (x->writer != y->writer)
        return x->writer < y->writer ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int
by_version(const void *a, const void *b)
{
    const work_line *x = &((const fate *)a)->line;
    const work_line *y = &((const fate *)b)->line;
    return x->version < y->version ? -1 : x->version > y->version;
}

static void
add_line(fates *f, const work_line *line)
{
    /* A write's second line follows its first. */
    if (line->over && f->n && f->list[f->n - 1].line.seq == line->seq &&
        f->list[f->n - 1].line.writer == line->writer) {
        f->list[f->n - 1].line = *line;
        return;
    }
    if ((f->n & (f->n - 1)) == 0) {
        f->list = realloc(f->list, (f->n ? f->n * 2 : 1) * sizeof *f->list);
        if (!f->list)
            abort();
    }
    f->list[f->n++] = (fate){.line = *line};
}

static void
read_log(fates *f, const char *dir, const char *name)
{
    char path[PATH_MAX];
    work_line line;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *in = fopen(path, "r");
    while (in && fread(&line, sizeof line, 1, in) == 1)
        add_line(f, &line);
    if (in)
        fclose(in);
}

static void
read_logs(fates *f, const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (e->d_name[0] == 'w')
            read_log(f, dir, e->d_name);
    if (d)
        closedir(d);
    if (f->n)
        qsort(f->list, f->n, sizeof *f->list, by_name);
}

/* --- the check ----------------------------------------------------------- */

typedef struct replay {
    const work *k;
    pyr_array *array;
    unsigned every;
    uint64_t latest;
    uint64_t next;
    fates fates;
    model m;
    uint8_t *cells;
    work_report *out;
} replay;

__attribute__((format(printf, 2, 3))) static int
wrong(replay *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->out->text, sizeof r->out->text, format, args);
    va_end(args);
    return -77;
}

static int
check_parts(replay *r, const pyr_change *c)
{
    const model_snap *s = &r->m.snaps[r->m.n - 1];
    if (c->nparts != s->nparts)
        return wrong(r, "history of version %" PRIu64 " has %zu parts, not %zu",
                     c->version, c->nparts, s->nparts);
    for (size_t i = 0; i < s->nparts; i++)
        if (!model_same_part(r->k->ndim, &s->parts[i], &c->parts[i]))
            return wrong(r, "history of version %" PRIu64 ": part %zu is not "
                         "what was written", c->version, i);
    return 0;
}

static int
replay_write(replay *r, const pyr_change *c)
{
    work_line name = {0};
    if (sscanf(c->message, "w%" SCNu32 " s%" SCNu32, &name.writer,
               &name.seq) != 2)
        return wrong(r, "version %" PRIu64 " has the message \"%s\"",
                     c->version, c->message);
    fate key = {.line = name};
    fate *f = r->fates.n ? bsearch(&key, r->fates.list, r->fates.n,
                                   sizeof key, by_name)
                         : NULL;
    if (!f)
        return wrong(r, "version %" PRIu64 ": nobody wrote %s", c->version,
                     c->message);
    if (f->found)
        return wrong(r, "%s is version %" PRIu64 " and again %" PRIu64,
                     c->message, f->found, c->version);
    f->found = c->version;
    work_item item;
    work_item_make(r->k, name.writer, name.seq, &item);
    model_write(&r->m, item.parts, item.n);
    int err = check_parts(r, c);
    work_item_fini(&item);
    return err;
}

static int
compare_cells(replay *r, uint64_t version)
{
    static const uint64_t zero[PYR_MAX_DIMS];
    const model_snap *s = &r->m.snaps[r->m.n - 1];
    if (version % r->every && version != r->latest)
        return 0;
    size_t bytes = (size_t)s->ncells * r->m.cell;
    memset(r->cells, 0xa5, bytes);
    if (pyr_read(r->array, version, zero, s->shape, r->cells) < 0)
        return wrong(r, "version %" PRIu64 " cannot be read: %s", version,
                     pyr_errmsg());
    for (size_t i = 0; i < bytes; i += r->m.cell)
        if (memcmp(r->cells + i, s->cells + i, r->m.cell) != 0)
            return wrong(r, "version %" PRIu64 " of %" PRIu64 " is not the "
                         "replay: first at cell %zu, whose last writer is "
                         "version %" PRIu32, version, r->latest,
                         i / r->m.cell, s->wrote[i / r->m.cell]);
    return 0;
}

/* The index tells of a random box what the cells do. */
static int
compare_index(replay *r, uint64_t version, rng *dice)
{
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS], lo, hi;
    for (int d = 0; d < r->k->ndim; d++) {
        offset[d] = rng_below(dice, r->k->shape[d]);
        size[d] = rng_from(dice, 1, r->k->shape[d] - offset[d]);
        if (rng_once_in(dice, 2))
            size[d] = 1;
    }
    model_stats want;
    pyr_stats got;
    pyr_version last;
    model_stat(&r->m, r->m.n - 1, offset, size, &want);
    model_last_change(&r->m, r->m.n - 1, offset, size, &lo, &hi);
    if (pyr_stat(r->array, version, offset, size, 0, &got) < 0 ||
        pyr_last_change(r->array, version, offset, size, &last) < 0)
        return wrong(r, "no statistics of version %" PRIu64 ": %s", version,
                     pyr_errmsg());
    if (got.count != want.count || got.not_fill != want.not_fill ||
        got.sum != want.sum || got.min != want.min_f || got.max != want.max_f)
        return wrong(r, "statistics of version %" PRIu64 " are wrong: sum "
                     "%.17g, not %.17g; min %g, not %g; max %g, not %g",
                     version, got.sum, want.sum, got.min, want.min_f, got.max,
                     want.max_f);
    if (last != lo)
        return wrong(r, "last change of a box of version %" PRIu64 ": %"
                     PRIu64 ", not %" PRIu64, version, last, lo);
    return 0;
}

static int
replay_change(void *ctx, const pyr_change *c)
{
    replay *r = ctx;
    int err = 0;
    if (c->version != r->next)
        return wrong(r, "the history goes from %" PRIu64 " to %" PRIu64,
                     r->next - 1, c->version);
    r->next++;
    if (c->kind == PYR_KIND_NOTHING) {
        model_nothing(&r->m, r->m.snaps[0].shape);
        r->out->nothing++;
    } else if (c->kind == PYR_KIND_WRITE) {
        err = replay_write(r, c);
    } else {
        err = wrong(r, "version %" PRIu64 " is of kind %d", c->version,
                    (int)c->kind);
    }
    if (err == 0)
        err = compare_cells(r, c->version);
    bool newest = c->version == r->latest;
    rng dice = rng_of(c->version);
    for (int i = newest ? 100 : c->version % 20 == 0; err == 0 && i > 0; i--)
        err = compare_index(r, c->version, &dice);
    model_drop(&r->m, r->m.n - 2);
    return err;
}

static bool
check_fates(replay *r)
{
    for (size_t i = 0; i < r->fates.n; i++) {
        const fate *f = &r->fates.list[i];
        const work_line *l = &f->line;
        if (!l->over) {
            r->out->unsure++;
            r->out->landed += f->found != 0;
        } else if (l->err == 0) {
            r->out->acked++;
            if (l->unseen) {
                wrong(r, "version %" PRIu64 " was not published when its "
                      "write returned", l->version);
                return false;
            }
            if (f->found != l->version) {
                wrong(r, "w%" PRIu32 " s%" PRIu32 " was told version %" PRIu64
                      ", the history says %" PRIu64, l->writer, l->seq,
                      l->version, f->found);
                return false;
            }
        } else {
            r->out->fenced += l->err == PYR_EFENCED;
            if (f->found) {
                wrong(r, "w%" PRIu32 " s%" PRIu32 " failed with %d but is "
                      "version %" PRIu64, l->writer, l->seq, l->err, f->found);
                return false;
            }
        }
    }
    return true;
}

/* If a lower version began after a higher one had returned, order is broken. */
static bool
check_real_time(replay *r)
{
    int64_t began = INT64_MIN;
    if (r->fates.n)
        qsort(r->fates.list, r->fates.n, sizeof *r->fates.list, by_version);
    for (size_t i = 0; i < r->fates.n; i++) {
        const work_line *l = &r->fates.list[i].line;
        if (!l->over || l->err != 0)
            continue;
        if (l->to_ns < began) {
            wrong(r, "version %" PRIu64 " returned before a lower one began",
                  l->version);
            return false;
        }
        began = l->from_ns > began ? l->from_ns : began;
    }
    return true;
}

bool
work_check(const work *k, pyr_array *array, const char *logs, unsigned every,
           work_report *out)
{
    replay rep = {.k = k, .array = array, .every = every, .next = 1,
                  .out = out};
    replay *r = &rep;
    *out = (work_report){0};
    read_logs(&r->fates, logs);
    model_init(&r->m, k->ndim, k->shape, k->type, NULL);
    r->cells = malloc(r->m.snaps[0].ncells * r->m.cell);
    int err = pyr_latest(array, &r->latest);
    if (err == 0 && r->latest > 0)
        err = pyr_history(array, 1, PYR_LATEST, replay_change, r);
    if (err < 0 && !out->text[0])
        wrong(r, "history: %s", pyr_errmsg());
    if (err == 0 && r->next != r->latest + 1)
        err = wrong(r, "the history ends at %" PRIu64 ", latest is %" PRIu64,
                    r->next - 1, r->latest);
    out->versions = r->latest;
    bool ok = err == 0 && check_fates(r) && check_real_time(r);
    free(r->cells);
    free(r->fates.list);
    model_fini(&r->m);
    return ok;
}
