/*
 * fuzz/json_fuzz.c - JSON: the check of attributes, and what the tool prints.
 *
 * Input: the text, taken as a JSON object and as a string to be printed.
 */
#include "fuzz/fuzz.h"

#include "api/handle.h"
#include "cmd.h"

enum { DEEPEST = 64 };

/* Of a text that was accepted: brackets match outside of strings, and all of
 * it is UTF-8 without control characters inside strings. */
static bool
is_sane(const char *text)
{
    char open[DEEPEST];
    int depth = 0;
    bool quoted = false;
    for (const char *p = text; *p;) {
        size_t n = pyri_utf8_length(p);
        if (n == 0 || (n > 1 && !quoted))
            return false;
        if (quoted && *p == '\\')
            n = 2;
        else if (quoted && (unsigned char)*p < ' ')
            return false;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && (*p == '{' || *p == '[')) {
            if (depth == DEEPEST)
                return false;
            open[depth++] = *p == '{' ? '}' : ']';
        } else if (!quoted && (*p == '}' || *p == ']') &&
                   (depth == 0 || open[--depth] != *p))
            return false;
        p += n;
    }
    return depth == 0 && !quoted;
}

static void
check_accepted(const char *text)
{
    char *more;
    MUST(is_sane(text));
    MUST(asprintf(&more, " %s\n", text) > 0);
    MUST(pyri_check_json(more) == 0);
    free(more);
    MUST(asprintf(&more, "%s}", text) > 0);
    MUST(pyri_check_json(more) == PYR_EINVAL);
    free(more);
    MUST(asprintf(&more, "{\"a\":%s", text) > 0);
    MUST(pyri_check_json(more) == PYR_EINVAL);
    free(more);
}

/* Whatever text the tool prints, it prints JSON. */
static void
check_printed(const char *text, size_t size)
{
    uint64_t list[4] = {0, 1, UINT64_MAX, size};
    json j;
    MUST(json_begin(&j) == 0);
    json_open(&j, NULL, '{');
    json_text(&j, text, text);
    json_list(&j, "list", 4, list);
    json_bool(&j, "bool", size & 1);
    if (size >= 8) {
        double value;
        memcpy(&value, text, sizeof value);
        json_f64(&j, "f64", value);
        int64_t ns;
        memcpy(&ns, text, sizeof ns);
        json_i64(&j, "i64", ns);
        json_time(&j, "time", ns);
    }
    json_shut(&j, '}');
    MUST(fflush(j.out) == 0 && pyri_check_json(j.text) == 0);
    json_drop(&j);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size);
    char *text = take_text(&in);
    int err = pyri_check_json(text);
    if (err == 0) {
        check_accepted(text);
    } else {
        MUST(err == PYR_EINVAL && pyr_errmsg()[0]);
    }
    check_printed(text, size);
    free(text);
    return 0;
}
