/*
 * base/fault.h - named points where a test can stop, kill or fail the code.
 *
 *   PYRI_FAULT("write.taken");                    empty in release builds
 *   if ((err = PYRI_FAULT_FAILS("segment.sync")) < 0) goto out;
 *
 * In builds with -Dfaults=true the environment variable PYRAMID_FAULT orders
 * what happens, as a list "NAME=ACTION[@N]" divided by commas: at the Nth
 * visit (from 1; default 1) of the point called NAME
 *   kill   the process kills itself with SIGKILL
 *   stop   the process stops itself with SIGSTOP, until SIGCONT
 *   fail   the call fails with PYR_EIO (PYRI_FAULT_FAILS points only)
 *   nospc  the call fails with PYR_ENOSPC (likewise)
 * A test in the same process may set pyri_fault_hook instead, which is called
 * with every name that is passed and returns 0 or a code to fail with.
 */
#ifndef PYRI_BASE_FAULT_H
#define PYRI_BASE_FAULT_H

#ifdef PYRI_FAULTS
extern int (*pyri_fault_hook)(const char *name);
int pyri_fault(const char *name);
#define PYRI_FAULT(name) ((void)pyri_fault(name))
#define PYRI_FAULT_FAILS(name) pyri_fault(name)
#else
#define PYRI_FAULT(name) ((void)0)
#define PYRI_FAULT_FAILS(name) 0
#endif

#endif
