/*
 * ceph/cut_test.c - an OSD that is cut off the network while processes write
 * and compute: it lives, and neither hears nor is heard.
 *
 * The program and its children are in a network namespace of their own, with a
 * cluster of their own; one OSD is in another, at the end of a link that can be
 * broken. Whatever becomes of the program, the cluster is stopped after it.
 */
#include "ceph/scene.h"

#include <sched.h>

enum { APART = 2 };

/* Stops the cluster when this process has ended. */
static void
stop_later(const char *dir)
{
    tmp_after("cat >/dev/null; [ ! -d \"$1\" ] || \"$0\" stop \"$1\"; "
              "rm -rf -- \"${1%/*}\"",
              getenv("PYR_DEV_CEPH"), dir);
}

/* A cluster in namespaces of this process; false if the kernel refuses. */
static bool
begin_apart(void)
{
    static char base[4096], dir[4200], url[4400];
    char number[8];
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    const char *tmp = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/pyramid-cut-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    REQUIRE(mkdtemp(base));
    snprintf(dir, sizeof dir, "%s/c", base);
    stop_later(dir);
    REQUIRE(setenv("PYR_TEST_CEPH", dir, 1) == 0);
    snprintf(number, sizeof number, "%d", APART);
    const char *classes = getenv("PYR_CLASS_DIR");
    REQUIRE(cluster_does("start", (const char *[]){
        "--apart", number, "--class-dir", classes ? classes : "", NULL}));
    snprintf(url, sizeof url, "rados://pyramid?conf=%s/ceph.conf&user=pyramid",
             dir);
    return setenv("PYR_TEST_STORE", url, 1) == 0;
}

static void
an_osd_cut_off_the_network_loses_nothing(void)
{
    scene s;
    if (!begin_apart())
        SKIP("no network namespaces here");
    scene_open(&s, 0);
    begin_crew(&s, s.p.url);
    for (int i = 0; i < (int)by_scale(1, 2, 10); i++) {
        goes_on(&s, "before");
        REQUIRE(cluster_does("cut", NULL));
        goes_on(&s, "cut off"); /* answers that were on their way are lost */
        REQUIRE(cluster_does("mend", NULL));
        goes_on(&s, "mended");
        REQUIRE(cluster_heals());
    }
    /* shorter than the grace: nobody is given up, connections just stall */
    REQUIRE(cluster_does("cut", NULL));
    nap_ms(1500);
    REQUIRE(cluster_does("mend", NULL));
    goes_on(&s, "after a moment");
    REQUIRE(cluster_heals());
    end_crew(&s, 0);
    scene_close(&s);
    CHECK(cluster_does("stop", NULL));
}

CREW_TESTS(scene_roles, T(an_osd_cut_off_the_network_loses_nothing))
