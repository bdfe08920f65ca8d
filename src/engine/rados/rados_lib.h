/*
 * engine/rados/rados_lib.h - Ceph's client library, loaded when it is needed.
 *
 * With the fifteen libraries that it brings it costs a process about ten
 * milliseconds at its start, and most have their store in a directory. So it
 * is not linked: the first who opens a store on a cluster loads it. The names
 * below then lead to its functions, and code reads as if it were linked. A
 * function that is used has a line in both lists.
 */
#ifndef PYRI_ENGINE_RADOS_RADOS_LIB_H
#define PYRI_ENGINE_RADOS_RADOS_LIB_H

#include <rados/librados.h>

#define PYRI_RADOS_CALLS(X)                                                    \
    X(aio_create_completion2)                                                  \
    X(aio_get_return_value)                                                    \
    X(aio_read)                                                                \
    X(aio_read_op_operate)                                                     \
    X(aio_release)                                                             \
    X(aio_remove)                                                              \
    X(aio_wait_for_complete)                                                   \
    X(aio_write_full)                                                          \
    X(buffer_free)                                                             \
    X(cluster_stat)                                                            \
    X(conf_parse_env)                                                          \
    X(conf_read_file)                                                          \
    X(connect)                                                                 \
    X(create2)                                                                 \
    X(create_read_op)                                                          \
    X(ioctx_create)                                                            \
    X(ioctx_destroy)                                                           \
    X(ioctx_set_namespace)                                                     \
    X(mon_command)                                                             \
    X(nobjects_list_close)                                                     \
    X(nobjects_list_next)                                                      \
    X(nobjects_list_open)                                                      \
    X(read_op_exec)                                                            \
    X(read_op_exec_user_buf)                                                   \
    X(release_read_op)                                                         \
    X(shutdown)                                                                \
    X(stat)

typedef struct pyri_rados_calls {
#define X(name) __typeof__(rados_##name) *name;
    PYRI_RADOS_CALLS(X)
#undef X
} pyri_rados_calls;

/* Does not change once it is loaded. */
extern pyri_rados_calls pyri_rados_lib;

/* Load it, unless it is there. Only one thread at a time may call; whoever has
 * a cluster open comes after that. PYR_EUNSUPPORTED if it is not installed. */
int pyri_rados_lib_load(void);

#define rados_aio_create_completion2 pyri_rados_lib.aio_create_completion2
#define rados_aio_get_return_value pyri_rados_lib.aio_get_return_value
#define rados_aio_read pyri_rados_lib.aio_read
#define rados_aio_read_op_operate pyri_rados_lib.aio_read_op_operate
#define rados_aio_release pyri_rados_lib.aio_release
#define rados_aio_remove pyri_rados_lib.aio_remove
#define rados_aio_wait_for_complete pyri_rados_lib.aio_wait_for_complete
#define rados_aio_write_full pyri_rados_lib.aio_write_full
#define rados_buffer_free pyri_rados_lib.buffer_free
#define rados_cluster_stat pyri_rados_lib.cluster_stat
#define rados_conf_parse_env pyri_rados_lib.conf_parse_env
#define rados_conf_read_file pyri_rados_lib.conf_read_file
#define rados_connect pyri_rados_lib.connect
#define rados_create2 pyri_rados_lib.create2
#define rados_create_read_op pyri_rados_lib.create_read_op
#define rados_ioctx_create pyri_rados_lib.ioctx_create
#define rados_ioctx_destroy pyri_rados_lib.ioctx_destroy
#define rados_ioctx_set_namespace pyri_rados_lib.ioctx_set_namespace
#define rados_mon_command pyri_rados_lib.mon_command
#define rados_nobjects_list_close pyri_rados_lib.nobjects_list_close
#define rados_nobjects_list_next pyri_rados_lib.nobjects_list_next
#define rados_nobjects_list_open pyri_rados_lib.nobjects_list_open
#define rados_read_op_exec pyri_rados_lib.read_op_exec
#define rados_read_op_exec_user_buf pyri_rados_lib.read_op_exec_user_buf
#define rados_release_read_op pyri_rados_lib.release_read_op
#define rados_shutdown pyri_rados_lib.shutdown
#define rados_stat pyri_rados_lib.stat

#endif
