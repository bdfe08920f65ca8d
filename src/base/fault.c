/*
 * base/fault.c - named points where a test can stop, kill or fail the code.
 */
#include "base/fault.h"

#ifdef PYRI_FAULTS

#include "base/fail.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ORDERS = 16 };

typedef struct order {
    char name[48];
    char action[8];
    unsigned at;
    atomic_uint visits;
} order;

int (*pyri_fault_hook)(const char *name);

static order orders[MAX_ORDERS];
static int norders;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
read_order(const char *text, size_t size)
{
    order *o = &orders[norders];
    const char *equals = memchr(text, '=', size);
    if (!equals || norders == MAX_ORDERS)
        return;
    size_t name = (size_t)(equals - text), rest = size - name - 1;
    const char *at = memchr(equals + 1, '@', rest);
    size_t action = at ? (size_t)(at - equals - 1) : rest;
    if (name >= sizeof o->name || action >= sizeof o->action)
        return;
    memcpy(o->name, text, name);
    memcpy(o->action, equals + 1, action);
    o->at = at ? (unsigned)strtoul(at + 1, NULL, 10) : 1;
    norders++;
}

static void
read_orders(void)
{
    const char *text = getenv("PYRAMID_FAULT");
    while (text && *text) {
        size_t size = strcspn(text, ",");
        read_order(text, size);
        text += size + (text[size] == ',');
    }
}

static int
carry_out(const order *o)
{
    if (strcmp(o->action, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(o->action, "stop") == 0)
        raise(SIGSTOP);
    if (strcmp(o->action, "fail") == 0)
        return pyri_fail(PYR_EIO, "fault point %s: made to fail", o->name);
    if (strcmp(o->action, "nospc") == 0)
        return pyri_fail(PYR_ENOSPC, "fault point %s: made to be full",
                         o->name);
    return 0;
}

int
pyri_fault(const char *name)
{
    if (pyri_fault_hook)
        return pyri_fault_hook(name);
    pthread_once(&once, read_orders);
    for (int i = 0; i < norders; i++)
        if (strcmp(orders[i].name, name) == 0 &&
            atomic_fetch_add(&orders[i].visits, 1) + 1 == orders[i].at)
            return carry_out(&orders[i]);
    return 0;
}

#else
typedef int pyri_fault_is_compiled_out;
#endif
