/*
 * Nodes in LMDB: how densely they lie, and that none is lost whatever the order
 * in which they come.
 */
#include "engine/local/tests/fixture.h"

#include <sys/stat.h>

enum { YOUNGER = ARRAY + 1, NODES = 4, KEPT = 3 /* one of so many */ };

/* As large as those of an array with thousands of chunks. */
static const size_t sizes[NODES] = {830, 1784, 1784, 536};

static pyri_engine *
fresh(char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s", tmp_fresh("nodes"));
    pyri_engine *e = open_store(path);
    make_array(e);
    pyri_edit edit = {.kind = PYRI_EDIT_ARRAY, .array = YOUNGER, .ndim = 2,
                      .shape = fixture_shape};
    OK(pyri_engine_edit(e, &edit, 1));
    return e;
}

static void
name_node(uint8_t key[18], uint64_t array, uint64_t version, int node)
{
    pyri_store64_be(key, array);
    pyri_store64_be(key + 8, version);
    key[16] = (uint8_t)node;
    key[17] = 0;
}

static void
fill_node(uint8_t *value, uint64_t array, uint64_t version, int node)
{
    for (size_t i = 0; i < sizes[node]; i++)
        value[i] = (uint8_t)(array + 3 * version + 7 * (uint64_t)node + i);
}

static pyri_ticket
take_of(pyri_engine *e, uint64_t array)
{
    pyri_take take = {.array = array, .claim = {"claim", 5}, .grow_axis = -1};
    pyri_ticket ticket;
    pyri_flights below = {0};
    OK(pyri_engine_take(e, &take, &ticket, &below));
    pyri_flights_fini(&below);
    return ticket;
}

/* Nodes from the first to the last, or the other way round. */
static void
complete_all(pyri_engine *e, const pyri_ticket *t, bool reversed)
{
    uint8_t keys[NODES][18], values[NODES][2048];
    pyri_node_put nodes[NODES];
    for (int i = 0; i < NODES; i++) {
        int node = reversed ? NODES - 1 - i : i;
        name_node(keys[i], t->array, t->version, node);
        fill_node(values[i], t->array, t->version, node);
        nodes[i] = (pyri_node_put){{keys[i], sizeof keys[i]},
                                   {values[i], sizes[node]}};
    }
    pyri_complete c = {.array = t->array, .version = t->version,
                       .shape = t->shape, .nodes = nodes, .nnodes = NODES,
                       .record = {"record", 6}};
    OK(pyri_engine_complete(e, &c));
}

/* The nodes of each `step`th version. */
static void
check_all(pyri_engine *e, uint64_t array, uint64_t versions, uint64_t step)
{
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    for (uint64_t v = step; v <= versions; v += step)
        for (int node = 0; node < NODES; node++) {
            uint8_t key[18], value[2048];
            pyri_node_get get = {.key = {key, sizeof key}};
            name_node(key, array, v, node);
            fill_node(value, array, v, node);
            OK(pyri_engine_get_nodes(e, r, &get, 1));
            CHECK(get.found && get.value.size == sizes[node] &&
                  memcmp(get.value.data, value, sizes[node]) == 0);
        }
    pyri_engine_end(e, r);
}

static uint64_t
bytes_of(uint64_t versions)
{
    uint64_t bytes = 0;
    for (int i = 0; i < NODES; i++)
        bytes += versions * (sizes[i] + 18);
    return bytes;
}

static void
complete_some(pyri_engine *e, uint64_t versions)
{
    for (uint64_t i = 0; i < versions; i++) {
        pyri_ticket t = take_of(e, YOUNGER);
        complete_all(e, &t, false);
    }
}

static uint64_t
size_of_metadata(const char *path)
{
    struct stat st;
    REQUIRE(stat(inside(path, "meta/data.mdb"), &st) == 0);
    return (uint64_t)st.st_size;
}

static void
versions_that_come_in_order_leave_full_pages(void)
{
    enum { VERSIONS = 600 };
    char path[PATH_MAX];
    pyri_engine *e = fresh(path);
    uint64_t before = size_of_metadata(path), bytes = bytes_of(VERSIONS);
    complete_some(e, VERSIONS);
    check_all(e, YOUNGER, VERSIONS, 1);
    pyri_engine_close(e);
    /* two of the largest leave an eighth of a page; branches, free pages */
    CHECK(size_of_metadata(path) - before < bytes + bytes / 3);
}

/* Blocks, as free pages become holes. */
static uint64_t
blocks_of_metadata(const char *path)
{
    struct stat st;
    REQUIRE(stat(inside(path, "meta/data.mdb"), &st) == 0);
    return (uint64_t)st.st_blocks * 512;
}

/* The nodes of all versions but some go. */
static void
erase_most(pyri_engine *e, uint64_t versions)
{
    pyri_settled settled;
    OK(pyri_engine_begin_upkeep(e));
    for (uint64_t v = 1; v <= versions; v++) {
        uint8_t keys[NODES][18];
        pyri_bytes nodes[NODES];
        for (int i = 0; i < NODES; i++) {
            name_node(keys[i], YOUNGER, v, i);
            nodes[i] = (pyri_bytes){keys[i], sizeof keys[i]};
        }
        pyri_erase erase = {.nodes = nodes, .nnodes = NODES};
        if (v % KEPT)
            OK(pyri_engine_erase(e, &erase));
    }
    for (int i = 0; i < 3; i++) /* pages that are free since the last time */
        OK(pyri_engine_settle(e, &settled));
    pyri_engine_end_upkeep(e);
}

/* How much more than the bytes of nodes is on the disk when most have gone. */
static double
waste_after(uint64_t versions)
{
    char path[PATH_MAX];
    pyri_engine *e = fresh(path);
    uint64_t before = blocks_of_metadata(path);
    complete_some(e, versions);
    erase_most(e, versions);
    check_all(e, YOUNGER, versions, KEPT);
    pyri_engine_close(e);
    double waste = (double)(blocks_of_metadata(path) - before) /
                       (double)bytes_of(versions / KEPT) - 1;
    printf("# %.2f times the bytes\n", 1 + waste);
    return waste;
}

/* Their pages would be a third full: 2.5 times the bytes and more. */
static void
what_stays_when_others_went_fills_its_pages_again(void)
{
    CHECK(waste_after(900) < 0.4);
}

/* There are too many to put them in order at once. */
static void
of_many_pages_some_are_filled_at_a_time(void)
{
    CHECK(waste_after(by_scale(6000, 6000, 30000)) < 0.75);
}

static void
nodes_that_go_between_others_are_stored_as_well(void)
{
    enum { VERSIONS = 40 };
    char path[PATH_MAX];
    pyri_engine *e = fresh(path);
    pyri_ticket t[2][VERSIONS];
    for (int i = 0; i < VERSIONS; i++) {
        t[0][i] = take_of(e, ARRAY);
        t[1][i] = take_of(e, YOUNGER);
    }
    for (int i = VERSIONS; i-- > 0;) /* the newest first */
        for (int k = 2; k-- > 0;)
            complete_all(e, &t[k][i], i % 3 == 0);
    check_all(e, ARRAY, VERSIONS, 1);
    check_all(e, YOUNGER, VERSIONS, 1);
    CHECK(latest_of(e) == VERSIONS);
    pyri_engine_close(e);
}

TESTS(T(versions_that_come_in_order_leave_full_pages),
      T(what_stays_when_others_went_fills_its_pages_again),
      T(of_many_pages_some_are_filled_at_a_time),
      T(nodes_that_go_between_others_are_stored_as_well))
