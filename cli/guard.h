/*
 * cli/guard.h - work on stores that may be damaged in any way.
 */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "cmd.h"

/* Run it in a process of its own. What is under the embedded engine's metadata
 * trusts its pages: if they are damaged, the process may be killed, and that
 * is a finding, too. Returns what it returned, or FAILED. */
int guard(const args *a, int (*run)(const args *a));

#endif
