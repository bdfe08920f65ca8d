/*
 * tests/cli/parse_test.c - text that people and files bring: boxes, .npy
 * headers, numbers.
 */
#include "support/check.h"

#include "box.c"
#include "number.c"
#undef COUNT

/* npy.c has helpers of the same names as box.c. */
#define take npy_take
#define measure npy_measure
#include "npy.c"
#undef take
#undef measure
#include "slab.c"

static char why[WHY_SIZE];

/* "start+count*step" for each axis, '!' behind it if it is dropped. */
static const char *
boxed(const char *text, int ndim, const uint64_t *shape)
{
    static char out[400];
    box b;
    int err = box_parse(text, ndim, shape, &b, why);
    if (err)
        return err == MISUSED ? "misused" : "failed";
    size_t n = 0;
    for (int d = 0; d < ndim; d++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%llu+%llu*%llu%s",
                              d ? "," : "", (unsigned long long)b.start[d],
                              (unsigned long long)b.count[d],
                              (unsigned long long)b.step[d],
                              b.dropped[d] ? "!" : "");
    return out;
}

#define BOX(text, want)                                                        \
    do {                                                                       \
        const char *got = boxed(text, 2, (uint64_t[]){10, 20});                \
        if (strcmp(got, want) != 0)                                            \
            CHECK_NOTE("box '%s' is %s, not %s", (text) ? (text) : "NULL",     \
                       got, want);                                             \
    } while (0)

static void
boxes_are_numpy_slices(void)
{
    BOX(NULL, "0+10*1,0+20*1");
    BOX(":", "0+10*1,0+20*1");
    BOX("...", "0+10*1,0+20*1");
    BOX("2:5", "2+3*1,0+20*1");
    BOX("2:5,3:4", "2+3*1,3+1*1");
    BOX("5", "5+1*1!,0+20*1");
    BOX("-1,-2", "9+1*1!,18+1*1!");
    BOX("...,7", "0+10*1,7+1*1!");
    BOX("7,...", "7+1*1!,0+20*1");
    BOX("1,...,2", "1+1*1!,2+1*1!");
    BOX("-3:,:-18", "7+3*1,0+2*1");
    BOX("-100:100", "0+10*1,0+20*1");
    BOX("8:100", "8+2*1,0+20*1");
    BOX("50:60", "10+0*1,0+20*1");
    BOX("5:2", "5+0*1,0+20*1");
    BOX("::3", "0+4*3,0+20*1");
    BOX("1::3,::7", "1+3*3,0+3*7");
    BOX("::100", "0+1*1,0+20*1");
    BOX("::1", "0+10*1,0+20*1");
    BOX(" 1 : 2 , 3 ", "1+1*1,3+1*1!");
    BOX("+1:+2", "1+1*1,0+20*1");
    BOX("::18446744073709551615", "0+1*1,0+20*1");
    BOX("18446744073709551615:", "10+0*1,0+20*1");
}

static void
boxes_that_make_no_sense_are_refused(void)
{
    BOX("", "misused");
    BOX(",", "misused");
    BOX("1,", "misused");
    BOX("1:2:3:4", "misused");
    BOX("a", "misused");
    BOX("1:b", "misused");
    BOX("--1", "misused");
    BOX("-", "misused");
    BOX("1 2", "misused");
    BOX("....", "misused");
    BOX("...,...", "misused");
    BOX("...5", "misused");
    BOX("::0", "misused");
    BOX("::-1", "misused");
    BOX("18446744073709551616", "misused");
    BOX("99999999999999999999999999", "misused");
    BOX("10", "failed");
    BOX("-11", "failed");
    BOX("0,20", "failed");
    BOX("1,2,3", "failed");
    BOX(":,:,...,:", "failed");
    CHECK(strstr(why, "more than 2 axes") != NULL);
}

static int
parse(const char *text, npy *out)
{
    return npy_header(text, strlen(text), out, why);
}

static void
npy_headers_are_read(void)
{
    npy n;
    OK(parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n",
             &n));
    CHECK(n.type == PYR_F64 && !n.fortran && n.ndim == 2);
    CHECK(n.shape[0] == 3 && n.shape[1] == 4);
    CHECK(n.cells == 12 && n.bytes == 96);
    OK(parse("{\"shape\":(7,),\"fortran_order\":True,\"descr\":\"|b1\"}", &n));
    CHECK(n.type == PYR_U8 && n.fortran && n.ndim == 1 && n.bytes == 7);
    OK(parse("{'descr':'=i4','fortran_order':False,'shape':()}", &n));
    CHECK(n.ndim == 0 && n.cells == 1 && n.bytes == 4 && !n.swap);
    OK(parse("{'descr':'>u2','fortran_order':False,'shape':(3L, 2L,)}", &n));
    CHECK(n.type == PYR_U16 && n.swap == machine_is_little());
    OK(parse("{'descr':'<i1','fortran_order':False,'shape':(0, 9)}", &n));
    CHECK(n.cells == 0 && n.bytes == 0 && !n.swap);
}

static void
npy_headers_that_lie_are_refused(void)
{
    static const char *const bad[] = {
        "",
        "{",
        "}",
        "{}",
        "[]",
        "{'descr': '<f8'}",
        "{'descr'",
        "{'descr':",
        "{'descr':'<f8','fortran_order':False,'shape':(3)}",
        "{'descr':'<f8','fortran_order':False,'shape':(3,)} x",
        "{'descr':'<f8','fortran_order':False,'shape':(3,)}{}",
        "{'descr':'<f8','fortran_order':False,'shape':(-3,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(3.0,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(3,,4)}",
        "{'descr':'<f8','fortran_order':False,'shape':(3 4)}",
        "{'descr':'<f8','fortran_order':False,'shape':[3,4]}",
        "{'descr':'<f8','fortran_order':0,'shape':(3,)}",
        "{'descr':'<f8','fortran_order':Fals,'shape':(3,)}",
        "{'descr':'<f8','descr':'<f8','fortran_order':False,'shape':(3,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(3,),'x':1}",
        "{'descr':'<f8' 'fortran_order':False,'shape':(3,)}",
        "{'descr':'<f16','fortran_order':False,'shape':(3,)}",
        "{'descr':'<f2','fortran_order':False,'shape':(3,)}",
        "{'descr':'|f8','fortran_order':False,'shape':(3,)}",
        "{'descr':'|O','fortran_order':False,'shape':(3,)}",
        "{'descr':'<c8','fortran_order':False,'shape':(3,)}",
        "{'descr':'','fortran_order':False,'shape':(3,)}",
        "{'descr':'<','fortran_order':False,'shape':(3,)}",
        "{'descr':'<\\x66','fortran_order':False,'shape':(3,)}",
        "{'descr':[('a','<f8')],'fortran_order':False,'shape':(3,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(4294967296,4294967296)}",
        "{'descr':'<f8','fortran_order':False,'shape':(0,4294967296,"
        "4294967296)}",
        "{'descr':'<f8','fortran_order':False,'shape':(2305843009213693952,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(18446744073709551616,)"
        "}",
        "{'descr':'<f8','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1)}",
    };
    npy n;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why[0] = 0;
        if (parse(bad[i], &n) == 0 || !why[0])
            CHECK_NOTE("taken: %s", bad[i]);
    }
}

static void
npy_headers_cut_anywhere_are_refused(void)
{
    const char *whole =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4)}";
    npy n;
    for (size_t length = 0; length < strlen(whole); length++) {
        char *part = malloc(length + 1); /* so that a checker sees the end */
        REQUIRE(part);
        memcpy(part, whole, length);
        CHECK(npy_header(part, length, &n, why) < 0);
        free(part);
    }
}

static void
npy_prefixes_know_three_formats(void)
{
    size_t start = 0, length = 0;
    const uint8_t v1[12] = "\x93NUMPY\x01\x00\x76\x00";
    const uint8_t v3[12] = "\x93NUMPY\x03\x00\x76\x01\x00\x00";
    const uint8_t v4[12] = "\x93NUMPY\x04\x00\x76\x00";
    const uint8_t huge[12] = "\x93NUMPY\x02\x00\xff\xff\xff\xff";
    OK(npy_prefix(v1, 10, &start, &length, why));
    CHECK(start == 10 && length == 0x76);
    OK(npy_prefix(v3, 12, &start, &length, why));
    CHECK(start == 12 && length == 0x176);
    CHECK(npy_prefix(v3, 10, &start, &length, why) < 0);
    CHECK(npy_prefix(v4, 12, &start, &length, why) < 0);
    CHECK(npy_prefix(huge, 12, &start, &length, why) < 0);
    CHECK(npy_prefix(v1, 9, &start, &length, why) < 0);
}

static void
npy_headers_we_write_can_be_read(void)
{
    uint64_t shape[PYR_MAX_DIMS];
    char out[NPY_MAX_OWN];
    for (int ndim = 0; ndim <= PYR_MAX_DIMS; ndim++) {
        for (int type = PYR_I8; type <= PYR_F64; type++) {
            for (int d = 0; d < ndim; d++)
                shape[d] = d == 0 ? 0 : (uint64_t)d;
            size_t n = npy_format((pyr_type)type, ndim, shape, out);
            size_t start = 0, length = 0;
            npy back;
            CHECK(n % 64 == 0 && n <= sizeof out && out[n - 1] == '\n');
            OK(npy_prefix((uint8_t *)out, 12, &start, &length, why));
            CHECK(start + length == n);
            OK(npy_header(out + start, length, &back, why));
            CHECK((int)back.type == type && back.ndim == ndim && !back.swap);
            CHECK(memcmp(back.shape, shape, (size_t)ndim * 8) == 0);
        }
    }
    for (int d = 0; d < PYR_MAX_DIMS; d++)
        shape[d] = UINT64_MAX;
    CHECK(npy_format(PYR_F64, PYR_MAX_DIMS, shape, out) <= sizeof out);
}

static void
cells_keep_the_range_of_their_type(void)
{
    uint8_t out[8];
    CHECK(parse_cell("-128", PYR_I8, out, why) == 0 && out[0] == 0x80);
    CHECK(parse_cell("-129", PYR_I8, out, why) < 0);
    CHECK(parse_cell("127", PYR_I8, out, why) == 0);
    CHECK(parse_cell("128", PYR_I8, out, why) < 0);
    CHECK(parse_cell("255", PYR_U8, out, why) == 0 && out[0] == 255);
    CHECK(parse_cell("256", PYR_U8, out, why) < 0);
    CHECK(parse_cell("-1", PYR_U64, out, why) < 0);
    CHECK(parse_cell("18446744073709551615", PYR_U64, out, why) == 0);
    CHECK(parse_cell("18446744073709551616", PYR_U64, out, why) < 0);
    CHECK(parse_cell("-9223372036854775808", PYR_I64, out, why) == 0);
    CHECK(parse_cell("1.5", PYR_I32, out, why) < 0);
    CHECK(parse_cell("", PYR_F64, out, why) < 0);
    CHECK(parse_cell("1.5x", PYR_F64, out, why) < 0);
    CHECK(parse_cell("nan", PYR_F32, out, why) == 0);
}

static void
extents_are_read_to_their_end(void)
{
    extents e;
    OK(parse_extents("0000000000000000000000000000012,3", &e, why));
    CHECK(e.n == 2 && e.of[0] == 12 && e.of[1] == 3);
    CHECK(parse_extents("00000000000000000000000000000x", &e, why) < 0);
    CHECK(parse_extents("1,,2", &e, why) < 0);
}

static void
slabs_cover_a_box_in_order(void)
{
    const uint64_t shape[3] = {3, 700, 100000}, start[3] = {0, 5, 0};
    const uint64_t chunk[3] = {1, 16, 1000};
    uint64_t next = 0;
    slabs s;
    slabs_begin(&s, 3, shape, 8, start, chunk);
    while (slabs_next(&s)) {
        uint64_t at = (s.offset[0] * 700 + s.offset[1]) * 100000 + s.offset[2];
        CHECK(at == next && s.cells <= slabs_most_cells(&s));
        CHECK(s.cells == s.size[0] * s.size[1] * s.size[2]);
        CHECK(s.cells * 8 <= SLAB_LIMIT);
        next += s.cells;
    }
    CHECK(next == 3ull * 700 * 100000);
}

static void
slabs_end_where_chunks_do(void)
{
    const uint64_t shape[2] = {1000, 1 << 16}, start[2] = {30, 0};
    const uint64_t chunk[2] = {100, 100};
    slabs s;
    slabs_begin(&s, 2, shape, 8, start, chunk);
    CHECK(s.whole_chunks);
    while (slabs_next(&s))
        if (s.offset[0] + s.size[0] < 1000)
            CHECK((30 + s.offset[0] + s.size[0]) % 100 == 0);
}

static void
slabs_of_nothing_are_none(void)
{
    slabs s;
    slabs_begin(&s, 2, (uint64_t[]){5, 0}, 8, NULL, NULL);
    CHECK(!slabs_next(&s));
    slabs_begin(&s, 0, NULL, 8, NULL, NULL);
    CHECK(slabs_next(&s) && s.cells == 1 && !slabs_next(&s));
}

TESTS(T(boxes_are_numpy_slices), T(boxes_that_make_no_sense_are_refused),
      T(npy_headers_are_read), T(npy_headers_that_lie_are_refused),
      T(npy_headers_cut_anywhere_are_refused),
      T(npy_prefixes_know_three_formats), T(npy_headers_we_write_can_be_read),
      T(cells_keep_the_range_of_their_type), T(extents_are_read_to_their_end),
      T(slabs_cover_a_box_in_order),
      T(slabs_end_where_chunks_do), T(slabs_of_nothing_are_none))
