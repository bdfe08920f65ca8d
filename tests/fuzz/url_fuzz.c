/*
 * fuzz/url_fuzz.c - URLs of stores.
 *
 * Input: the text.
 */
#include "fuzz/fuzz.h"

#include "engine/engines.h"

/* Written with every byte escaped, a path is the same path. */
static void
escape_all(const char *path)
{
    static char url[3 * PYRI_MAX_URL + 8];
    static pyri_url again;
    size_t n = (size_t)sprintf(url, "file:");
    for (; *path && n + 3 < PYRI_MAX_URL; path++)
        n += (size_t)sprintf(url + n, "%%%02x", (unsigned char)*path);
    if (*path)
        return;
    MUST(pyri_engine_parse_url(url, &again) == 0);
    MUST(again.ops == &pyri_engine_local);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pyri_url url, again;
    pyri_cursor in = pyri_cursor_of(data, size);
    char *text = take_text(&in);
    int err = pyri_engine_parse_url(text, &url);
    if (err < 0) {
        MUST(err == PYR_EINVAL || err == PYR_EUNSUPPORTED);
        MUST(pyr_errmsg()[0] != 0);
    } else {
        MUST(strlen(url.rest) <= strlen(text));
        MUST(url.ops == &pyri_engine_local || url.ops == &pyri_engine_mem ||
             strcmp(url.ops->scheme, "rados") == 0);
        if (url.ops == &pyri_engine_local) {
            MUST(url.rest[0] != 0);
            escape_all(url.rest);
            if (url.rest[0] == '/') { /* such a path is taken as it is */
                MUST(pyri_engine_parse_url(url.rest, &again) == 0);
                MUST(strcmp(again.rest, url.rest) == 0);
            }
        }
    }
    free(text);
    return 0;
}
