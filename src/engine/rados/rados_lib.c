/*
 * engine/rados/rados_lib.c - finding Ceph's client library and its functions.
 *
 * It is loaded once per process and never unloaded: a thread may be in it.
 */
#include "engine/rados/rados_lib.h"

#include "base/fail.h"
#include "base/sys.h"

#include <stdbool.h>

#define LIBRADOS "librados.so.2"

pyri_rados_calls pyri_rados_lib;

static const struct {
    const char *name;
    void **to;
} functions[] = {
#define X(name) {"rados_" #name, (void **)&pyri_rados_lib.name},
    PYRI_RADOS_CALLS(X)
#undef X
};

enum { NFUNCTIONS = sizeof functions / sizeof functions[0] };

static int
fail(void)
{
    const char *why = dlerror();
    return pyri_fail(PYR_EUNSUPPORTED,
                     "Ceph's client library " LIBRADOS " cannot be used: %s; "
                     "on Debian it comes with the package librados2",
                     why ? why : "it is not told why");
}

int
pyri_rados_lib_load(void)
{
    static bool loaded;
    if (loaded)
        return 0;
    void *file = pyri_sys_dlopen(LIBRADOS, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return fail();
    for (int i = 0; i < NFUNCTIONS; i++)
        if (!(*functions[i].to = dlsym(file, functions[i].name)))
            return fail();
    loaded = true;
    return 0;
}
