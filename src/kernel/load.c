/*
 * kernel/load.c - from a name to a function.
 *
 * Whoever can make us load a file owns our process, so:
 *
 *   1. The directory is named by the program that opens the store, by the
 *      environment of the process, or when Pyramid was built. Nothing that is
 *      stored can name one: a store may come from anybody.
 *   2. It is an absolute path. It and the file belong to root or to the user
 *      that we run as, and nobody else may write to them.
 *   3. The file is the kernel's name with ".so"; names have letters, digits and
 *      '_' only, so that they lead nowhere else.
 *   4. What a file says about itself is checked before it is called.
 *
 * A kernel is loaded once per process and never unloaded: a thread may be in
 * it.
 */
#include "kernel/kernel.h"

#include "base/fail.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

_Static_assert((int)PYR_KERNEL_I8 == (int)PYR_I8 &&
                   (int)PYR_KERNEL_U64 == (int)PYR_U64 &&
                   (int)PYR_KERNEL_F64 == (int)PYR_F64,
               "kernels count types as everybody does");

enum { MAX_VERSION = 31 };

typedef struct loaded {
    struct loaded *next;
    const pyr_kernel *kernel;
    char path[];
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static loaded *list;

const char *
pyri_kernel_dir(const char *asked)
{
    if (asked)
        return asked;
    const char *named = secure_getenv("PYRAMID_KERNELS");
    return named ? named : PYRI_KERNELS_DIR;
}

/* --- trust --------------------------------------------------------------- */

static int
refuse(const char *name, const char *path, const char *why)
{
    return pyri_fail(PYR_EKERNEL, "kernel '%s' is not used: %s %s", name,
                     path, why);
}

/* May only root and we have put it there? */
static int
check_owner(const char *name, const char *path, const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return refuse(name, path, "belongs to another user");
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return refuse(name, path, "can be written to by others");
    return 0;
}

static int
check_place(const char *dir, const char *name, const char *path)
{
    struct stat st;
    int err;
    if (!*dir)
        return pyri_fail(PYR_EKERNEL,
                         "there is no function '%s', and kernels are off: "
                         "PYRAMID_KERNELS is empty",
                         name);
    if (*dir != '/')
        return refuse(name, dir, "is no absolute path");
    if (pyri_sys_stat(path, &st) < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return pyri_fail(PYR_EKERNEL,
                             "there is no function '%s', and no kernel of that "
                             "name on this machine: no file %s",
                             name, path);
        return pyri_fail_errno(errno, "kernel '%s': %s", name, path);
    }
    if (!S_ISREG(st.st_mode))
        return refuse(name, path, "is no file");
    if ((err = check_owner(name, path, &st)) < 0)
        return err;
    if (pyri_sys_stat(dir, &st) < 0)
        return pyri_fail_errno(errno, "kernel '%s': %s", name, dir);
    return check_owner(name, dir, &st);
}

/* --- what it says of itself ---------------------------------------------- */

static bool
is_name(const char *text, size_t most, const char *more)
{
    size_t n = 0;
    for (; text && text[n] && n <= most; n++) {
        char c = text[n];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9');
        if (!letter && !strchr(more, c))
            return false;
    }
    return n > 0 && n <= most;
}

static const char *
wrong_params(const pyr_kernel *k)
{
    if (k->nparams > PYR_KERNEL_MAX_PARAMS)
        return "has more parameters than there can be";
    if (k->nparams && !k->params)
        return "does not say what its parameters are";
    for (uint32_t i = 0; i < k->nparams; i++) {
        if (!is_name(k->params[i].name, PYRI_CALL_MAX_NAME, "_"))
            return "has a parameter whose name is none";
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(k->params[i].name, k->params[j].name) == 0)
                return "has two parameters of the same name";
    }
    return NULL;
}

static const char *
wrong_with(const pyr_kernel *k, const char *name)
{
    if (k->size < sizeof *k)
        return "describes itself in too few bytes";
    if (!k->name || strcmp(k->name, name) != 0)
        return "says that it is another kernel";
    if (!is_name(k->version, MAX_VERSION, "._-+"))
        return "has no version, or one that is no word of 31 letters";
    if (!k->run)
        return "has nothing to run";
    if (!(k->types & PYR_KERNEL_ALL_TYPES))
        return "knows no type of cells";
    if (k->halo > PYR_KERNEL_MAX_HALO)
        return "wants a halo of more than 64 cells";
    if (k->halo_axes > PYR_KERNEL_MAX_DIMS)
        return "wants a halo along more axes than there can be";
    if (k->edge > PYR_KERNEL_FILL)
        return "has an unknown rule for edges";
    return wrong_params(k);
}

static int
check_kernel(const pyr_kernel *k, const char *name, const char *path)
{
    if (k->abi != PYR_KERNEL_ABI)
        return pyri_fail(PYR_EKERNEL,
                         "kernel '%s' is not used: %s is made for interface "
                         "%u, and this library has %u",
                         name, path, k->abi, PYR_KERNEL_ABI);
    const char *wrong = wrong_with(k, name);
    return wrong ? refuse(name, path, wrong) : 0;
}

/* --- loading ------------------------------------------------------------- */

/* The lock is held. */
static int
load(const char *dir, const char *name, const char *path,
     const pyr_kernel **out)
{
    int err = check_place(dir, name, path);
    if (err < 0)
        return err;
    loaded *l = pyri_sys_malloc(sizeof *l + strlen(path) + 1);
    if (!l)
        return pyri_fail_nomem("a kernel");
    strcpy(l->path, path);
    void *file = pyri_sys_dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file) {
        const char *why = dlerror();
        err = pyri_fail(PYR_EKERNEL,
                        "kernel '%s' cannot be loaded: %s", name,
                        why ? why : path);
        goto fail;
    }
    l->kernel = dlsym(file, "pyramid_kernel");
    if (!l->kernel) {
        err = refuse(name, path, "has no symbol 'pyramid_kernel'");
        goto unload;
    }
    if ((err = check_kernel(l->kernel, name, path)) < 0)
        goto unload;
    l->next = list;
    list = l;
    *out = l->kernel;
    return 0;
unload:
    dlclose(file); /* nothing of it was called */
fail:
    free(l);
    return err;
}

int
pyri_kernel_find(const char *dir, const char *name, const pyr_kernel **out)
{
    char path[PATH_MAX];
    int err = 0;
    *out = NULL;
    if (!is_name(name, PYRI_CALL_MAX_NAME, "_"))
        return pyri_fail(PYR_EINVAL, "'%s' is no name of a kernel", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s.so", dir, name) >=
        sizeof path)
        return pyri_fail(PYR_EINVAL, "the path of kernel '%s' is too long",
                         name);
    pthread_mutex_lock(&lock);
    for (const loaded *l = list; l && !*out; l = l->next)
        if (strcmp(l->path, path) == 0)
            *out = l->kernel;
    if (!*out)
        err = load(dir, name, path, out);
    pthread_mutex_unlock(&lock);
    return err;
}
