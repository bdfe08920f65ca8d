/*
 * URLs: which engine they pick, what it is handed, and what is refused.
 */
#include "engine/engines.h"
#include "support/check.h"

static pyri_url url;

static bool
gives(const char *text, const pyri_engine_ops *ops, const char *rest)
{
    int err = pyri_engine_parse_url(text, &url);
    if (err == 0 && url.ops == ops && strcmp(url.rest, rest) == 0)
        return true;
    printf("# %s gave %d, \"%s\"\n", text, err, err ? pyr_errmsg() : url.rest);
    return false;
}

static void
a_plain_path_is_a_directory_whatever_is_in_it(void)
{
    const char *paths[] = {"climate.pyr",  "/data/climate", "./mem:x", "a/b:c",
                           "what?is#this", "50%",           "a%41",    "c:",
                           "x:y",          "9p:x",          "FILE:x",  ":",
                           "a b",          "a_b:c",         "//host/a"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        CHECK(gives(paths[i], &pyri_engine_local, paths[i]));
}

static void
a_file_url_is_a_path(void)
{
    CHECK(gives("file:climate.pyr", &pyri_engine_local, "climate.pyr"));
    CHECK(gives("file:/data/climate", &pyri_engine_local, "/data/climate"));
    CHECK(gives("file:///data/climate", &pyri_engine_local, "/data/climate"));
    CHECK(gives("file:///", &pyri_engine_local, "/"));
    CHECK(gives("file:///a?b#c", &pyri_engine_local, "/a?b#c"));
}

static void
the_host_may_be_this_one_only(void)
{
    CHECK(gives("file://localhost/data", &pyri_engine_local, "/data"));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file://elsewhere/data", &url));
    CHECK(strstr(pyr_errmsg(), "elsewhere") != NULL);
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file://localhos/data", &url));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file://localhost2/data", &url));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file://climate.pyr", &url));
}

static void
a_file_url_without_a_path_is_refused(void)
{
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file:", &url));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file://", &url));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("file://localhost", &url));
}

static void
escapes_in_file_urls_are_bytes(void)
{
    CHECK(gives("file:///a%20b", &pyri_engine_local, "/a b"));
    CHECK(gives("file:%41%6a%6A", &pyri_engine_local, "Ajj"));
    CHECK(gives("file:100%25", &pyri_engine_local, "100%"));
    CHECK(gives("file:%2541", &pyri_engine_local, "%41"));
    CHECK(gives("file:%ff%01", &pyri_engine_local, "\xff\x01"));
}

static void
bad_escapes_are_refused(void)
{
    const char *bad[] = {"file:a%",   "file:a%4",   "file:a%4g", "file:a%g4",
                         "file:%%41", "file:a%00b", "file:% 41"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FAILS(PYR_EINVAL, pyri_engine_parse_url(bad[i], &url));
}

static void
a_store_in_memory_has_any_name(void)
{
    CHECK(gives("mem:", &pyri_engine_mem, ""));
    CHECK(gives("mem:scratch", &pyri_engine_mem, "scratch"));
    CHECK(gives("mem:a%20b:c", &pyri_engine_mem, "a%20b:c"));
}

static void
an_unknown_scheme_is_named_with_the_known_ones(void)
{
    FAILS(PYR_EINVAL, pyri_engine_parse_url("s3+http.x-1://bucket", &url));
    CHECK(strstr(pyr_errmsg(), "\"s3+http.x-1:\"") != NULL);
    CHECK(strstr(pyr_errmsg(), "file:, mem:") != NULL);
    FAILS(PYR_EINVAL, pyri_engine_parse_url("memory:x", &url));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("me:x", &url));
}

#ifdef PYRI_HAVE_RADOS
static void
a_cluster_is_a_pool_or_needs_another_build(void)
{
    static const char *const bad[] = {
        "rados:pool",        "rados:",           "rados:///space",
        "rados://?user=me",  "rados://pool?x=1", "rados://pool?conf=",
        "rados://pool/%zz",  "rados://pool/%00", "rados://pool/a?user=%2"};
    OK(pyri_engine_parse_url("rados://pool/space?conf=a&user=b", &url));
    CHECK(strcmp(url.rest, "//pool/space?conf=a&user=b") == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyri_engine *e;
        FAILS(PYR_EINVAL, pyri_engine_open(bad[i], 0, NULL, &e));
        CHECK(e == NULL);
    }
}
#else
static void
a_cluster_is_a_pool_or_needs_another_build(void)
{
    FAILS(PYR_EUNSUPPORTED, pyri_engine_parse_url("rados://pool/space", &url));
    CHECK(strstr(pyr_errmsg(), "no Ceph engine") != NULL);
}
#endif

static void
nothing_and_too_much_are_refused(void)
{
    static char text[PYRI_MAX_URL + 2];
    memset(text, 'a', PYRI_MAX_URL);
    FAILS(PYR_EINVAL, pyri_engine_parse_url(NULL, &url));
    FAILS(PYR_EINVAL, pyri_engine_parse_url("", &url));
    CHECK(gives(text, &pyri_engine_local, text));
    text[PYRI_MAX_URL] = 'a';
    FAILS(PYR_EINVAL, pyri_engine_parse_url(text, &url));
}

static void
flags_that_make_no_sense_are_refused(void)
{
    pyri_engine *e = (pyri_engine *)&url; /* anything: it must become NULL */
    FAILS(PYR_EINVAL, pyri_engine_open("mem:", 4u, NULL, &e));
    CHECK(e == NULL);
    FAILS(PYR_EINVAL, pyri_engine_open("mem:", 0x80000001u, NULL, &e));
    FAILS(PYR_EINVAL,
          pyri_engine_open("mem:", PYR_OPEN_CREATE | PYR_OPEN_READONLY, NULL,
                           &e));
    CHECK(e == NULL);
}

TESTS(T(a_plain_path_is_a_directory_whatever_is_in_it), T(a_file_url_is_a_path),
      T(the_host_may_be_this_one_only), T(a_file_url_without_a_path_is_refused),
      T(escapes_in_file_urls_are_bytes), T(bad_escapes_are_refused),
      T(a_store_in_memory_has_any_name),
      T(an_unknown_scheme_is_named_with_the_known_ones),
      T(a_cluster_is_a_pool_or_needs_another_build),
      T(nothing_and_too_much_are_refused),
      T(flags_that_make_no_sense_are_refused))
