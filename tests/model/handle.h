/*
 * model/handle.h - handlers that come and go, as a step of the model test.
 */
#ifndef TESTS_MODEL_HANDLE_H
#define TESTS_MODEL_HANDLE_H

#include "model/bench.h"

/* Of integers, whose lowest bit it changes; reals are left alone. */
static void
step_handler(bench *b, twin *t)
{
    if (t->m.type == PYR_F32 || t->m.type == PYR_F64)
        return;
    if (t->m.flips)
        OK(pyr_handler_remove(t->array, t->handler));
    else
        OK(pyr_handler_add(t->array, PYR_ON_WRITE, "x ^ 1", &t->handler));
    t->m.flips = !t->m.flips;
    (void)b;
}

#endif
