/*
 * examples/demo.c - the painter behind tools/demo.sh.
 *
 *   pyramid-demo paint STORE ARRAY ROW COL SIZE   one pyramid, one version
 *   pyramid-demo hammer STORE ARRAY               paints until it is killed
 *   pyramid-demo show STORE ARRAY V V             two snapshots, side by side
 *   pyramid-demo check STORE ARRAY                every snapshot is what its
 *                                                 history says, to the cell
 *
 * A pyramid is a square of heights from 0 at its border to 1 at its top, so
 * it can be told from its box alone: that is how `check` replays a history.
 */
#include <pyramid/pyramid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS 36 /* of one picture */
#define ROWS 18

static _Noreturn void
die(const char *what)
{
    fprintf(stderr, "pyramid-demo: %s: %s\n", what, pyr_errmsg());
    exit(1);
}

static float
height(uint64_t r, uint64_t c, uint64_t size)
{
    uint64_t down = size - 1 - r, right = size - 1 - c;
    uint64_t edge = r < down ? r : down;
    edge = c < edge ? c : edge;
    edge = right < edge ? right : edge;
    return 2 * (float)(edge + 1) / (float)(size + 1);
}

static float *
pyramid(uint64_t size)
{
    float *cells = malloc(size * size * sizeof *cells);
    if (!cells)
        die("memory");
    for (uint64_t r = 0; r < size; r++)
        for (uint64_t c = 0; c < size; c++)
            cells[r * size + c] = height(r, c, size);
    return cells;
}

static void
paint(pyr_array *array, uint64_t row, uint64_t col, uint64_t size, float *cells,
      const char *message)
{
    const uint64_t offset[2] = {row, col}, extent[2] = {size, size};
    pyr_part part = {.offset = offset, .size = extent, .buf = cells};
    pyr_write_options how = {.message = message};
    if (pyr_write_list(array, &part, 1, &how, NULL) < 0)
        die("paint");
    free(cells);
}

/* Prints '<' when a write begins and '>' when it has ended. */
static void
hammer(pyr_array *array, const uint64_t *shape)
{
    for (uint64_t i = 0;; i++) {
        uint64_t size = 700 + i * 97 % 300;
        float *cells = pyramid(size);
        putchar('<');
        fflush(stdout);
        paint(array, i * 631 % (shape[0] - size), i * 877 % (shape[1] - size),
              size, cells, "doomed");
        putchar('>');
        fflush(stdout);
    }
}

/* --- pictures ------------------------------------------------------------ */

/* One cell of every square of the grid: a strided read of a few cells. */
static void
sample(pyr_array *array, pyr_version version, const uint64_t *shape,
       float out[ROWS][COLUMNS])
{
    const uint64_t stride[2] = {shape[0] / ROWS, shape[1] / COLUMNS};
    const uint64_t first[2] = {stride[0] / 2, stride[1] / 2};
    const uint64_t one[2] = {1, 1}, count[2] = {ROWS, COLUMNS};
    pyr_part part = {.offset = first,
                     .size = one,
                     .count = count,
                     .stride = stride,
                     .buf = out};
    if (pyr_read_list(array, version, &part, 1) < 0)
        die("read");
}

static void
draw_row(const float *cells)
{
    static const char shades[] = " .:-=+*#%@";
    putchar('|');
    for (int c = 0; c < COLUMNS; c++) {
        int shade = (int)(cells[c] * 9.99f);
        putchar(shades[shade < 0 ? 0 : shade > 9 ? 9 : shade]);
    }
    putchar('|');
}

static void
show(pyr_array *array, const uint64_t *shape, const pyr_version *versions)
{
    static float left[ROWS][COLUMNS], right[ROWS][COLUMNS];
    static const char line[] = "----------------------------------------";
    char title[2][COLUMNS + 1];
    sample(array, versions[0], shape, left);
    sample(array, versions[1], shape, right);
    for (int i = 0; i < 2; i++)
        snprintf(title[i], sizeof title[i], " version %llu ",
                 (unsigned long long)versions[i]);
    for (int i = 0; i < 2; i++)
        printf("%s+%s%.*s+", i ? "  " : "  ", title[i],
               COLUMNS - (int)strlen(title[i]), line);
    putchar('\n');
    for (int r = 0; r < ROWS; r++) {
        fputs("  ", stdout);
        draw_row(left[r]);
        fputs("  ", stdout);
        draw_row(right[r]);
        putchar('\n');
    }
    printf("  +%.*s+  +%.*s+\n", COLUMNS, line, COLUMNS, line);
}

/* --- checking ------------------------------------------------------------ */

typedef struct replay {
    pyr_array *array;
    uint64_t shape[2];
    float *wanted, *found;
    int versions, nothing;
} replay;

static int
replay_one(void *ctx, const pyr_change *c)
{
    replay *p = ctx;
    const uint64_t origin[2] = {0, 0};
    for (size_t i = 0; i < c->nparts; i++) {
        const uint64_t *at = c->parts[i].offset, *size = c->parts[i].size;
        if (c->kind != PYR_KIND_WRITE)
            break;
        for (uint64_t r = 0; r < size[0]; r++)
            for (uint64_t k = 0; k < size[1]; k++)
                p->wanted[(at[0] + r) * p->shape[1] + at[1] + k] =
                    height(r, k, size[0]);
    }
    p->versions++;
    p->nothing += c->kind == PYR_KIND_NOTHING;
    if (pyr_read(p->array, c->version, origin, p->shape, p->found) < 0)
        die("read");
    if (memcmp(p->wanted, p->found,
               p->shape[0] * p->shape[1] * sizeof(float)) == 0)
        return 0;
    fprintf(stderr, "pyramid-demo: version %llu differs from its history\n",
            (unsigned long long)c->version);
    exit(1);
}

static void
check(pyr_array *array, const uint64_t *shape)
{
    replay p = {.array = array, .shape = {shape[0], shape[1]}};
    size_t cells = (size_t)(shape[0] * shape[1]);
    p.wanted = calloc(cells, sizeof(float));
    p.found = malloc(cells * sizeof(float));
    if (!p.wanted || !p.found)
        die("memory");
    if (pyr_history(array, 0, PYR_LATEST, replay_one, &p) < 0)
        die("history");
    printf("%d snapshots replayed, every cell as its history says", p.versions);
    if (p.nothing)
        printf(" (%d of a dead writer: changes nothing)", p.nothing);
    putchar('\n');
    free(p.wanted);
    free(p.found);
}

static int
run(pyr_array *array, const uint64_t *shape, int argc, char **argv)
{
    const char *what = argv[1];
    if (strcmp(what, "paint") == 0 && argc == 7)
        paint(array, strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10),
              strtoull(argv[6], NULL, 10), pyramid(strtoull(argv[6], NULL, 10)),
              "a pyramid");
    else if (strcmp(what, "hammer") == 0)
        hammer(array, shape);
    else if (strcmp(what, "show") == 0 && argc == 6)
        show(array, shape,
             (pyr_version[]){strtoull(argv[4], NULL, 10),
                             strtoull(argv[5], NULL, 10)});
    else if (strcmp(what, "check") == 0)
        check(array, shape);
    else
        return 2;
    return 0;
}

int
main(int argc, char **argv)
{
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    pyr_info info;
    if (argc < 4) {
        fputs("usage: pyramid-demo paint|hammer|show|check STORE ARRAY ...\n",
              stderr);
        return 2;
    }
    if (pyr_open(argv[2], 0, &store) < 0 ||
        pyr_array_open(store, argv[3], &array) < 0 ||
        pyr_array_info(array, PYR_LATEST, &info) < 0)
        die(argv[3]);
    int code = info.ndim == 2 && info.type == PYR_F32
                   ? run(array, info.shape, argc, argv)
                   : 2;
    pyr_array_close(array);
    pyr_close(store);
    return code;
}
