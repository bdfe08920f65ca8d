/*
 * cls/codec_none.c - no codec, in the place of chunk/codec_blosc.c: the module
 * that OSDs load works on cells that are stored as they are.
 */
#include "chunk/chunk.h"

#include "base/fail.h"

bool
pyri_codec_valid(int codec, int level)
{
    return codec == 0 && level == 0;
}

const char *
pyri_codec_name(pyr_codec codec)
{
    return codec == 0 ? "none" : "unknown";
}

static int
refuse(void)
{
    return pyri_fail(PYR_EUNSUPPORTED, "there is no codec here");
}

int
pyri_codec_press(pyr_codec codec, int level, size_t cell, const void *in,
                 size_t size, void *out, size_t *pressed)
{
    *pressed = 0;
    return refuse();
}

int
pyri_codec_check(const void *in, size_t pressed, size_t size)
{
    return refuse();
}

int
pyri_codec_expand(const void *in, size_t pressed, void *out, size_t size)
{
    return refuse();
}
