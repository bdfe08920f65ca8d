/*
 * pyramid/pyramid.h - storage for huge multi-dimensional arrays: all of it.
 *
 *   #include <pyramid/pyramid.h>              cc x.c $(pkg-config --cflags --libs pyramid)
 *
 *   pyr_store *store;
 *   pyr_array *array;
 *   uint64_t   shape[2] = {8192, 8192}, offset[2] = {10, 20}, size[2] = {2, 2};
 *   double     cells[4] = {1, 2, 3, 4};
 *   pyr_version made;
 *
 *   pyr_open("demo.pyr", PYR_OPEN_CREATE, &store);
 *   pyr_create(store, "t", &(pyr_spec){.ndim = 2, .shape = shape, .type = PYR_F64}, &array);
 *   pyr_write(array, offset, size, cells, &made);
 *   pyr_read(array, made, offset, size, cells);
 *   pyr_array_close(array);
 *   pyr_close(store);
 */
#ifndef PYRAMID_PYRAMID_H
#define PYRAMID_PYRAMID_H

#include <pyramid/array.h>
#include <pyramid/error.h>
#include <pyramid/keep.h>
#include <pyramid/op.h>
#include <pyramid/store.h>
#include <pyramid/types.h>
#include <pyramid/version.h>

#endif
