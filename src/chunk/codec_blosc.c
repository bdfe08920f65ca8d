/*
 * chunk/codec_blosc.c - pressing cells with Blosc: their bytes are shuffled,
 * so that alike ones stand together, then given to LZ4 or Zstandard.
 *
 * What comes out names its own compressor and cell size, so expanding needs
 * neither. The only file that knows Blosc; 1.21 or later, whose decompressors
 * keep to the buffers they are given whatever the bytes say.
 */
#include "chunk/chunk.h"

#include "base/fail.h"

#include <blosc.h>

#include <string.h>

enum { MAX_LEVEL = 9 };

bool
pyri_codec_valid(int codec, int level)
{
    return codec >= PYR_CODEC_NONE && codec <= PYR_CODEC_ZSTD && level >= 0 &&
           level <= MAX_LEVEL;
}

const char *
pyri_codec_name(pyr_codec codec)
{
    switch (codec) {
    case PYR_CODEC_NONE: return "none";
    case PYR_CODEC_LZ4: return BLOSC_LZ4_COMPNAME;
    case PYR_CODEC_ZSTD: return BLOSC_ZSTD_COMPNAME;
    }
    return "unknown";
}

static int
check_compiled_in(const char *name)
{
    if (blosc_compname_to_compcode(name) < 0)
        return pyri_fail(PYR_EUNSUPPORTED,
                         "codec %s: the installed Blosc library (%s) was "
                         "built without it",
                         name, blosc_get_version_string());
    return 0;
}

static int
chosen_level(pyr_codec codec, int level)
{
    if (level > 0)
        return level;
    return codec == PYR_CODEC_LZ4 ? 5 : 3;
}

int
pyri_codec_press(pyr_codec codec, int level, size_t cell, const void *in,
                 size_t size, void *out, size_t *pressed)
{
    const char *name = pyri_codec_name(codec);
    *pressed = 0;
    if (codec == PYR_CODEC_NONE || size > BLOSC_MAX_BUFFERSIZE ||
        size <= BLOSC_MIN_HEADER_LENGTH)
        return 0;
    int got = check_compiled_in(name);
    if (got < 0)
        return got;
    got = blosc_compress_ctx(chosen_level(codec, level), BLOSC_SHUFFLE, cell,
                             size, in, out, size, name, 0, 1);
    if (got < 0)
        return pyri_fail(PYR_EIO, "codec %s: Blosc failed on %zu bytes (%d)",
                         name, size, got);
    if ((size_t)got < size)
        *pressed = (size_t)got;
    return 0;
}

/* Blosc knows more compressors than are written here; keep them out of reach
 * of hostile bytes. */
static int
check_compressor(const void *in)
{
    const char *library = blosc_cbuffer_complib(in);
    if (library && strcmp(library, BLOSC_LZ4_LIBNAME) == 0)
        return check_compiled_in(BLOSC_LZ4_COMPNAME);
    if (library && strcmp(library, BLOSC_ZSTD_LIBNAME) == 0)
        return check_compiled_in(BLOSC_ZSTD_COMPNAME);
    return pyri_fail(PYR_ECORRUPT, "pressed cells: unknown compressor");
}

int
pyri_codec_check(const void *in, size_t pressed, size_t size)
{
    size_t inside = 0;
    if (pressed < BLOSC_MIN_HEADER_LENGTH || pressed >= size ||
        size > BLOSC_MAX_BUFFERSIZE ||
        blosc_cbuffer_validate(in, pressed, &inside) < 0)
        return pyri_fail(PYR_ECORRUPT, "pressed cells: damaged header");
    if (inside != size)
        return pyri_fail(PYR_ECORRUPT,
                         "pressed cells: %zu bytes inside, not %zu", inside,
                         size);
    return check_compressor(in);
}

int
pyri_codec_expand(const void *in, size_t pressed, void *out, size_t size)
{
    int err = pyri_codec_check(in, pressed, size);
    if (err < 0)
        return err;
    int got = blosc_decompress_ctx(in, out, size, 1);
    if (got < 0 || (size_t)got != size)
        return pyri_fail(PYR_ECORRUPT, "pressed cells: damaged (%d)", got);
    return 0;
}
