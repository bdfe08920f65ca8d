/*
 * fuzz/catalog_fuzz.c - the catalog: names, tags, attributes.
 *
 * A store in memory has an array with three versions. Input: which record to
 * replace (1: a name, the array's own name, attributes, a tag; bit 7: delete
 * it instead), the length of the new key's end (1), that end, the new value.
 */
#include "fuzz/fuzz.h"

#include "api/handle.h"

enum { VERSIONS = 3 };

static void
put(pyr_store *store, const char *prefix, const uint64_t *id, const void *end,
    size_t end_size, const void *value, size_t size)
{
    uint8_t key[PYRI_MAX_KEY + 300];
    size_t n = strlen(prefix);
    memcpy(key, prefix, n);
    if (id) {
        pyri_store64_be(key + n, *id);
        n += 8;
    }
    if (end_size)
        memcpy(key + n, end, end_size);
    pyri_edit edit = {.kind = value ? PYRI_EDIT_PUT : PYRI_EDIT_DELETE,
                      .key = {key, n + end_size},
                      .value = {value, size}};
    (void)pyri_engine_edit(store->engine, &edit, 1);
}

static int
see_name(void *ctx, const char *name)
{
    pyr_store *store = ctx;
    pyr_array *array;
    MUST(strlen(name) >= 1 && strlen(name) <= PYR_MAX_NAME);
    int err = pyr_array_open(store, name, &array);
    MUST(err <= 0 && (err == 0) == (array != NULL));
    pyr_array_close(array);
    return 0;
}

static int
see_tag(void *ctx, const char *tag, pyr_version version)
{
    pyr_array *array = ctx;
    pyr_version again;
    pyr_info info;
    MUST(strlen(tag) >= 1 && strlen(tag) <= PYR_MAX_NAME);
    int err = pyr_tag_version(array, tag, &again);
    MUST(err < 0 || again == version);
    MUST(version != PYR_LATEST); /* that would be another version each time */
    err = pyr_array_info(array, version, &info);
    MUST(version <= VERSIONS ? err == 0 : err == PYR_ENOVERSION);
    return 0;
}

static void
look(pyr_store *store)
{
    pyr_array *array;
    char *attributes;
    int err = pyr_arrays(store, see_name, store);
    if (err < 0)
        must_refuse(err);
    if ((err = pyr_array_open(store, "x", &array)) < 0) {
        MUST(err == PYR_ECORRUPT || err == PYR_ENOTFOUND);
        return;
    }
    if ((err = pyr_tags(array, see_tag, array)) < 0)
        must_refuse(err);
    if ((err = pyr_attributes(array, &attributes)) < 0) {
        must_refuse(err);
        MUST(attributes == NULL);
    } else {
        MUST(pyri_check_json(attributes) == 0);
    }
    free(attributes);
    pyr_array_close(array);
}

static uint64_t
make(pyr_store *store)
{
    uint64_t four = 4;
    uint8_t cells[4] = {1, 2, 3, 4};
    pyr_array *array;
    pyr_version v;
    pyr_spec spec = {.ndim = 1, .shape = &four, .chunk = &four, .type = PYR_U8};
    MUST(pyr_create(store, "x", &spec, &array) == 0);
    for (int i = 0; i < VERSIONS; i++)
        MUST(pyr_write(array, &(uint64_t){0}, &four, cells, &v) == 0);
    MUST(pyr_tag(array, "t", 2) == 0);
    uint64_t id = array->array->id;
    pyr_array_close(array);
    return id;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    static const char *const prefixes[] = {"name/", "name/x", "attr/", "tag/"};
    pyri_cursor in = pyri_cursor_of(data, data_size);
    pyr_store *store;
    fuzz_seed(1);
    MUST(pyr_open("mem:", PYR_OPEN_CREATE, &store) == 0);
    uint64_t id = make(store);
    while (!in.failed && in.at < in.end) {
        uint8_t how = pyri_cursor_u8(&in);
        int which = how & 3;
        size_t end_size = which == 0 || which == 3 ? pyri_cursor_u8(&in) : 0;
        const uint8_t *end = pyri_cursor_take(&in, end_size);
        size_t size = how & 4 ? 8 : pyri_cursor_u8(&in);
        const uint8_t *value = pyri_cursor_take(&in, size);
        if (!end || !value)
            break;
        put(store, prefixes[which], which < 2 ? NULL : &id, end, end_size,
            how & 0x80 ? NULL : value, size);
    }
    look(store);
    pyr_close(store);
    return 0;
}
