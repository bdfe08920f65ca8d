/*
 * engine/engines.h - the engines of this build, and how a URL picks one.
 *
 * For engine.c and the tests of this layer; other layers include engine.h.
 */
#ifndef PYRI_ENGINE_ENGINES_H
#define PYRI_ENGINE_ENGINES_H

#include "engine/engine.h"

extern const pyri_engine_ops pyri_engine_mem, pyri_engine_local;
extern const pyri_engine_ops pyri_engine_rados; /* if built with librados */

enum { PYRI_MAX_URL = 4095 }; /* bytes */

/* What a URL says: which engine, and what to hand to its open(). */
typedef struct pyri_url {
    const pyri_engine_ops *ops;
    char rest[PYRI_MAX_URL + 1];
} pyri_url;

/*
 * Take a URL apart. "PATH", "file:PATH", "file:///PATH" and
 * "file://localhost/PATH" name a directory, "mem:NAME" a store in memory. In
 * file: URLs %XX stands for the byte XX; a plain path is taken as it is,
 * whatever is in it.
 *
 * Errors: PYR_EINVAL if the URL makes no sense, PYR_EUNSUPPORTED if it names
 *         an engine that exists but is not in this build.
 */
int pyri_engine_parse_url(const char *url, pyri_url *out);

#endif
