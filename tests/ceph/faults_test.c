/*
 * ceph/faults_test.c - parts of the cluster fail while processes write and
 * compute: all go on by themselves, and nothing is lost, doubled or mixed.
 */
#include "ceph/scene.h"

static void
an_osd_killed_in_mid_work_loses_nothing(void)
{
    scene s;
    int first = (int)(test_seed() % 3);
    for (int i = 0; i < (int)by_scale(1, 3, 9); i++) {
        int osd = (first + i) % 3;
        printf("# osd %d\n", osd);
        scene_open(&s, i);
        begin_crew(&s, s.p.url);
        goes_on(&s, "before");
        REQUIRE(cluster_osd("kill", osd));
        goes_on(&s, "killed");
        REQUIRE(cluster_osd("revive", osd));
        goes_on(&s, "back");
        REQUIRE(heals(&s));
        end_crew(&s, 0);
        scene_close(&s);
    }
}

static void
an_osd_stopped_for_longer_than_its_grace_loses_nothing(void)
{
    scene s;
    int osd = (int)(test_seed() / 3 % 3);
    scene_open(&s, 1);
    begin_crew(&s, s.p.url);
    goes_on(&s, "before");
    REQUIRE(cluster_osd("pause", osd));
    goes_on(&s, "stopped"); /* only once it was given up */
    REQUIRE(cluster_osd("resume", osd));
    goes_on(&s, "resumed");
    REQUIRE(heals(&s));
    end_crew(&s, 0);
    scene_close(&s);
}

static void
replies_lost_with_an_osd_are_given_again(void)
{
    scene s;
    int osd = (int)(test_seed() / 9 % 3);
    scene_open(&s, 2);
    begin_crew(&s, s.p.url);
    for (int i = 0; i < 2; i++) {
        goes_on(&s, "before");
        REQUIRE(cluster_osd("pause", osd)); /* it has taken requests in */
        nap_ms(300);
        REQUIRE(cluster_osd("kill", osd));
        goes_on(&s, "killed");
        REQUIRE(cluster_osd("revive", osd));
        REQUIRE(heals(&s));
        osd = (osd + 1) % 3;
    }
    end_crew(&s, 0);
    scene_close(&s);
}

/* A configuration in which connections of clients break all the time. */
static void
make_frail(const char *url, char *out, size_t size)
{
    char path[4200], from[4200], line[1000];
    snprintf(out, size, "%s", url);
    if (!cluster_dir())
        return;
    snprintf(path, sizeof path, "%s", tmp_fresh("frail"));
    snprintf(from, sizeof from, "%s/ceph.conf", cluster_dir());
    FILE *f = fopen(from, "r"), *g = fopen(path, "w");
    REQUIRE(f && g);
    while (fgets(line, sizeof line, f))
        fputs(line, g);
    fputs("ms_inject_socket_failures = 150\n", g); /* [client] is the last */
    fclose(f);
    REQUIRE(fclose(g) == 0);
    cluster_url_with(url, "conf", path, out, size);
}

static void
connections_that_break_all_the_time_lose_nothing(void)
{
    scene s;
    char frail[4400];
    scene_open(&s, 0);
    make_frail(s.p.url, frail, sizeof frail);
    begin_crew(&s, frail);
    for (int i = 0; i < (int)by_scale(3, 10, 100); i++)
        goes_on(&s, "broken");
    end_crew(&s, 0);
    scene_close(&s);
}

static void
a_monitor_restarted_in_mid_write_is_survived(void)
{
    scene s;
    scene_open(&s, WORK_LARGE);
    begin_crew(&s, s.p.url);
    goes_on(&s, "before");
    REQUIRE(cluster_restart_mon());
    goes_on(&s, "after");
    end_crew(&s, 0);
    scene_close(&s);
}

static void
a_client_killed_while_an_osd_is_away_harms_nobody(void)
{
    scene s;
    int osd = (int)(test_seed() / 27 % 3), who = (int)(test_seed() / 81 % 4);
    scene_open(&s, 0);
    begin_crew(&s, s.p.url);
    goes_on(&s, "before");
    REQUIRE(cluster_osd("kill", osd));
    kill(s.crew[who], SIGKILL);
    CHECK(is_killed(s.crew[who]));
    goes_on(&s, "both killed"); /* the dead one's lease runs out meanwhile */
    REQUIRE(cluster_osd("revive", osd));
    REQUIRE(heals(&s));
    end_crew(&s, s.crew[who]);
    scene_close(&s);
}

CREW_TESTS(scene_roles, T(an_osd_killed_in_mid_work_loses_nothing),
           T(an_osd_stopped_for_longer_than_its_grace_loses_nothing),
           T(replies_lost_with_an_osd_are_given_again),
           T(connections_that_break_all_the_time_lose_nothing),
           T(a_monitor_restarted_in_mid_write_is_survived),
           T(a_client_killed_while_an_osd_is_away_harms_nobody))
