/*
 * ceph/cluster.h - the cluster under test, and how it is harmed.
 *
 * PYR_TEST_CEPH is the directory of a cluster of tools/dev-ceph, which
 * PYR_DEV_CEPH names; PYR_TEST_STORE is its URL. Without PYR_TEST_CEPH the
 * tests run on whatever store there is, and nothing is harmed: so their own
 * logic can be tried on files.
 */
#ifndef CEPH_CLUSTER_H
#define CEPH_CLUSTER_H

#include "support/check.h"
#include "support/proc.h"

#include <fcntl.h>

static inline const char *
cluster_dir(void)
{
    const char *dir = getenv("PYR_TEST_CEPH");
    return dir && *dir ? dir : NULL;
}

/* Runs `dev-ceph COMMAND [ARGUMENT...] DIR`; true if it went well. */
static inline bool
cluster_does(const char *command, const char *const *arguments)
{
    char *argv[12];
    const char *tool = getenv("PYR_DEV_CEPH");
    int n = 0;
    if (!cluster_dir())
        return true;
    argv[n++] = strdup(tool ? tool : "tools/dev-ceph");
    argv[n++] = strdup(command);
    for (; arguments && *arguments && n < 10; arguments++)
        argv[n++] = strdup(*arguments);
    argv[n++] = strdup(cluster_dir());
    argv[n] = NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(2, 1);
        execvp(argv[0], argv);
        _exit(127);
    }
    bool ok = proc_ends_well(proc_note(pid), 180000);
    if (!ok)
        printf("# dev-ceph %s failed\n", command);
    for (int i = 0; i < n; i++)
        free(argv[i]);
    return ok;
}

/* kill, revive, pause or resume one OSD. */
static inline bool
cluster_osd(const char *command, int osd)
{
    char number[16];
    snprintf(number, sizeof number, "%d", osd);
    return cluster_does(command, (const char *[]){number, NULL});
}

static inline bool
cluster_restart_mon(void)
{
    return cluster_does("restart-mon", NULL);
}

/* Until all copies of everything are there. */
static inline bool
cluster_heals(void)
{
    return cluster_does("wait", NULL);
}

/* The URL with another user, or another configuration, in it. */
static inline void
cluster_url_with(const char *url, const char *key, const char *value,
                 char *out, size_t size)
{
    char name[32];
    snprintf(name, sizeof name, "%s=", key);
    const char *at = strstr(url, name);
    if (!at) {
        snprintf(out, size, "%s", url);
        return;
    }
    at += strlen(name);
    snprintf(out, size, "%.*s%s%s", (int)(at - url), url, value,
             at + strcspn(at, "&"));
}

#endif
