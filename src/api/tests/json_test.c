/*
 * Attributes: what is one JSON object, and what is not.
 */
#include "api/handle.h"
#include "support/check.h"

static void
objects_are_taken(void)
{
    static const char *const good[] = {
        "{}", " \t\r\n{ } \n", "{\"a\":1}", "{\"a\" : [ ] , \"b\":{}}",
        "{\"a\":[1,2,[3,{\"b\":null}],true,false]}",
        "{\"\":\"\"}", "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\"}",
        "{\"a\":-0.5e+10,\"b\":0,\"c\":-1E3,\"d\":10.25}",
        "{\"\xc3\xa4\":\"\xe2\x82\xac \xf0\x9f\x8c\x8a\"}",
        "{\"a\":1,\"a\":2}",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        OK(pyri_check_json(good[i]));
}

static void
anything_else_is_refused(void)
{
    static const char *const bad[] = {
        "", " ", "1", "\"a\"", "[]", "null", "{", "}", "{}{}", "{} x", "{a:1}",
        "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}",
        "{\"a\":[1,]}", "{\"a\":[1}", "{\"a\":[}", "{'a':1}", "{1:1}",
        "{\"a\":01}", "{\"a\":+1}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":1e}",
        "{\"a\":-}", "{\"a\":0x1}", "{\"a\":NaN}", "{\"a\":Infinity}",
        "{\"a\":tru}", "{\"a\":TRUE}", "{\"a\":nulll}",
        "{\"a\":\"", "{\"a\":\"\\", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u123g\"}", "{\"a\":\"\n\"}", "{\"a\":\"\x01\"}",
        "{\"a\":\"\xff\"}", "{\"a\":\"\xc3\"}", "{\"a\":\"\xc0\x80\"}",
        "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xf4\x90\x80\x80\"}",
        "\xef\xbb\xbf{}", "{\"a\":1}\f", "// x\n{}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int err = pyri_check_json(bad[i]);
        if (err != PYR_EINVAL)
            CHECK_NOTE("%s gave %d", bad[i], err);
    }
}

/* Every beginning of an object is none; memory of just that size, so that a
 * checker sees a step beyond the end. */
static void
a_text_cut_short_is_refused(void)
{
    static const char text[] =
        "{\"a\": [1.5e-3, \"\\u00e4 \xe2\x82\xac\", {\"b\": [null, true]}]}";
    OK(pyri_check_json(text));
    for (size_t size = 0; size + 1 < sizeof text; size++) {
        char *exact = malloc(size + 1);
        REQUIRE(exact);
        memcpy(exact, text, size);
        exact[size] = 0;
        FAILS(PYR_EINVAL, pyri_check_json(exact));
        free(exact);
    }
}

static void
nests(char *text, int depth)
{
    char *at = text + sprintf(text, "{\"a\":");
    for (int i = 0; i < depth; i++)
        *at++ = '[';
    for (int i = 0; i < depth; i++)
        *at++ = ']';
    strcpy(at, "}");
}

static void
nesting_without_end_is_refused(void)
{
    static char text[400100];
    nests(text, 60);
    OK(pyri_check_json(text));
    nests(text, 65);
    FAILS(PYR_EINVAL, pyri_check_json(text));
    nests(text, 200000);
    FAILS(PYR_EINVAL, pyri_check_json(text));
}

static void
the_message_tells_where(void)
{
    FAILS(PYR_EINVAL, pyri_check_json("{\"a\": x}"));
    CHECK(strstr(pyr_errmsg(), "byte 6"));
}

TESTS(T(objects_are_taken), T(anything_else_is_refused),
      T(a_text_cut_short_is_refused), T(nesting_without_end_is_refused),
      T(the_message_tells_where))
