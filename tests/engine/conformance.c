/*
 * tests/engine/conformance.c - the rules of engine/engine.h as a program.
 *
 *   conformance mem|file-os|file-commit|elsewhere [TEST...]
 *
 * `elsewhere` is where PYR_TEST_STORE says, see support/tmp_store.h.
 * Every test makes a store of its own, in memory or in a directory that is
 * removed at the end. An engine is done when it passes here.
 */
#include "engine/blobs.h"
#include "engine/leases.h"
#include "engine/processes.h"
#include "engine/records.h"
#include "engine/upkeep.h"
#include "engine/folds.h"
#include "engine/versions.h"

#include <ftw.h>

static const check_case all_engines[] = {
    T(a_store_that_is_not_there_is_not_found),
    T(a_store_keeps_what_it_was_made_with),
    T(the_lease_is_ten_seconds_if_none_is_given),
    T(two_handles_see_each_others_work),
    T(a_read_only_engine_reads),
    T(a_read_only_engine_refuses_to_store),
    T(the_status_counts_what_is_there),

    T(a_record_is_put_changed_and_deleted),
    T(edits_say_what_is_or_is_not_there),
    T(a_failing_edit_undoes_the_whole_batch),
    T(later_edits_of_a_batch_see_the_earlier),
    T(a_scan_gives_all_of_a_prefix_in_order_of_bytes),
    T(a_scan_of_bytes_that_are_all_ones_ends),
    T(the_callback_ends_a_scan_with_its_answer),
    T(the_callback_of_a_scan_may_read),
    T(keys_and_values_are_any_bytes),
    T(views_survive_until_their_reader_ends),
    T(a_thread_may_have_several_readers),
    T(a_scan_shows_batches_whole_while_others_edit),

    T(nodes_are_found_by_their_keys_or_not_found),
    T(values_of_nodes_are_empty_to_large),
    T(records_and_nodes_are_apart),

    T(blobs_of_all_sizes_and_pieces_read_back),
    T(blobs_are_put_and_got_in_batches),
    T(any_range_of_a_blob_can_be_read),
    T(views_of_blobs_last_as_long_as_their_reader),
    T(a_range_outside_is_corrupt_not_a_crash),
    T(seen_bits_are_of_one_page_of_one_blob),
    T(seen_bits_belong_to_the_blob_not_to_the_range),
    T(with_room_a_range_may_be_a_copy_of_the_same_bytes),
    T(many_threads_put_and_get_blobs_at_once),
    T(another_handle_reads_a_blob_as_soon_as_it_is_put),

    T(an_imported_version_is_the_newest_at_once),
    T(versions_that_were_passed_over_have_gone),
    T(nothing_is_imported_beside_writers_or_below_the_newest),
    T(versions_are_given_one_after_another),
    T(an_array_begins_after_the_version_it_was_made_with),
    T(a_mark_stays_with_its_array),
    T(a_taker_learns_all_that_is_in_flight_below_it),
    T(those_complete_but_not_published_show_as_complete),
    T(two_arrays_are_independent),
    T(an_unknown_array_is_not_found),
    T(a_shape_holds_from_its_version_on),
    T(two_that_grow_an_axis_get_parts_of_their_own),
    T(a_shape_that_overflows_is_refused_and_takes_nothing),
    T(shapes_of_sixteen_axes_are_kept),
    T(versions_publish_in_order_however_they_complete),
    T(nodes_are_there_once_their_version_is_complete),
    T(a_second_completion_is_fenced_and_stores_nothing),
    T(a_version_that_was_never_given_cannot_be_completed),
    T(a_silent_writer_is_dead_when_its_lease_ran_out),
    T(a_dead_version_is_resolved_and_those_above_publish),
    T(a_late_writer_that_nobody_resolved_still_completes),
    T(a_complete_version_is_never_dead),
    T(renewing_starts_the_lease_anew),
    T(waiting_for_what_is_published_returns_at_once),
    T(waiting_for_what_does_not_come_times_out),
    T(those_who_wait_are_woken),
    T(a_scan_of_versions_goes_both_ways_within_bounds),
    T(records_of_versions_are_any_bytes),
    T(many_threads_take_and_complete_at_once),

    T(forgotten_versions_are_marked_and_listed_in_order),
    T(the_newest_version_cannot_be_forgotten_until_it_is_not),
    T(scans_of_versions_tell_the_forgotten_and_skip_what_has_gone),
    T(edits_that_expect_a_version_to_be_kept_fail_whole),
    T(edits_that_expect_a_value_fail_whole),
    T(a_fold_changes_nodes_and_what_they_name_at_once),
    T(a_fold_that_finds_nothing_to_do_changes_nothing),
    T(a_version_that_was_begun_before_a_fold_stores_nothing),
    T(what_is_erased_is_gone_and_counted_once),
    T(a_version_that_is_not_forgotten_is_not_erased),
    T(readers_from_before_see_what_is_erased_and_settled),
    T(blobs_that_were_dropped_are_named_nowhere),
    T(scans_show_all_nodes_and_named_blobs),
    T(flights_tell_on_what_they_are_based),
    T(upkeep_is_for_one_handle_at_a_time),
    T(upkeep_is_for_one_thread_at_a_time),
};

static const check_case lasting_engines[] = {
    T(reopening_keeps_everything),
    T(many_processes_take_and_complete_at_once),
    T(many_processes_put_and_get_blobs_at_once),
    T(a_writer_whose_process_was_killed_is_dead),
    T(a_death_on_this_machine_shows_at_the_first_look),
    T(those_who_wait_in_another_process_are_woken),
    T(upkeep_ends_when_its_process_is_killed),
    T(upkeep_ends_though_a_child_lives_on),
};

enum {
    NALL = sizeof all_engines / sizeof all_engines[0],
    NLASTING = sizeof lasting_engines / sizeof lasting_engines[0]
};

static bool
choose(const char *engine)
{
    elsewhere = strcmp(engine, "elsewhere") == 0;
    in_memory = strcmp(engine, "mem") == 0;
    durability = strcmp(engine, "file-os") == 0 ? PYR_DURABILITY_OS
                                                : PYR_DURABILITY_COMMIT;
    return in_memory || elsewhere || strncmp(engine, "file-", 5) == 0;
}

static bool
make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/pyramid-engine-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(dir) != NULL;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

int
main(int argc, char **argv)
{
    static check_case cases[NALL + NLASTING];
    if (argc < 2 || !choose(argv[1])) {
        fprintf(stderr, "usage: %s mem|file-os|file-commit|elsewhere "
                        "[TEST...]\n", argv[0]);
        return 2;
    }
    if (!in_memory && !make_dir()) {
        perror(dir);
        return 2;
    }
    memcpy(cases, all_engines, sizeof all_engines);
    memcpy(cases + NALL, lasting_engines, sizeof lasting_engines);
    int failed = check_main(cases, in_memory ? NALL : NALL + NLASTING, argc - 1,
                            argv + 1);
    if (!in_memory)
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed;
}
