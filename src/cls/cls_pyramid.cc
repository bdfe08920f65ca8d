/*
 * cls/cls_pyramid.cc - the object class: Ceph's names for what object.h asks.
 *
 * Nothing is decided here. A method gets a request as bytes and an object as a
 * table of functions; both end where the call does. No exception leaves.
 *
 * Lists and removal of keys are not in Ceph's public header; they are declared
 * below as ceph-osd of the 16th to 19th release has them. Another release
 * refuses to load the module, and the engine says so.
 */
#include <rados/objclass.h>

#include <chrono>
#include <climits>
#include <list>
#include <map>
#include <mutex>
#include <string>

extern "C" {
#include "cls/object.h"
}

extern int cls_cxx_map_get_vals(cls_method_context_t hctx,
                                const std::string &start_after,
                                const std::string &filter_prefix,
                                uint64_t max_to_get,
                                std::map<std::string, ceph::bufferlist> *vals,
                                bool *more);
extern int cls_cxx_map_set_vals(
    cls_method_context_t hctx,
    const std::map<std::string, ceph::bufferlist> *map);
extern int cls_cxx_map_remove_key(cls_method_context_t hctx,
                                  const std::string &key);
extern int cls_cxx_write_zero(cls_method_context_t hctx, int ofs, int len);

CLS_VER(1, 0)
CLS_NAME(pyramid)

namespace {

/* Memory for what is computed, page-aligned as the disk wants it. A megabyte
 * that is fresh from the system costs more than the function that fills it; so
 * pieces are kept, up to MOST bytes in all, and used again when nobody but us
 * refers to them: the disk has them, and so have the replicas. */
class pool {
    enum { PIECES = 64, MOST = 64 << 20 };
    std::mutex lock;
    size_t held = 0;
    ceph::bufferptr pieces[PIECES];

    static bool idle(const ceph::bufferptr &p)
    {
        return !p.have_raw() || p.raw_nref() == 1;
    }

    /* Keep it in the place of one that is idle, if there is room. */
    void keep(ceph::bufferptr *place, const ceph::bufferptr &p)
    {
        size_t others = held - place->length();
        if (p.length() > MOST - others)
            return;
        *place = p;
        held = others + p.length();
    }

public:
    ceph::bufferptr take(unsigned size)
    {
        ceph::bufferptr *spare = nullptr;
        std::lock_guard<std::mutex> guard(lock);
        for (auto &p : pieces) {
            if (!idle(p))
                continue;
            if (p.length() >= size && p.length() / 2 <= size) {
                p.zero(0, 0, true); /* a checksum that Ceph remembers of it */
                return p;
            }
            if (!spare || p.length() > spare->length())
                spare = &p;
        }
        ceph::bufferptr fresh(ceph::buffer::create_page_aligned(size));
        if (spare)
            keep(spare, fresh);
        return fresh;
    }
};

pool memory;

/* An object for the time of a call, and memory that it was given. */
struct place {
    cls_method_context_t context;
    std::list<ceph::bufferptr> rooms;
};

cls_method_context_t
here(void *ctx)
{
    return static_cast<place *>(ctx)->context;
}

std::string
text(pyri_bytes b)
{
    return std::string(static_cast<const char *>(b.data), b.size);
}

bool
is_attribute(pyri_bytes key)
{
    return key.size && *static_cast<const char *>(key.data) == '@';
}

/* Attributes of others in the same object are not ours. */
std::string
attribute(pyri_bytes key)
{
    return "pyramid" + text(key);
}

int
object_exists(void *ctx)
{
    uint64_t size;
    time_t mtime;
    return cls_cxx_stat(here(ctx), &size, &mtime) < 0 ? PYRI_CLS_NO_OBJECT : 0;
}

int
object_create(void *ctx)
{
    return cls_cxx_create(here(ctx), false);
}

int
object_remove(void *ctx)
{
    return cls_cxx_remove(here(ctx));
}

int
object_get(void *ctx, pyri_bytes key, pyri_buf *out)
{
    ceph::bufferlist value;
    int err = is_attribute(key)
                  ? cls_cxx_getxattr(here(ctx), attribute(key).c_str(), &value)
                  : cls_cxx_map_get_val(here(ctx), text(key), &value);
    if (err == -ENOENT || err == -ENODATA)
        return PYRI_CLS_NONE;
    if (err < 0)
        return err;
    if (is_attribute(key) && value.length() == 0)
        return PYRI_CLS_NONE;
    for (const auto &part : value.buffers())
        pyri_buf_add(out, part.c_str(), part.length());
    return out->failed ? -ENOMEM : 0;
}

int
object_set(void *ctx, const pyri_bytes *keys, const pyri_bytes *values,
           size_t n)
{
    std::map<std::string, ceph::bufferlist> map;
    for (size_t i = 0; i < n; i++) {
        ceph::bufferlist value;
        value.append(static_cast<const char *>(values[i].data),
                     static_cast<unsigned>(values[i].size));
        if (!is_attribute(keys[i])) {
            map[text(keys[i])] = value;
            continue;
        }
        int err = cls_cxx_setxattr(here(ctx), attribute(keys[i]).c_str(), &value);
        if (err < 0)
            return err;
    }
    return map.empty() ? 0 : cls_cxx_map_set_vals(here(ctx), &map);
}

/* An attribute cannot be removed; an empty one counts as not there. */
int
object_del(void *ctx, pyri_bytes key)
{
    if (!is_attribute(key))
        return cls_cxx_map_remove_key(here(ctx), text(key));
    ceph::bufferlist none;
    return cls_cxx_setxattr(here(ctx), attribute(key).c_str(), &none);
}

int
object_list(void *ctx, pyri_bytes after, pyri_bytes prefix, size_t most,
            pyri_entry_fn *each, void *each_ctx, bool *more)
{
    std::map<std::string, ceph::bufferlist> values;
    *more = false;
    int err = cls_cxx_map_get_vals(here(ctx), text(after), text(prefix), most,
                                   &values, more);
    if (err == -ENOENT)
        return 0;
    if (err < 0)
        return err;
    for (auto &entry : values) {
        pyri_bytes key = {entry.first.data(), entry.first.size()};
        pyri_bytes value = {entry.second.c_str(), entry.second.length()};
        if ((err = each(each_ctx, key, value)) != 0)
            return err;
    }
    return 0;
}

int64_t
object_now(void *)
{
    auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/* Offsets are int to Ceph; objects that have blobs in them are far smaller. */
int
object_read(void *ctx, uint64_t at, size_t size, void *to)
{
    ceph::bufferlist bytes;
    if (at > INT_MAX || size > INT_MAX - at)
        return PYRI_CLS_NONE;
    int err = cls_cxx_read(here(ctx), static_cast<int>(at),
                           static_cast<int>(size), &bytes);
    if (err < 0)
        return err;
    if (bytes.length() != size)
        return PYRI_CLS_NONE;
    bytes.begin().copy(static_cast<unsigned>(size), static_cast<char *>(to));
    return 0;
}

void *
object_room(void *ctx, size_t size)
{
    auto &rooms = static_cast<place *>(ctx)->rooms;
    if (size > INT_MAX)
        return nullptr;
    rooms.push_back(memory.take(static_cast<unsigned>(size)));
    return rooms.back().c_str();
}

/* As it is, if it is in a room of ours; else a copy. */
void
add_bytes(place *p, ceph::bufferlist &to, const struct iovec &piece)
{
    const char *base = static_cast<const char *>(piece.iov_base);
    auto size = static_cast<unsigned>(piece.iov_len);
    for (auto &room : p->rooms)
        if (base == room.c_str() && size <= room.length()) {
            to.append(room, 0, size);
            return;
        }
    to.append(base, size);
}

int
object_write(void *ctx, uint64_t at, const struct iovec *iov, int n)
{
    ceph::bufferlist bytes;
    for (int i = 0; i < n; i++)
        if (iov[i].iov_len)
            add_bytes(static_cast<place *>(ctx), bytes, iov[i]);
    if (at > INT_MAX || bytes.length() > INT_MAX - at)
        return PYRI_CLS_FULL;
    return cls_cxx_write(here(ctx), static_cast<int>(at),
                         static_cast<int>(bytes.length()), &bytes);
}

int
object_zero(void *ctx, uint64_t at, uint64_t size)
{
    if (at > INT_MAX || size > INT_MAX - at)
        return PYRI_CLS_BAD;
    return cls_cxx_write_zero(here(ctx), static_cast<int>(at),
                              static_cast<int>(size));
}

int
object_size(void *ctx, uint64_t *out)
{
    time_t mtime;
    return cls_cxx_stat(here(ctx), out, &mtime) < 0 ? PYRI_CLS_NO_OBJECT : 0;
}

const pyri_object_ops ops = {
    object_exists, object_create, object_remove, object_get,
    object_set,    object_del,    object_list,   object_now,
    object_read,   object_room,   object_write,  object_zero,
    object_size,
};

int
run(const pyri_method *m, cls_method_context_t ctx, ceph::bufferlist *in,
    ceph::bufferlist *out)
{
    pyri_buf answer = {};
    int err;
    try {
        place object = {ctx, {}};
        pyri_bytes request = {in->c_str(), in->length()};
        err = pyri_method_run(m, &ops, &object, request, &answer);
        if (err == 0 && answer.size)
            out->append(reinterpret_cast<const char *>(answer.data),
                        static_cast<unsigned>(answer.size));
    } catch (const std::bad_alloc &) {
        err = -ENOMEM;
    } catch (...) {
        err = -EIO;
    }
    pyri_buf_fini(&answer);
    return err;
}

/* Ceph wants a function of its own for each method. */
template <size_t N>
int
call(cls_method_context_t ctx, ceph::bufferlist *in, ceph::bufferlist *out)
{
    return run(&pyri_methods[N], ctx, in, out);
}

enum { MOST_METHODS = 64 };

template <size_t N>
void
add_methods(cls_handle_t handle)
{
    cls_method_handle_t method;
    const pyri_method *m = &pyri_methods[N];
    if (!m->name)
        return;
    cls_register_cxx_method(handle, m->name,
                            CLS_METHOD_RD | (m->writes ? CLS_METHOD_WR : 0),
                            call<N>, &method);
    if constexpr (N + 1 < MOST_METHODS)
        add_methods<N + 1>(handle);
}

} // namespace

CLS_INIT(pyramid)
{
    cls_handle_t handle;
    if (cls_register("pyramid", &handle) < 0)
        return;
    add_methods<0>(handle);
}
