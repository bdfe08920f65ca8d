/*
 * regress/decoders_test.c - stored bytes whose checksums are right and whose
 * content is a lie; each was found by a target of tests/fuzz/.
 */
#include "support/check.h"

#include "api/handle.h"
#include "base/bytes.h"
#include "base/hash.h"

#include <string.h>

/* --- nodes --------------------------------------------------------------- */

/* A chain of leaves is followed downwards by label. If a leaf could claim any
 * label, two of them could lie on each other for ever. */
static void
a_node_of_another_version_than_its_name_is_refused(void)
{
    uint8_t bytes[PYRI_MAX_KEY];
    uint64_t pos[1] = {0};
    pyri_box chunk = {.hi = {10}};
    pyri_bytes key = {bytes, pyri_node_key(7, 5, 0, 1, pos, bytes)};
    pyri_leaf leaf = {.about = {.label = 100}, .prev = 6};
    pyri_buf out = {0};
    pyri_node node;
    pyri_leaf_encode(key, &leaf, PYR_U8, 1, &chunk, &out);
    FAILS(PYR_ECORRUPT,
          pyri_node_open(key, (pyri_bytes){out.data, out.size}, &node));
    pyri_buf_reset(&out);
    leaf.about.label = 5;
    pyri_leaf_encode(key, &leaf, PYR_U8, 1, &chunk, &out);
    OK(pyri_node_open(key, (pyri_bytes){out.data, out.size}, &node));
    pyri_buf_fini(&out);
}

/* --- fragments ----------------------------------------------------------- */

/* Its bytes would be counted as 2^65, that is 0. */
static void
a_fragment_of_more_cells_than_can_be_counted_is_refused(void)
{
    const uint64_t side = UINT64_C(1) << 31;
    pyri_box chunk = {.hi = {side, side}};
    pyri_frag f = {.version = 1, .kind = PYRI_FRAG_PLAIN, .box = chunk,
                   .stored = 8};
    pyri_buf out = {0};
    pyri_frag_encode(&f, 2, &chunk, &out);
    pyri_cursor c = pyri_cursor_of(out.data, out.size);
    FAILS(PYR_ECORRUPT, pyri_frag_decode(&c, 2, &chunk, &f));
    pyri_buf_fini(&out);
}

/* No cells need no memory, and lack of it was what the error said. */
static void
a_pressed_fragment_whose_mask_is_empty_is_damaged(void)
{
    uint8_t payload[8 + 17] = {0};
    pyri_frag f = {.kind = PYRI_FRAG_PRESSED, .masked = true,
                   .box = {.hi = {16}}, .stored = sizeof payload};
    pyri_frag_style style = {.ndim = 1, .type = PYR_F64};
    pyri_buf room = {0};
    const uint8_t *cells, *mask;
    FAILS(PYR_ECORRUPT,
          pyri_frag_expand(&f, &style, payload, &room, &cells, &mask));
    pyri_buf_fini(&room);
}

static void
room_for_no_bytes_is_no_failure(void)
{
    pyri_buf b = {0};
    CHECK(pyri_buf_extend(&b, 0) != NULL);
    pyri_buf_add(&b, NULL, 0);
    OK(pyri_buf_check(&b, "nothing"));
    pyri_buf_fini(&b);
}

/* --- summaries ----------------------------------------------------------- */

static void
more_cells_than_there_are_cannot_be_subtracted(void)
{
    const uint8_t cells[3] = {1, 2, 3};
    pyri_summary few, many;
    pyri_summary_init(&few);
    pyri_summary_init(&many);
    pyri_summary_add(&few, PYR_U8, 0, cells, 2);
    pyri_summary_add(&many, PYR_U8, 0, cells, 3);
    CHECK(!pyri_summary_subtract(&few, PYR_U8, 0, &many, NULL));
    CHECK(few.count == 2);
}

/* --- versions ------------------------------------------------------------ */

static int
decode_claim(uint64_t block, uint64_t count, uint64_t stride, pyri_claim *out)
{
    pyri_buf b = {0};
    pyri_buf_varint(&b, 1); /* runs */
    pyri_buf_u8(&b, 0);     /* no box */
    pyri_buf_varint(&b, 0);
    pyri_buf_varint(&b, block);
    pyri_buf_varint(&b, count);
    pyri_buf_varint(&b, stride);
    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    int err = pyri_claim_decode(&c, 1, out);
    pyri_buf_fini(&b);
    return err;
}

static void
a_claim_whose_blocks_overlap_is_refused(void)
{
    pyri_claim claim;
    FAILS(PYR_ECORRUPT, decode_claim(1, 16, 0, &claim));
    FAILS(PYR_ECORRUPT, decode_claim(3, 2, 2, &claim));
    OK(decode_claim(3, 2, 3, &claim));
    pyri_claim_fini(&claim);
}

static void
one_block_is_where_it_is_whatever_its_stride(void)
{
    pyri_claim claim;
    pyri_box beside = {.lo = {3}, .hi = {4}}, on = {.lo = {0}, .hi = {1}};
    OK(decode_claim(1, 1, 0, &claim));
    CHECK(!pyri_claim_overlaps(&claim, &beside));
    CHECK(pyri_claim_overlaps(&claim, &on));
    pyri_claim_fini(&claim);
}

/* Callers multiply extents, and trust the product. */
static void
a_shape_of_more_cells_than_can_be_counted_is_refused(void)
{
    pyri_form f = {.ndim = 2, .shape = {UINT64_C(1) << 40, 1 << 24}}, got;
    pyri_buf b = {0};
    pyri_form_encode(&f, &b);
    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    FAILS(PYR_ECORRUPT, pyri_form_decode(&c, &got));
    pyri_buf_reset(&b);
    f.shape[1] = 0; /* hides nothing, and is allowed */
    pyri_form_encode(&f, &b);
    c = pyri_cursor_of(b.data, b.size);
    OK(pyri_form_decode(&c, &got));
    pyri_buf_fini(&b);
}

/* --- a catalog ----------------------------------------------------------- */

static pyr_store *store;
static pyr_array *array;

static void
set_up(void)
{
    uint64_t shape = 100, chunk = 10, at = 0;
    uint8_t cells[100] = {1, 2, 3};
    pyr_spec spec = {.ndim = 1, .shape = &shape, .chunk = &chunk,
                     .type = PYR_U8};
    pyr_version v;
    OK(pyr_open("mem:", PYR_OPEN_CREATE, &store));
    OK(pyr_create(store, "x", &spec, &array));
    OK(pyr_write(array, &at, &shape, cells, &v));
}

static void
tear_down(void)
{
    pyr_array_close(array);
    pyr_close(store);
}

/* KIND, the array's id, and more. */
static void
put(const char *kind, const pyr_array *a, const char *more, const void *value,
    size_t size)
{
    uint8_t key[PYRI_MAX_KEY];
    size_t n = strlen(kind);
    memcpy(key, kind, n);
    pyri_store64_be(key + n, a->array->id);
    memcpy(key + n + 8, more, strlen(more));
    pyri_edit edit = {.kind = PYRI_EDIT_PUT,
                      .key = {key, n + 8 + strlen(more)},
                      .value = {value, size}};
    OK(pyri_engine_edit(store->engine, &edit, 1));
}

static void
a_line_of_clones_that_goes_backwards_is_refused(void)
{
    set_up();
    pyri_schema s = array->array->schema, got;
    pyri_buf b = {0};
    s.lineage.n = 3;
    s.lineage.line[1].first = 9;
    s.lineage.line[2].first = 8;
    pyri_schema_encode(&s, &b);
    FAILS(PYR_ECORRUPT,
          pyri_schema_decode((pyri_bytes){b.data, b.size}, &got));
    pyri_buf_fini(&b);
    tear_down();
}

static void
the_record_of_another_array_is_refused(void)
{
    set_up();
    pyr_array *other = NULL;
    pyri_buf b = {0};
    OK(pyr_clone(array, 1, "other", NULL));
    pyri_schema_encode(&array->array->schema, &b);
    OK(pyr_array_open(store, "other", &other));
    put("array/", other, "", b.data, b.size);
    pyr_array_close(other);
    FAILS(PYR_ECORRUPT, pyr_array_open(store, "other", &other));
    pyri_buf_fini(&b);
    tear_down();
}

static int
count_names(void *ctx, const char *name)
{
    (void)name;
    ++*(int *)ctx;
    return 0;
}

static int
count_tags(void *ctx, const char *tag, pyr_version v)
{
    (void)v;
    return count_names(ctx, tag);
}

static void
a_damaged_tag_is_no_other_version(void)
{
    uint8_t before[8] = {0};
    pyr_array *clone;
    pyr_version v;
    int n = 0;
    set_up();
    OK(pyr_clone(array, 1, "clone", &clone));
    put("tag/", clone, "/t", before, 8); /* would be PYR_LATEST */
    FAILS(PYR_ECORRUPT, pyr_tag_version(clone, "t", &v));
    FAILS(PYR_ECORRUPT, pyr_tags(clone, count_tags, &n));
    put("tag/", array, "/t", before, 7);
    FAILS(PYR_ECORRUPT, pyr_tag_version(array, "t", &v));
    CHECK(n == 0);
    pyr_array_close(clone);
    tear_down();
}

static void
a_name_with_a_zero_in_it_is_damaged(void)
{
    uint8_t id[8] = {1};
    int n = 0;
    set_up();
    pyri_edit edit = {.kind = PYRI_EDIT_PUT,
                      .key = {"name/a\0b", 8},
                      .value = {id, 8}};
    OK(pyri_engine_edit(store->engine, &edit, 1));
    FAILS(PYR_ECORRUPT, pyr_arrays(store, count_names, &n));
    tear_down();
}

static void
attributes_that_are_no_json_are_damaged(void)
{
    char *text;
    set_up();
    put("attr/", array, "", "{\"a\":1", 6);
    FAILS(PYR_ECORRUPT, pyr_attributes(array, &text));
    CHECK(text == NULL);
    put("attr/", array, "", "{}\0{}", 5);
    FAILS(PYR_ECORRUPT, pyr_attributes(array, &text));
    tear_down();
}

/* Cells beyond the root were found nowhere, and left as they were in the
 * reader's memory. */
static void
a_tree_that_does_not_reach_the_shape_is_refused(void)
{
    pyri_take take = {.grow_axis = -1};
    pyri_ticket ticket;
    pyri_flights below = {0};
    pyri_buf record = {0};
    uint64_t at = 0, size = 100;
    uint8_t cells[100];
    set_up();
    take.array = array->array->id;
    OK(pyri_engine_take(store->engine, &take, &ticket, &below));
    pyri_record r = {.kind = PYR_KIND_WRITE, .form = array->array->schema.form};
    r.form.norder = 1;
    pyri_record_encode(&r, &record);
    pyri_complete done = {.array = take.array,
                          .version = ticket.version,
                          .shape = ticket.shape,
                          .record = {record.data, record.size}};
    OK(pyri_engine_complete(store->engine, &done));
    FAILS(PYR_ECORRUPT, pyr_read(array, 2, &at, &size, cells));
    OK(pyr_read(array, 1, &at, &size, cells));
    pyri_flights_fini(&below);
    pyri_buf_fini(&record);
    tear_down();
}

TESTS(T(a_node_of_another_version_than_its_name_is_refused),
      T(a_fragment_of_more_cells_than_can_be_counted_is_refused),
      T(a_pressed_fragment_whose_mask_is_empty_is_damaged),
      T(room_for_no_bytes_is_no_failure),
      T(more_cells_than_there_are_cannot_be_subtracted),
      T(a_claim_whose_blocks_overlap_is_refused),
      T(one_block_is_where_it_is_whatever_its_stride),
      T(a_shape_of_more_cells_than_can_be_counted_is_refused),
      T(a_line_of_clones_that_goes_backwards_is_refused),
      T(the_record_of_another_array_is_refused),
      T(a_damaged_tag_is_no_other_version),
      T(a_name_with_a_zero_in_it_is_damaged),
      T(attributes_that_are_no_json_are_damaged),
      T(a_tree_that_does_not_reach_the_shape_is_refused))
