/*
 * support/story_ops.h - what story.c and story_ops.c share.
 */
#ifndef SUPPORT_STORY_OPS_H
#define SUPPORT_STORY_OPS_H

#include "support/story.h"

/* A walk over what a thing has: tags or versions that were met. */
typedef struct story_walk {
    const thing *t;
    uint64_t n;
    bool wrong; /* one of them is not so */
} story_walk;

int story_see_tag(void *walk, const char *tag, pyr_version version);
int story_see_change(void *walk, const pyr_change *change);
int story_see_name(void *ctx, const char *name); /* {world *, int *known} */

int story_open_thing(world *w, thing *t);
bool story_same_stats(const model *m, const pyr_stats *have,
                      const model_stats *want);

#endif
