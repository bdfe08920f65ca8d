/*
 * array/sender.h - chunks of a write that the engine runs handlers on.
 */
#ifndef PYRI_ARRAY_SENDER_H
#define PYRI_ARRAY_SENDER_H

#include "array/draft.h"

typedef struct pyri_sender pyri_sender;

/* Gives NULL if the engine cannot run the handlers of the draft. */
int pyri_sender_new(pyri_draft *d, pyri_sender **out);
void pyri_sender_free(pyri_sender *s); /* NULL is allowed */
/* The cells of a box of one chunk, copied; sent now or later. When they are
 * stored, *to has a fragment; to->pos is the caller's. What the engine does not
 * store stays without one. */
int pyri_sender_add(pyri_sender *s, const pyri_box *box, pyri_mem cells,
                    pyri_painted *to);
int pyri_sender_flush(pyri_sender *s);

#endif
