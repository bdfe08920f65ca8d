/*
 * cli/cmd_status.c - pyramid status: how a store is.
 */
#include "cmd.h"

#include <inttypes.h>
#include <string.h>

static const char *
durability_name(pyr_durability d)
{
    return d == PYR_DURABILITY_COMMIT ? "commit" : "os";
}

static int
json_dir(void *ctx, const pyr_data_dir *dir)
{
    json *j = ctx;
    json_open(j, NULL, '{');
    json_text(j, "path", dir->path);
    json_u64(j, "data_bytes", dir->data_bytes);
    json_u64(j, "free_bytes", dir->free_bytes);
    json_u64(j, "total_bytes", dir->total_bytes);
    json_u64(j, "segments", dir->segments);
    json_u64(j, "writers", dir->writers);
    json_i64(j, "error", dir->error);
    json_shut(j, '}');
    return 0;
}

static int
show_json(const target *t)
{
    pyr_status s;
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    json_open(&j, NULL, '{');
    json_text(&j, "store", t->store_name);
    json_open(&j, "data", '[');
    if (pyr_store_status(t->store, &s, json_dir, &j) < 0) {
        json_drop(&j);
        return target_fail(t);
    }
    json_shut(&j, ']');
    json_text(&j, "engine", s.engine);
    json_u64(&j, "format", s.format);
    json_text(&j, "durability", durability_name(s.durability));
    json_u64(&j, "lease_ms", s.lease_ms);
    json_u64(&j, "arrays", s.arrays);
    json_u64(&j, "metadata_bytes", s.metadata_bytes);
    json_u64(&j, "data_bytes", s.data_bytes);
    json_u64(&j, "writers", s.writers);
    json_u64(&j, "in_flight", s.in_flight);
    json_u64(&j, "computed_bytes", s.computed_bytes);
    json_u64(&j, "moved_bytes", s.moved_bytes);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
print_dir(void *ctx, const pyr_data_dir *dir)
{
    char held[32], room[32], total[32];
    printf("  ");
    print_safe(stdout, dir->path);
    printf("  %s in %" PRIu64 " segments, %s of %s free, %" PRIu64 " writing",
           bytes_text(dir->data_bytes, held, sizeof held), dir->segments,
           bytes_text(dir->free_bytes, room, sizeof room),
           bytes_text(dir->total_bytes, total, sizeof total), dir->writers);
    if (dir->error)
        printf("  OUT OF USE: %s", pyr_strerror(dir->error));
    putchar('\n');
    return 0;
}

static int
print_cluster(void *ctx, const pyr_data_dir *dir)
{
    char room[32], total[32];
    printf("  ");
    print_safe(stdout, dir->path);
    printf("  %" PRIu64 " objects", dir->segments);
    if (dir->total_bytes)
        printf(", %s of %s free",
               bytes_text(dir->free_bytes, room, sizeof room),
               bytes_text(dir->total_bytes, total, sizeof total));
    putchar('\n');
    return 0;
}

static int
show_text(const target *t)
{
    pyr_status s;
    char data[32], metadata[32];
    if (pyr_store_status(t->store, &s, NULL, NULL) < 0)
        return target_fail(t);
    printf("engine      %s, format %u\n", s.engine, s.format);
    printf("durability  %s\n", durability_name(s.durability));
    printf("lease       %u ms\n", s.lease_ms);
    printf("arrays      %" PRIu64 "\n", s.arrays);
    printf("metadata    %s\n",
           bytes_text(s.metadata_bytes, metadata, sizeof metadata));
    printf("data        %s\n", bytes_text(s.data_bytes, data, sizeof data));
    printf("writers     %" PRIu64 ", %" PRIu64 " versions in flight\n",
           s.writers, s.in_flight);
    bool cluster = strcmp(s.engine, "rados") == 0;
    if (cluster)
        printf("functions   of %s inside the OSDs; %s moved to clients\n",
               bytes_text(s.computed_bytes, data, sizeof data),
               bytes_text(s.moved_bytes, metadata, sizeof metadata));
    puts(cluster ? "cluster" : "data directories");
    if (pyr_store_status(t->store, &s, cluster ? print_cluster : print_dir,
                         NULL) < 0)
        return target_fail(t);
    return 0;
}

static int
run(const args *a)
{
    target t;
    int err = target_store(a, PYR_OPEN_READONLY, &t);
    if (!err)
        err = a->json ? show_json(&t) : show_text(&t);
    target_close(&t);
    return err;
}

const verb verb_status = {
    .name = "status",
    .usage = "STORE",
    .about = "Show how a store is: engine, sizes, data directories, writers.",
    .examples = "  pyramid status demo.pyr\n"
                "  pyramid status demo.pyr --json\n",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
