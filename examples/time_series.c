/*
 * examples/time_series.c - several stations append to one series at once.
 *
 * Each append grows the series by the station's rows and fills them, as one
 * version; the stations need no agreement on who comes first. The history
 * tells afterwards who was when.
 */
#include <pyramid/pyramid.h>

#include "scratch.h"

#include <pthread.h>
#include <string.h>

#define STATIONS 4
#define DAYS 25
#define SENSORS 8

typedef struct station {
    pyr_array *series;
    int number;
    uint64_t at[DAYS]; /* where each day went */
} station;

static void
check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "time_series: %s: %s\n", what, pyr_errmsg());
    exit(1);
}

/* What sensor i of a station measures on a day. */
static float
measure(int number, int day, int i)
{
    return (float)(1000 * number + day) + (float)i / 10;
}

static void *
report(void *arg)
{
    station *s = arg;
    for (int day = 0; day < DAYS; day++) {
        float row[SENSORS];
        for (int i = 0; i < SENSORS; i++)
            row[i] = measure(s->number, day, i);
        check(pyr_append(s->series, 0, 1, row, &s->at[day], NULL) == 0,
              "append");
    }
    return NULL;
}

/* Every row is the one its station appended, whole. */
static void
verify(pyr_array *series, const station *stations)
{
    static float all[STATIONS * DAYS][SENSORS];
    uint64_t offset[2] = {0, 0}, size[2] = {STATIONS * DAYS, SENSORS};
    check(pyr_read(series, PYR_LATEST, offset, size, all) == 0, "read");
    for (int s = 0; s < STATIONS; s++)
        for (int day = 0; day < DAYS; day++)
            for (int i = 0; i < SENSORS; i++)
                check(all[stations[s].at[day]][i] == measure(s, day, i),
                      "a cell differs");
}

static int
show(void *ctx, const pyr_change *c)
{
    int *shown = ctx;
    if (c->kind == PYR_KIND_APPEND && ++*shown > STATIONS * DAYS - 3)
        printf("version %d by %s: rows %d to %d\n", (int)c->version, c->who,
               (int)c->parts[0].offset[0],
               (int)(c->parts[0].offset[0] + c->parts[0].size[0]) - 1);
    return 0;
}

int
main(void)
{
    uint64_t shape[2] = {0, SENSORS}, chunk[2] = {64, SENSORS};
    pyr_spec spec = {.ndim = 2,
                     .shape = shape,
                     .chunk = chunk,
                     .type = PYR_F32};
    pyr_store_options fast = {.durability = PYR_DURABILITY_OS};
    pyr_store *store;
    pyr_array *series;
    pthread_t threads[STATIONS];
    static station stations[STATIONS];

    check(pyr_open_with(scratch_store(), PYR_OPEN_CREATE, &fast, &store) == 0,
          "open");
    check(pyr_create(store, "weather/hourly", &spec, &series) == 0, "create");
    for (int s = 0; s < STATIONS; s++) {
        stations[s] = (station){.series = series, .number = s};
        check(pthread_create(&threads[s], NULL, report, &stations[s]) == 0,
              "thread");
    }
    for (int s = 0; s < STATIONS; s++)
        pthread_join(threads[s], NULL);
    verify(series, stations);

    int shown = 0;
    check(pyr_history(series, 0, PYR_LATEST, show, &shown) == 0, "history");
    check(shown == STATIONS * DAYS, "versions are missing");
    printf("%d appends by %d stations, all in place\n", shown, STATIONS);
    pyr_array_close(series);
    pyr_close(store);
    return 0;
}
