/*
 * examples/hello.c - a whole program: create, write, read the present and the
 * past. Its argument is the store to make: a new directory, or mem:hello.
 */
#include <pyramid/pyramid.h>

#include <stdio.h>

int
main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "hello.pyr";
    uint64_t shape[2] = {8192, 8192}, offset[2] = {10, 20}, size[2] = {2, 2};
    double cells[4] = {1, 2, 3, 4}, now[4], before[4];
    pyr_spec spec = {.ndim = 2, .shape = shape, .type = PYR_F64};
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    pyr_version made;

    if (pyr_open(url, PYR_OPEN_CREATE, &store) < 0 ||
        pyr_create(store, "hello", &spec, &array) < 0 ||
        pyr_write(array, offset, size, cells, &made) < 0 ||
        pyr_read(array, made, offset, size, now) < 0 ||
        pyr_read(array, made - 1, offset, size, before) < 0) {
        fprintf(stderr, "hello: %s\n", pyr_errmsg());
        return 1;
    }
    printf("version %d: %g %g %g %g\n", (int)made, now[0], now[1], now[2],
           now[3]);
    printf("version %d: %g %g %g %g\n", (int)made - 1, before[0], before[1],
           before[2], before[3]);
    pyr_array_close(array);
    pyr_close(store);
    return now[0] == 1 && now[3] == 4 && before[0] == 0 ? 0 : 1;
}
