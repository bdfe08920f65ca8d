/*
 * cli/cmd.h - what the subcommands of `pyramid` share.
 *
 * A verb is one file, cmd_VERB.c, holding its options, its help and its run
 * function; main.c lists them. Functions that can fail return 0 or the exit
 * code, FAILED or MISUSED, and have then printed the one line that says why.
 * Parsers of foreign text (box.c, npy.c, number.c) print nothing: they put the
 * reason into a `why` of WHY_SIZE bytes, so that tests can call them alone.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <pyramid/pyramid.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { FAILED = 1, MISUSED = 2 };

#define WHY_SIZE 200
#define SLAB_BYTES ((uint64_t)64 << 20)  /* moved at a time */
#define SLAB_LIMIT ((uint64_t)512 << 20) /* if a row of chunks is larger */

/* --- verbs and their arguments: args.c ----------------------------------- */

typedef struct option {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* what to call its value; NULL: it has none */
    const char *help;
} option;

typedef struct args args;

typedef struct verb {
    const char *name;
    const char *usage;     /* what follows the name */
    const char *about;     /* a sentence */
    const char *more;      /* paragraphs for --help; NULL: none */
    const char *examples;  /* lines */
    const option *options; /* ended by one without a name; NULL: none */
    int min_words, max_words;
    int (*run)(const args *a);
} verb;

struct args {
    const verb *verb;
    int nwords;
    const char **words; /* STORE, ARRAY, ... */
    int ngiven;
    const option **given;
    const char **values; /* of given[], "" for those without */
    bool json, quiet, help;
};

int args_parse(args *a, const verb *v, int argc, char **argv);
void args_free(args *a);
bool args_has(const args *a, const char *name);

/* The last value given for an option, or NULL. */
const char *args_value(const args *a, const char *name);

/* An option that counts, or `missing` where it is not given. */
int args_number(const args *a, const char *name, uint64_t missing, uint64_t max,
                uint64_t *out);

void verb_help(const verb *v, FILE *out);

/* --- failing: fail.c ----------------------------------------------------- */

int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int misuse(const verb *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The library's last failure; `where` is added unless the text names it. */
int fail_pyr(const char *where);

/* --- numbers and names in text: number.c --------------------------------- */

typedef struct extents {
    int n;
    uint64_t of[PYR_MAX_DIMS];
} extents;

int parse_u64(const char *text, uint64_t *out);
int parse_extents(const char *text, extents *out, char *why);
int parse_type(const char *text, pyr_type *out);
int parse_codec(const char *text, pyr_codec *out);

/* A cell of `type` from text; `out` holds 8 bytes. */
int parse_cell(const char *text, pyr_type type, void *out, char *why);

const char *type_name(pyr_type type);
size_t type_size(pyr_type type);
bool type_is_float(pyr_type type);
const char *codec_name(pyr_codec codec);
const char *kind_name(pyr_kind kind);

/* Multiplies; false if the product does not fit. */
bool mul_u64(uint64_t a, uint64_t b, uint64_t *out);

/* --- boxes as NumPy slices: box.c ---------------------------------------- */

typedef struct box {
    int ndim;
    uint64_t start[PYR_MAX_DIMS];
    uint64_t count[PYR_MAX_DIMS];
    uint64_t step[PYR_MAX_DIMS]; /* 1 or more */
    bool dropped[PYR_MAX_DIMS];  /* an index, not a slice */
} box;

/* NULL is the whole array. Fails with MISUSED if the text makes no sense, with
 * FAILED if it does not fit the shape. */
int box_parse(const char *text, int ndim, const uint64_t *shape, box *out,
              char *why);
bool box_is_strided(const box *b);
uint64_t box_cells(const box *b);

/* The shape that is left when dropped axes are; returns how many there are. */
int box_shape(const box *b, uint64_t *shape);

/* --- walking large boxes: slab.c ----------------------------------------- */

/* Pieces of a box that stand one after the other in row-major order. */
typedef struct slabs {
    int ndim, axis; /* whole after `axis`, one index before it */
    uint64_t shape[PYR_MAX_DIMS];
    uint64_t rows, first; /* along `axis`, per slab and in the first one */
    bool whole_chunks;    /* no chunk is cut by two slabs */
    bool done;
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    uint64_t cells; /* of this slab */
} slabs;

/* `start` and `chunk` (both may be NULL) let slabs end where chunks do. */
void slabs_begin(slabs *s, int ndim, const uint64_t *shape, size_t cell,
                 const uint64_t *start, const uint64_t *chunk);
bool slabs_next(slabs *s);
uint64_t slabs_most_cells(const slabs *s);

/* --- .npy files: npy.c, source.c, sink.c --------------------------------- */

#define NPY_MAX_HEADER 65535

typedef struct npy {
    pyr_type type;
    bool swap; /* of the other byte order */
    bool fortran;
    int ndim;
    uint64_t shape[PYR_MAX_DIMS];
    uint64_t cells, bytes;
} npy;

/* How long the header text is, from the file's first 12 bytes; `*start` is
 * where it begins. */
int npy_prefix(const uint8_t *bytes, size_t n, size_t *start, size_t *length,
               char *why);
int npy_header(const char *text, size_t length, npy *out, char *why);

/* Write prefix and header for cells in this machine's order; returns the
 * length, at most NPY_MAX_OWN. */
#define NPY_MAX_OWN 640
size_t npy_format(pyr_type type, int ndim, const uint64_t *shape, char *out);

/* A .npy file to be read, or standard input. */
typedef struct source {
    const char *name;
    npy npy;
    int fd;
    uint8_t *map; /* the whole file; NULL: it is a stream */
    size_t map_size;
    const uint8_t *cells; /* in the map */
    uint64_t read;        /* bytes of cells so far */
} source;

int source_open(source *s, const char *name);
void source_close(source *s);

/* The next n bytes of cells, in this machine's byte order. */
int source_read(source *s, void *buf, size_t n);

/* Whether the cells can be used where they lie. */
bool source_is_plain(const source *s);

/* Add leading axes of size 1 up to `ndim`. */
int source_raise(source *s, int ndim);

/* Steps in bytes between neighbours as the file has them. */
void source_steps(const source *s, int64_t *step);

/* All cells, dense, row-major, in this machine's order. They live in the map
 * or in an unlinked temporary file; end with source_close(). */
int source_dense(source *s, const void **cells);

/* A .npy file to be written, or standard output. */
typedef struct sink {
    const char *name;
    char *temp; /* to be renamed; NULL: written in place */
    int fd;
} sink;

int sink_open(sink *s, const char *name);
int sink_write(sink *s, const void *buf, size_t n);
int sink_finish(sink *s); /* now it has its name */
void sink_close(sink *s); /* without sink_finish(): nothing is left behind */

/* --- stores and arrays: target.c ----------------------------------------- */

typedef struct target {
    const char *store_name, *array_name;
    pyr_store *store;
    pyr_array *array;
    pyr_info info; /* of the version asked for, which is a number in it */
} target;

int target_store(const args *a, unsigned flags, target *t);
int target_array(const args *a, unsigned flags, target *t);
void target_close(target *t);
int target_fail(const target *t);
/* The same for a function: one that makes no sense is misuse, and is shown
 * with a caret under the place. */
int fail_function(const args *a, const target *t);

/* A number, latest, -N or a tag, made a number that is published. */
int target_version(const args *a, target *t, const char *text,
                   pyr_version *out);

/* --version and --box, for verbs that look at one snapshot. */
int target_snapshot(const args *a, target *t);
int target_box(const args *a, const target *t, box *out);
int target_plain_box(const args *a, const target *t, box *out);
/* Open what the call names, show a plain box of one snapshot, and close it. */
typedef int show_box_fn(const args *a, const target *t, const box *b);
int target_show_box(const args *a, show_box_fn *show);
bool looks_like_version(const char *text);

/* --- output: json.c, print.c, progress.c --------------------------------- */

/* One JSON document, held back until it is complete. */
typedef struct json {
    FILE *out;
    char *text;
    size_t size;
    bool comma;
} json;

int json_begin(json *j);
int json_print(json *j); /* ends it too */
void json_drop(json *j);
void json_open(json *j, const char *key, char bracket); /* key may be NULL */
void json_shut(json *j, char bracket);
void json_text(json *j, const char *key, const char *value);
void json_u64(json *j, const char *key, uint64_t value);
void json_i64(json *j, const char *key, int64_t value);
void json_f64(json *j, const char *key, double value);
void json_bool(json *j, const char *key, bool value);
void json_raw(json *j, const char *key, const char *value);
void json_list(json *j, const char *key, int n, const uint64_t *values);
void json_cell(json *j, const char *key, pyr_type type, const void *cell);
void json_time(json *j, const char *key, int64_t ns);
/* `digest` may be NULL. */
void json_change(json *j, const pyr_change *c, const char *digest);

#define CELL_TEXT 40
void cell_text(pyr_type type, const void *cell, char *out);
void f64_text(double value, char *out);

/* Text from the store, its control characters made harmless. */
void print_safe(FILE *out, const char *text);
void print_cells(const void *cells, pyr_type type, int ndim,
                 const uint64_t *shape);
void print_list(const char *between, int n, const uint64_t *values);
void print_time(int64_t ns);
void print_box(int ndim, const uint64_t *offset, const uint64_t *size);
void print_change(const pyr_change *c);
const char *bytes_text(uint64_t bytes, char *out, size_t n);

/* A bar on stderr, if that is a terminal and the work is large. */
typedef struct progress {
    uint64_t total, done;
    int64_t began, drawn; /* ns */
    bool shown;
    bool steps; /* counts something else than bytes */
} progress;

void progress_begin(progress *p, const args *a, uint64_t bytes);
void progress_add(progress *p, uint64_t bytes);
/* The same for work that is counted in steps; how many is told later. */
void progress_begin_steps(progress *p, const args *a);
void progress_steps(progress *p, uint64_t done, uint64_t total);
void progress_end(progress *p);
void progress_clear(void); /* makes room for another line */

#endif
