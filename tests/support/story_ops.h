/*
 * support/story_ops.h - what story*.c share.
 */
#ifndef SUPPORT_STORY_OPS_H
#define SUPPORT_STORY_OPS_H

#include "support/story.h"

/* A call of the library, between enter() and leave(). */
#define CALL(w, err, call)                                                     \
    ((w)->enter ? (w)->enter() : (void)0, (err) = (call),                      \
     (w)->leave ? (w)->leave() : (void)0)

/* What an operation is about; and a box in a shape. */
thing *story_any_thing(world *w);
uint64_t story_any_version(world *w, const thing *t);
const uint64_t *story_shape_of(const thing *t);
void story_any_box(world *w, const uint64_t *shape, uint64_t offset[2],
                   uint64_t size[2]);

/* A walk over what a thing has: tags or versions that were met. */
typedef struct story_walk {
    const thing *t;
    uint64_t n;
    bool wrong; /* one of them is not so */
} story_walk;

int story_see_tag(void *walk, const char *tag, pyr_version version);
int story_see_change(void *walk, const pyr_change *change);
int story_see_name(void *ctx, const char *name); /* {world *, int *known} */
int story_see_handler(void *walk, const pyr_handler *handler);

int story_open_thing(world *w, thing *t);
bool story_same_stats(const model *m, const pyr_stats *have,
                      const model_stats *want);

/* Rows of story_records.c. */
int story_do_clone(world *w);
int story_do_tag(world *w);
int story_do_untag(world *w);
int story_do_set_attributes(world *w);
int story_do_handler_add(world *w);
int story_do_handler_remove(world *w);
int story_do_forget(world *w);
int story_do_reclaim(world *w);
int story_do_fold(world *w);
int story_do_usage(world *w);
int story_do_verify(world *w);

/* Rows of story_looks.c. */
int story_look_stat(world *w);
int story_look_reduce(world *w);
int story_look_diff(world *w);
int story_look_last_change(world *w);
int story_look_history(world *w);
int story_look_tags(world *w);
int story_look_handlers(world *w);
int story_look_attributes(world *w);
int story_look_info(world *w);
int story_look_arrays(world *w);
int story_look_status(world *w);

#endif
