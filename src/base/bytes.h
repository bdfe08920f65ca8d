/*
 * base/bytes.h - little-endian load and store, for everything that is stored.
 */
#ifndef PYRI_BASE_BYTES_H
#define PYRI_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Cells are stored as they lie in memory, so that nothing is between a mapped
 * file and the caller: that is little-endian. */
#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "Pyramid needs a little-endian machine"
#endif

static inline uint16_t
pyri_load16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

static inline uint32_t
pyri_load32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static inline uint64_t
pyri_load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static inline void
pyri_store16(void *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof v);
}

static inline void
pyri_store32(void *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static inline void
pyri_store64(void *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

/* Big-endian, for keys: their order as bytes is their order as numbers. */
static inline uint64_t
pyri_load64_be(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return be64toh(v);
}

static inline void
pyri_store64_be(void *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, sizeof v);
}

#endif
