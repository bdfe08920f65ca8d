/*
 * array/tray.c - small fragments that are put together.
 *
 * A box that lies across chunks, or a list of boxes, becomes several fragments.
 * Put one by one, each is a call to the system and begins on a page of its own;
 * put together, they lie side by side. Nothing is copied for it: what was
 * packed are pieces, mostly of the caller's memory.
 */
#include "array/tray.h"

enum { FULL = 256 << 10 }; /* bytes: more at a time is no cheaper */

void
pyri_tray_fini(pyri_tray *t)
{
    for (int i = 0; i < t->used; i++)
        pyri_packer_fini(&t->small[i]);
    pyri_packer_fini(&t->large);
}

int
pyri_tray_add(pyri_tray *t, pyri_draft *d, pyri_painted *of)
{
    t->waiting[t->n].of = of;
    t->waiting[t->n].place = of->n;
    t->bytes += t->small[t->n++].size;
    return t->n == PYRI_TRAY || t->bytes >= FULL ? pyri_tray_flush(t, d) : 0;
}

int
pyri_tray_flush(pyri_tray *t, pyri_draft *d)
{
    pyri_blob_put puts[PYRI_TRAY];
    pyri_blob blobs[PYRI_TRAY];
    int n = t->n;
    t->n = 0;
    t->bytes = 0;
    for (int i = 0; i < n; i++) {
        const pyri_packer *k = &t->small[i];
        puts[i] = (pyri_blob_put){k->iov, k->niov, k->size, k->aligned, {0, 0}};
    }
    if (n == 0)
        return 0;
    int err = pyri_engine_put_blobs(d->array->engine, puts, (size_t)n);
    for (int i = 0; i < n && err == 0; i++) {
        pyri_painted *of = t->waiting[i].of;
        pyri_frag *frag = &of->frags[of->n - t->waiting[i].place];
        blobs[i] = (pyri_blob){puts[i].ref, puts[i].size};
        frag->ref[0] = puts[i].ref.a;
        frag->ref[1] = puts[i].ref.b;
    }
    return err < 0 ? err : pyri_stash_add(d, blobs, (size_t)n);
}
