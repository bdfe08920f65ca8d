/*
 * Records of versions: they come back whole, and damage is noticed.
 */
#include "base/bytes.h"
#include "base/hash.h"
#include "support/check.h"
#include "version/version.h"

#include <unistd.h>

/* A record with something in every field; the buffer is what is stored. */
static void
make(pyri_record *r, pyri_buf *out)
{
    const uint64_t chunk[2] = {10, 10};
    const uint64_t shape[2] = {1000, 70}, less[2] = {9, 80};
    const pyri_run box = {{3, 4}, {5, 6}, {1, 1}, {5, 6}};
    const pyri_run run = {{0, 1}, {1, 2}, {3, 4}, {2, 5}};
    *r = (pyri_record){.kind = PYR_KIND_COMPUTE,
                       .root = 41,
                       .root_level = 3,
                       .claim = {.ndim = 2},
                       .time_ns = 1234567890123456789,
                       .source = 17,
                       .who = "me@here:1",
                       .message = "a message",
                       .expression = "a + b"};
    OK(pyri_form_init(&r->form, 2, shape, chunk));
    OK(pyri_form_change(&r->form, 40, less, chunk));
    OK(pyri_claim_add(&r->claim, &box));
    OK(pyri_claim_add(&r->claim, &run));
    *out = (pyri_buf){0};
    pyri_record_encode(r, out);
    OK(pyri_buf_check(out, "a record"));
}

static pyri_bytes
bytes_of(const pyri_buf *b)
{
    return (pyri_bytes){b->data, b->size};
}

static void
check_root(const pyri_record *r, const pyri_record *back)
{
    CHECK(back->kind == r->kind && back->root == r->root);
    CHECK(back->root_level == r->root_level && back->form.ndim == 2);
    CHECK(back->form.shape[0] == 9 && back->form.shape[1] == 80);
    CHECK(back->form.norder == r->form.norder);
    REQUIRE(back->form.ncuts == 1);
    CHECK(back->form.cuts[0].label == 40 && back->form.cuts[0].extent == 9);
}

static void
a_record_survives_being_stored(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    OK(pyri_record_decode(bytes_of(&b), &back));
    check_root(&r, &back);
    CHECK(back.time_ns == r.time_ns && back.source == r.source);
    CHECK(strcmp(back.who, r.who) == 0);
    CHECK(strcmp(back.message, r.message) == 0);
    CHECK(strcmp(back.expression, r.expression) == 0);
    REQUIRE(back.claim.n == 2);
    for (int d = 0; d < 2; d++)
        CHECK(back.claim.runs[1].start[d] == r.claim.runs[1].start[d] &&
              back.claim.runs[1].stride[d] == r.claim.runs[1].stride[d]);
    pyri_record_fini(&back);
    CHECK(!back.form.cuts && !back.claim.runs && !back.texts.data);
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

static void
reading_needs_the_root_and_the_form_only(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    OK(pyri_record_decode_root(bytes_of(&b), &back));
    check_root(&r, &back);
    pyri_record_fini(&back);
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

static void
texts_that_were_not_given_come_back_empty(void)
{
    const uint64_t one[1] = {1};
    pyri_record r = {.kind = PYR_KIND_WRITE, .claim = {.ndim = 1}}, back;
    pyri_buf b = {0};
    OK(pyri_form_init(&r.form, 1, one, one));
    pyri_record_encode(&r, &b);
    OK(pyri_record_decode(bytes_of(&b), &back));
    CHECK(!*back.who && !*back.message && !*back.expression);
    CHECK(back.claim.n == 0 && back.root == 0);
    pyri_record_fini(&back);
    pyri_buf_fini(&b);
}

static void
records_in_one_buffer_do_not_disturb_each_other(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    size_t first = b.size;
    pyri_record_encode(&r, &b);
    CHECK(b.size == 2 * first);
    OK(pyri_record_decode((pyri_bytes){b.data + first, first}, &back));
    pyri_record_fini(&back);
    OK(pyri_record_decode((pyri_bytes){b.data, first}, &back));
    pyri_record_fini(&back);
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

static void
every_flipped_bit_is_noticed(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    for (size_t i = 0; i < 8 * b.size; i++) {
        b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        FAILS(PYR_ECORRUPT, pyri_record_decode(bytes_of(&b), &back));
        FAILS(PYR_ECORRUPT, pyri_record_decode_root(bytes_of(&b), &back));
        b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
    }
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

static void
a_record_cut_short_is_refused(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    for (size_t size = 0; size < b.size; size++)
        FAILS(PYR_ECORRUPT,
              pyri_record_decode((pyri_bytes){b.data, size}, &back));
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

/* Bytes that someone made up and gave a good checksum. */
static void
a_forged_record_is_refused_or_harmless(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    for (size_t size = b.size; size >= 8; size--)
        for (size_t i = 8; i < size; i++)
            for (int k = 0; k < 3; k++) {
                static const uint8_t stamps[] = {0x00, 0x80, 0xff};
                uint8_t *exact = malloc(size);
                REQUIRE(exact);
                memcpy(exact, b.data, size);
                exact[i] ^= stamps[k];
                pyri_store64(exact, pyri_hash64(exact + 8, size - 8));
                int err = pyri_record_decode((pyri_bytes){exact, size}, &back);
                if (err == 0) {
                    REQUIRE(size == b.size || stamps[k]);
                    REQUIRE(strlen(back.who) + strlen(back.message) +
                                strlen(back.expression) + 3 <=
                            back.texts.size);
                    pyri_record_fini(&back);
                } else if (err != PYR_EFORMAT) {
                    REQUIRE(err == PYR_ECORRUPT);
                }
                free(exact);
            }
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

static void
a_record_of_a_newer_format_says_so(void)
{
    pyri_record r, back;
    pyri_buf b;
    make(&r, &b);
    b.data[8] = 2;
    pyri_store64(b.data, pyri_hash64(b.data + 8, b.size - 8));
    FAILS(PYR_EFORMAT, pyri_record_decode(bytes_of(&b), &back));
    pyri_record_fini(&r);
    pyri_buf_fini(&b);
}

static void
who_names_this_process(void)
{
    char pid[32];
    snprintf(pid, sizeof pid, ":%ld", (long)getpid());
    const char *at = strrchr(pyri_record_who(), ':');
    REQUIRE(at && strcmp(at, pid) == 0);
    CHECK(strchr(pyri_record_who(), '@'));
}

/* --- lines of clones ----------------------------------------------------- */

static void
a_label_belongs_to_the_array_that_made_it(void)
{
    /* 100 made 1 to 9, of which 101 knows 5; 102 is a clone of its first */
    const pyri_lineage l = {4, {{100, 0}, {101, 5}, {102, 6}, {103, 30}}};
    static const struct {
        uint64_t label, array;
    } made[] = {{0, 100},  {1, 100},  {5, 100},  {6, 101},         {7, 102},
                {29, 102}, {30, 102}, {31, 103}, {UINT64_MAX, 103}};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        CHECK(pyri_lineage_owner(&l, made[i].label) == made[i].array);
}

static void
an_array_that_is_no_clone_made_all_its_labels(void)
{
    const pyri_lineage l = {1, {{7, 0}}};
    CHECK(pyri_lineage_owner(&l, 0) == 7 && pyri_lineage_owner(&l, 99) == 7);
}

static void
a_clone_of_version_0_owns_all_but_that(void)
{
    const pyri_lineage l = {2, {{7, 0}, {8, 0}}};
    CHECK(pyri_lineage_owner(&l, 0) == 7 && pyri_lineage_owner(&l, 1) == 8);
}

static void
the_longest_line_is_followed_to_its_end(void)
{
    pyri_lineage l = {.n = PYRI_MAX_LINE};
    for (uint64_t i = 0; i < PYRI_MAX_LINE; i++)
        l.line[i] = (pyri_ancestor){1000 + i, 3 * i};
    for (uint64_t label = 1; label < 3 * PYRI_MAX_LINE; label++)
        CHECK(pyri_lineage_owner(&l, label) == 1000 + (label - 1) / 3);
}

TESTS(T(a_record_survives_being_stored),
      T(reading_needs_the_root_and_the_form_only),
      T(texts_that_were_not_given_come_back_empty),
      T(records_in_one_buffer_do_not_disturb_each_other),
      T(every_flipped_bit_is_noticed), T(a_record_cut_short_is_refused),
      T(a_forged_record_is_refused_or_harmless),
      T(a_record_of_a_newer_format_says_so), T(who_names_this_process),
      T(a_label_belongs_to_the_array_that_made_it),
      T(an_array_that_is_no_clone_made_all_its_labels),
      T(a_clone_of_version_0_owns_all_but_that),
      T(the_longest_line_is_followed_to_its_end))
