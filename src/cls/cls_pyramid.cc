// cls/cls_pyramid.cc - Pyramid's object class: the door by which requests
// reach the C code that runs inside of an OSD.
//
// ceph-osd loads this as libcls_pyramid.so. It is built for the release of
// Ceph whose headers are installed, and runs there only.
#include <rados/objclass.h>

#include <cstring>

CLS_VER(1, 0)
CLS_NAME(pyramid)

static const char VERSION[] = "1";

/* Which class is this? Tells clients whether they fit together. */
static int
version(cls_method_context_t, ceph::buffer::list *, ceph::buffer::list *out)
{
    out->append(VERSION, sizeof VERSION - 1);
    return 0;
}

CLS_INIT(pyramid)
{
    cls_handle_t handle;
    cls_method_handle_t method;

    if (cls_register("pyramid", &handle) < 0)
        return;
    cls_register_cxx_method(handle, "version", CLS_METHOD_RD, version, &method);
}
