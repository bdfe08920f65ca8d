/*
 * examples/difference.c - how far did a simulation get in a step?
 *
 * Each time step is a version of one array. The difference of two steps is a
 * function of both; whether it has come to rest is a reduction, which makes no
 * version at all.
 */
#include <pyramid/pyramid.h>

#include "scratch.h"

#include <math.h>

enum { N = 128 };

static void
check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "difference: %s: %s\n", what, pyr_errmsg());
    exit(1);
}

/* Heat on a plate whose left edge is kept at 100, one step after another. */
static double plate[N][N];

static void
step(void)
{
    static double next[N][N];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            double up = plate[i ? i - 1 : 0][k];
            double down = plate[i < N - 1 ? i + 1 : i][k];
            double left = k ? plate[i][k - 1] : 100;
            double right = plate[i][k < N - 1 ? k + 1 : k];
            next[i][k] = (up + down + left + right) / 4;
        }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            plate[i][k] = next[i][k];
}

int
main(void)
{
    const uint64_t shape[2] = {N, N}, chunk[2] = {32, 32}, origin[2] = {0, 0};
    pyr_spec spec = {
        .ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_F64};
    pyr_store *store;
    pyr_array *steps, *changes;
    pyr_version before = 0, now, made;
    double last = INFINITY;
    char function[100];

    check(pyr_open(scratch_store(), PYR_OPEN_CREATE, &store) == 0, "open");
    check(pyr_create(store, "steps", &spec, &steps) == 0, "create");
    for (int i = 0; i < 5; i++, before = now) {
        pyr_value most, where;
        step();
        check(pyr_write(steps, origin, shape, plate, &now) == 0, "write");
        snprintf(function, sizeof function, "max(abs(x - x@%llu))",
                 (unsigned long long)before);
        check(pyr_reduce(steps, now, origin, shape, function, &most) == 0,
              "reduce");
        snprintf(function, sizeof function, "argmax(abs(x - x@%llu))",
                 (unsigned long long)before);
        check(pyr_reduce(steps, now, origin, shape, function, &where) == 0,
              "reduce");
        printf("step %llu: at most %.3f, at %llu, %llu\n",
               (unsigned long long)now, most.real,
               (unsigned long long)where.at[0],
               (unsigned long long)where.at[1]);
        check(most.real > 0 && most.real <= last, "it does not settle");
        last = most.real;
    }

    /* The change of the last step, kept: in a clone, beside the steps. */
    check(pyr_clone(steps, now, "changes", &changes) == 0, "clone");
    step();
    check(pyr_write(changes, origin, shape, plate, &made) == 0, "write");
    check(pyr_compute(changes, made, origin, shape, "x - x@0", &made) == 0,
          "compute");
    pyr_array_close(changes);
    pyr_array_close(steps);
    pyr_close(store);
    return 0;
}
