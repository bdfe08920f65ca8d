/*
 * crash/operations_test.c - creating, growing, cloning and tagging, killed or
 * disturbed at each named point: they are done or not done.
 */
#include "crash/crew.h"

/* --- other operations, killed at each point ------------------------------ */

static const char *const ops[] = {"open",  "create", "resize", "append",
                                  "clone", "tag",    "set",    "handle",
                                  "overwrite"};
enum { OP_APPEND = 3, NOPS = 8, OP_OVERWRITE = NOPS, ROWS = 8, COLUMNS = 6 };

static int
make_store(const char *url, pyr_store **store)
{
    pyr_store_options options = {.durability = PYR_DURABILITY_OS,
                                 .lease_ms = LONG_LEASE};
    return pyr_open_with(url, PYR_OPEN_CREATE, &options, store);
}

static int
make_array(pyr_store *store, const char *name, pyr_array **array)
{
    static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {4, 4};
    return pyr_create(store, name,
                      &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                                  .type = PYR_I32}, array);
}

/* Array "a" whose version 1 is all sevens. */
static int
make_base(const char *url)
{
    static const uint64_t zero[2], shape[2] = {ROWS, COLUMNS};
    int32_t cells[ROWS * COLUMNS];
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        cells[i] = 7;
    int err = make_store(url, &store);
    if (err == 0)
        err = make_array(store, "a", &array);
    if (err == 0)
        err = pyr_write(array, zero, shape, cells, NULL);
    pyr_array_close(array);
    pyr_close(store);
    return err;
}

static int
do_op(const char *op, pyr_store *store, pyr_array *a)
{
    static const uint64_t taller[2] = {ROWS + 3, COLUMNS};
    int32_t row[COLUMNS] = {9, 9, 9, 9, 9, 9};
    if (strcmp(op, "create") == 0)
        return make_array(store, "b", NULL);
    if (strcmp(op, "resize") == 0)
        return pyr_resize(a, taller, NULL);
    if (strcmp(op, "append") == 0)
        return pyr_append(a, 0, 1, row, NULL, NULL);
    if (strcmp(op, "clone") == 0)
        return pyr_clone(a, 1, "c", NULL);
    if (strcmp(op, "tag") == 0)
        return pyr_tag(a, "t", 1);
    if (strcmp(op, "set") == 0)
        return pyr_set_attributes(a, "{\"x\": 1}");
    if (strcmp(op, "handle") == 0)
        return pyr_handler_add(a, PYR_ON_WRITE, "x + 0", NULL);
    if (strcmp(op, "overwrite") == 0) {
        int32_t half[4 * COLUMNS];
        for (int i = 0; i < 4 * COLUMNS; i++)
            half[i] = 9;
        return pyr_write(a, (uint64_t[2]){4, 0}, (uint64_t[2]){4, COLUMNS},
                         half, NULL);
    }
    return 0;
}

static int
role_op(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    const char *op = ops[j->extra];
    if (strcmp(op, "open") == 0)
        return make_base(j->url) < 0 ? complain("make") : 0;
    if (pyr_open(j->url, 0, &store) < 0 ||
        pyr_array_open(store, "a", &a) < 0)
        return complain("open");
    int code = do_op(op, store, a) < 0 ? complain(op) : 0;
    pyr_array_close(a);
    pyr_close(store);
    return code;
}

/* Old cells are as they were; new rows are all fill or all nines. */
static void
check_version(pyr_array *a, pyr_version v, int32_t old)
{
    static const uint64_t zero[2];
    int32_t cells[32 * COLUMNS];
    pyr_info info;
    OK(pyr_array_info(a, v, &info));
    REQUIRE(info.shape[0] <= 32 && info.shape[1] == COLUMNS);
    CHECK(info.shape[0] >= ROWS);
    OK(pyr_read(a, v, zero, info.shape, cells));
    for (uint64_t i = 0; i < info.shape[0] * COLUMNS; i++) {
        int32_t first = cells[i / COLUMNS * COLUMNS];
        if (i < ROWS * COLUMNS)
            CHECK(cells[i] == old);
        else
            CHECK(cells[i] == first && (first == 0 || first == 9));
    }
}

static int
check_array(void *ctx, const char *name)
{
    pyr_store *store = ctx;
    pyr_array *a;
    pyr_version latest;
    OK(pyr_array_open(store, name, &a));
    OK(pyr_latest(a, &latest));
    for (pyr_version v = 0; v <= latest; v++)
        check_version(a, v, *name == 'c' || (*name == 'a' && v > 0) ? 7 : 0);
    pyr_array_close(a);
    return 0;
}

static int
count_handler(void *ctx, const pyr_handler *h)
{
    CHECK(strcmp(h->function, "x + 0") == 0);
    ++*(int *)ctx;
    return 0;
}

/* Whatever was done to it, the store opens, holds the old or the new state,
 * and the same can be done again. */
static void
check_op(const char *op, const char *url)
{
    pyr_store *store;
    pyr_array *a;
    pyr_version v = 1, before, after;
    int handlers = 0;
    if (strcmp(op, "open") == 0) {
        /* What of it was made decides where to go on. */
        OK(make_store(url, &store));
        int err = pyr_array_open(store, "a", &a);
        CHECK(err == 0 || err == PYR_ENOTFOUND);
        if (err == 0)
            pyr_array_close(a);
        else
            OK(make_array(store, "a", NULL));
        pyr_close(store);
    }
    OK(pyr_open(url, 0, &store));
    if (strcmp(op, "open") != 0) /* there, "a" may not have its write */
        OK(pyr_arrays(store, check_array, store));
    OK(pyr_array_open(store, "a", &a));
    int err = pyr_tag_version(a, "t", &v);
    CHECK((err == 0 || err == PYR_ENOTFOUND) && v == 1);
    OK(pyr_latest(a, &before));
    OK(pyr_handler_list(a, count_handler, &handlers));
    CHECK(handlers == 0 || (handlers == 1 && strcmp(op, "handle") == 0));
    err = do_op(op, store, a);
    CHECK(err == 0 || err == PYR_EEXIST);
    OK(pyr_resize(a, (uint64_t[2]){20, COLUMNS}, &after));
    CHECK(after > before);
    OK(pyr_latest(a, &before));
    CHECK(after == before);
    if (strcmp(op, "open") != 0)
        OK(pyr_arrays(store, check_array, store));
    pyr_array_close(a);
    pyr_close(store);
}

static bool
kill_op(int op, const char *point)
{
    int before = check_failures;
    char url[4096];
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("op"));
    job j = {.role = "op", .url = url, .logs = "-", .extra = op};
    if (strcmp(ops[op], "open") != 0)
        OK(make_base(url));
    proc_end end = proc_wait(start_at(point, "kill", 1, &j), BOUND);
    CHECK(end.signal == SIGKILL || end.code == 0);
    check_op(ops[op], url);
    if (check_failures > before)
        printf("# %s killed at %s\n", ops[op], point);
    tmp_remove(url);
    return end.signal == SIGKILL;
}

static void
any_operation_killed_at_any_point_is_done_or_not(void)
{
    int killed[NOPS] = {0};
    for (int op = 0; op < NOPS; op++)
        for (int i = 0; i < NPOINTS; i++)
            killed[op] += kill_op(op, points[i].name);
    for (int op = 0; op < NOPS; op++) {
        printf("# %s: died at %d points\n", ops[op], killed[op]);
        if (strcmp(ops[op], "resize") == 0 || strcmp(ops[op], "append") == 0)
            CHECK(killed[op] > 3);
    }
}

static void
any_operation_killed_at_any_time_is_done_or_not(void)
{
    rng r = rng_of(test_seed());
    int killed = 0, rounds = (int)by_scale(40, 140, 1500);
    proc_kill_all();
    for (int i = 0; i < rounds; i++) {
        int op = i % NOPS, before = check_failures;
        char url[4096];
        snprintf(url, sizeof url, "%s", tmp_store("op"));
        job j = {.role = "op", .url = url, .logs = "-", .extra = op};
        if (op != 0)
            OK(make_base(url));
        pid_t pid = start(NULL, &j);
        int64_t when = now_ns() + (int64_t)rng_below(&r, 12000) * 1000;
        while (now_ns() < when)
            continue;
        kill(pid, SIGKILL);
        proc_end end = proc_wait(pid, BOUND);
        CHECK(end.signal == SIGKILL || end.code == 0);
        killed += end.signal == SIGKILL;
        check_op(ops[op], url);
        if (check_failures > before)
            printf("# %s killed at some time\n", ops[op]);
        tmp_remove(url);
    }
    printf("# %d of %d were killed in time\n", killed, rounds);
}

/* --- another shape comes in between -------------------------------------- */

/* An operation is stopped, the array gets another shape, the operation goes
 * on: it is done in the new shape, or refused. Rows and columns that were
 * dropped stay so. */
static void
reshape_between(int op, const char *point, uint64_t rows, uint64_t columns)
{
    char url[4096];
    int before = check_failures;
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("shape"));
    OK(make_base(url));
    job j = {.role = "op", .url = url, .logs = "-", .extra = op};
    pid_t pid = start_at(point, "stop", 1, &j);
    REQUIRE(is_stopped(pid));
    pyr_store *store;
    pyr_array *a;
    pyr_info info;
    OK(pyr_open(url, 0, &store));
    OK(pyr_array_open(store, "a", &a));
    OK(pyr_resize(a, (uint64_t[2]){rows, columns}, NULL));
    kill(pid, SIGCONT);
    proc_end end = proc_wait(pid, BOUND);
    CHECK(end.code == 0 || end.code == 1);
    OK(pyr_resize(a, (uint64_t[2]){20, 12}, NULL));
    OK(pyr_array_info(a, PYR_LATEST, &info));
    for (pyr_version v = 2; v <= info.latest; v++) {
        int32_t cells[20][12];
        OK(pyr_array_info(a, v, &info));
        memset(cells, 0, sizeof cells);
        pyr_part part = {.offset = (uint64_t[2]){0, 0}, .size = info.shape,
                         .buf = cells, .step = (int64_t[2]){48, 4}};
        OK(pyr_read_list(a, v, &part, 1));
        for (uint64_t x = 0; x < 20; x++)
            for (uint64_t y = 0; y < 12; y++) {
                int32_t c = cells[x][y];
                bool kept = x < ROWS && y < COLUMNS && x < rows && y < columns;
                bool fresh = op == OP_APPEND ? x >= rows && y < COLUMNS &&
                                                   y < columns
                                             : x >= 4 && kept;
                if (c != (kept ? 7 : 0) && !(fresh && c == 9))
                    CHECK_NOTE("version %d: cell %d, %d is %d", (int)v,
                               (int)x, (int)y, c);
            }
    }
    pyr_array_close(a);
    pyr_close(store);
    if (check_failures > before)
        printf("# %s stopped at %s, resized to %d x %d\n", ops[op], point,
               (int)rows, (int)columns);
    tmp_remove(url);
}

static void
a_resize_between_the_steps_of_a_write_is_taken_note_of(void)
{
    static const char *const early[] = {"write.begin", "write.data_sent",
                                        "write.synced"};
    for (int i = 0; i < 3; i++) {
        reshape_between(OP_OVERWRITE, early[i], 5, 6);
        reshape_between(OP_OVERWRITE, early[i], 3, 6);
        reshape_between(OP_OVERWRITE, early[i], 8, 4);
        reshape_between(OP_OVERWRITE, early[i], 9, 9);
    }
    reshape_between(OP_APPEND, "write.begin", 8, 4);
    reshape_between(OP_APPEND, "write.begin", 5, 6);
    reshape_between(OP_APPEND, "write.begin", 2, 2);
}

/* The same, and the writer that no longer fits dies with its version taken,
 * or is told so after others have built on it. `after` is what happens to it
 * at write.taken. */
static void
overtake(const char *after, uint64_t rows)
{
    char url[4096], fault[100];
    int before = check_failures;
    bool dies = strcmp(after, "kill") == 0;
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("overtaken"));
    OK(make_base(url));
    job j = {.role = "op", .url = url, .logs = "-", .extra = OP_OVERWRITE};
    snprintf(fault, sizeof fault, "write.data_sent=stop,write.taken=%s",
             after);
    pid_t pid = start(fault, &j);
    REQUIRE(is_stopped(pid));
    pyr_store *store;
    pyr_array *a;
    OK(pyr_open(url, 0, &store));
    OK(pyr_array_open(store, "a", &a));
    OK(pyr_resize(a, (uint64_t[2]){rows, COLUMNS}, NULL));
    kill(pid, SIGCONT);
    if (dies)
        CHECK(is_killed(pid));
    else
        REQUIRE(is_stopped(pid));
    int32_t mark[COLUMNS] = {5, 5, 5, 5, 5, 5};
    uint64_t offset[2] = {0, 0}, size[2] = {1, COLUMNS};
    pyr_part part = {.offset = offset, .size = size, .buf = mark};
    pyr_write_options nowait = {.flags = PYR_WRITE_NOWAIT};
    pyr_version made = 0, last = 0;
    OK(pyr_write_list(a, &part, 1, &nowait, &made));
    if (!dies) {
        kill(pid, SIGCONT);
        CHECK(proc_wait(pid, BOUND).code == 1); /* refused: out of bounds */
    }
    OK(pyr_wait(a, made, BOUND));
    for (int i = 0; i < 3; i++)
        OK(pyr_write_list(a, &part, 1, NULL, &last));
    OK(pyr_resize(a, (uint64_t[2]){20, COLUMNS}, &last));
    OK(pyr_write(a, (uint64_t[2]){19, 0}, size, mark, &last));
    CHECK(made == 4 && last == 9);
    for (pyr_version v = 4; v <= last; v++) {
        int32_t cells[20][COLUMNS];
        pyr_info info;
        OK(pyr_array_info(a, v, &info));
        CHECK(info.shape[0] == (v < 8 ? rows : 20));
        OK(pyr_read(a, v, offset, info.shape, cells));
        for (uint64_t x = 0; x < info.shape[0]; x++)
            for (int y = 0; y < COLUMNS; y++)
                CHECK(cells[x][y] == (x == 0 || (x == 19 && v == 9) ? 5
                                      : x < rows                    ? 7
                                                                    : 0));
    }
    pyr_stats s;
    OK(pyr_stat(a, last, offset, (uint64_t[2]){20, COLUMNS}, 0, &s));
    CHECK(s.sum == (double)(COLUMNS * (5 + 7 * (rows - 1) + 5)));
    pyr_array_close(a);
    pyr_close(store);
    if (check_failures > before)
        printf("# %s at write.taken, shrunk to %d rows\n", after, (int)rows);
    tmp_remove(url);
}

static void
a_write_that_a_shrink_has_overtaken_harms_nobody(void)
{
    overtake("kill", 5);
    overtake("kill", 4);
    overtake("kill", 2);
    overtake("stop", 5);
    overtake("stop", 4);
    overtake("stop", 2);
}

/* --- appenders ----------------------------------------------------------- */

static int32_t
row_of(uint32_t writer, uint32_t i)
{
    return (int32_t)(writer * 100000 + i + 1);
}

static int
role_append(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    if (pyr_open(j->url, 0, &store) < 0 || pyr_array_open(store, "a", &a) < 0)
        return complain("open");
    for (uint32_t i = 0; i < j->n; i++) {
        int32_t row[COLUMNS];
        uint64_t at;
        for (int c = 0; c < COLUMNS; c++)
            row[c] = row_of(j->writer, i);
        if (pyr_append(a, 0, 1, row, &at, NULL) < 0)
            return complain("append");
        char path[4200], text[32];
        snprintf(path, sizeof path, "%s/%" PRId32, j->logs,
                 row_of(j->writer, i));
        snprintf(text, sizeof text, "%" PRIu64, at);
        tmp_write_file(path, text);
    }
    pyr_array_close(a);
    pyr_close(store);
    return 0;
}

/* How many rows are nobody's. */
static uint64_t
check_rows(pyr_array *a, const char *logs, uint64_t *acked)
{
    pyr_info info;
    uint64_t dead = 0;
    OK(pyr_array_info(a, PYR_LATEST, &info));
    CHECK(info.latest == info.shape[0] - ROWS + 1);
    for (uint64_t i = ROWS; i < info.shape[0]; i++) {
        uint64_t offset[2] = {i, 0}, size[2] = {1, COLUMNS};
        int32_t row[COLUMNS], early[COLUMNS];
        OK(pyr_read(a, PYR_LATEST, offset, size, row));
        OK(pyr_read(a, i - ROWS + 2, offset, size, early));
        CHECK(memcmp(row, early, sizeof row) == 0);
        for (int c = 1; c < COLUMNS; c++)
            CHECK(row[c] == row[0]);
        char path[4200];
        unsigned long long at = 0;
        snprintf(path, sizeof path, "%s/%" PRId32, logs, row[0]);
        FILE *f = row[0] ? fopen(path, "r") : NULL;
        if (f && fscanf(f, "%llu", &at) == 1) {
            CHECK(at == i);
            (*acked)++;
        }
        if (f)
            fclose(f);
        dead += row[0] == 0;
    }
    return dead;
}

static void
an_appender_that_dies_leaves_its_cells_as_fill(void)
{
    char url[4096], logs[4096];
    uint32_t writer = 0;
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("append"));
    snprintf(logs, sizeof logs, "%s", tmp_fresh("logs"));
    REQUIRE(mkdir(logs, 0777) == 0);
    OK(make_base(url));
    uint64_t fills = 0, acked = 0;
    for (int i = 0; i < NPOINTS; i++) {
        job j = {.role = "append", .url = url, .logs = logs, .n = 20};
        j.writer = ++writer;
        pid_t a = start(NULL, &j);
        j.writer = ++writer;
        CHECK(is_killed(start_at(points[i].name, "kill", 3, &j)));
        CHECK(proc_ends_well(a, BOUND));
        /* An append takes its version before it sends its cells. */
        fills += points[i].fate == NOTHING ||
                 strcmp(points[i].name, "write.data_sent") == 0 ||
                 strcmp(points[i].name, "write.synced") == 0;
    }
    job j = {.role = "append", .url = url, .logs = logs, .n = 1};
    j.writer = ++writer;
    CHECK(proc_ends_well(start(NULL, &j), BOUND));
    pyr_store *store;
    pyr_array *a;
    OK(pyr_open(url, PYR_OPEN_READONLY, &store));
    OK(pyr_array_open(store, "a", &a));
    CHECK(check_rows(a, logs, &acked) == fills);
    /* One visit of a point may be to resolve the one that died before. */
    CHECK(acked >= (uint64_t)NPOINTS * 21 + 1);
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
    tmp_remove(logs);
}

static const crew_role roles[] = {{"op", role_op},
                                  {"append", role_append},
                                  {NULL, NULL}};

CREW_TESTS(roles, T(any_operation_killed_at_any_point_is_done_or_not),
           T(any_operation_killed_at_any_time_is_done_or_not),
           T(a_resize_between_the_steps_of_a_write_is_taken_note_of),
           T(a_write_that_a_shrink_has_overtaken_harms_nobody),
           T(an_appender_that_dies_leaves_its_cells_as_fill))
