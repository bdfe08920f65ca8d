/*
 * version/record.c - the record of a version: its root, and its provenance.
 *
 *   bytes   what
 *       8   XXH3 of all that follows
 *       1   format, 1
 *       1   kind (pyr_kind)
 *       1   level of the root node
 *  varint   label of the root node; 0: all is fill
 *           form: ndim (1), shape (varints), halvings (varint) and their
 *           axes (1 each), cuts (varint) and each cut's label, extent, axis
 *           claim: runs (varint), each: 1 if a box (1), then along each axis
 *           start, block[, count, stride] (varints)
 *       8   time, ns since 1970
 *  varint   label of the source version, of computed ones
 *  string   who    string  message    string  expression
 *  string   handlers that the cells went through; left out if there are none
 */
#include "version/version.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void
pyri_record_fini(pyri_record *r)
{
    pyri_form_fini(&r->form);
    pyri_claim_fini(&r->claim);
    pyri_buf_fini(&r->texts);
    *r = (pyri_record){0};
}

void
pyri_record_encode(const pyri_record *r, pyri_buf *out)
{
    size_t start = out->size;
    pyri_buf_u64(out, 0);
    pyri_buf_u8(out, 1);
    pyri_buf_u8(out, (uint8_t)r->kind);
    pyri_buf_u8(out, (uint8_t)r->root_level);
    pyri_buf_varint(out, r->root);
    pyri_form_encode(&r->form, out);
    pyri_claim_encode(&r->claim, out);
    pyri_buf_u64(out, (uint64_t)r->time_ns);
    pyri_buf_varint(out, r->source);
    pyri_buf_str(out, r->who ? r->who : "");
    pyri_buf_str(out, r->message ? r->message : "");
    pyri_buf_str(out, r->expression ? r->expression : "");
    if (r->handlers && *r->handlers)
        pyri_buf_str(out, r->handlers);
    if (out->failed)
        return;
    pyri_store64(out->data + start,
                 pyri_hash64(out->data + start + 8, out->size - start - 8));
}

static int
decode_head(pyri_bytes bytes, pyri_cursor *c, pyri_record *r)
{
    *r = (pyri_record){0};
    *c = pyri_cursor_of(bytes.data, bytes.size);
    uint64_t sum = pyri_cursor_u64(c);
    if (c->failed || sum != pyri_hash64(c->at, (size_t)(c->end - c->at)))
        return pyri_fail(PYR_ECORRUPT, "the record of a version is damaged");
    uint8_t format = pyri_cursor_u8(c);
    if (format != 1)
        return pyri_fail(PYR_EFORMAT,
                         "the record of a version is of format %u, newer than "
                         "this library",
                         format);
    r->kind = (pyr_kind)pyri_cursor_u8(c);
    r->root_level = pyri_cursor_u8(c);
    r->root = pyri_cursor_varint(c);
    return pyri_form_decode(c, &r->form);
}

int
pyri_record_decode_root(pyri_bytes bytes, pyri_record *r)
{
    pyri_cursor c;
    return decode_head(bytes, &c, r);
}

static size_t
keep_text(pyri_buf *texts, pyri_bytes text)
{
    size_t at = texts->size;
    pyri_buf_add(texts, text.data, text.size);
    pyri_buf_u8(texts, 0);
    return at;
}

int
pyri_record_decode(pyri_bytes bytes, pyri_record *r)
{
    pyri_cursor c;
    int err = decode_head(bytes, &c, r);
    if (err < 0)
        return err;
    if ((err = pyri_claim_decode(&c, r->form.ndim, &r->claim)) < 0)
        goto fail;
    r->time_ns = (int64_t)pyri_cursor_u64(&c);
    r->source = pyri_cursor_varint(&c);
    size_t who = keep_text(&r->texts, pyri_cursor_str(&c));
    size_t message = keep_text(&r->texts, pyri_cursor_str(&c));
    size_t expression = keep_text(&r->texts, pyri_cursor_str(&c));
    bool more = !c.failed && c.at < c.end;
    size_t handlers = keep_text(&r->texts, more ? pyri_cursor_str(&c)
                                                : (pyri_bytes){"", 0});
    if ((err = pyri_buf_check(&r->texts, "the record of a version")) < 0)
        goto fail;
    if (c.failed) {
        err = pyri_fail(PYR_ECORRUPT, "the record of a version is cut short");
        goto fail;
    }
    r->who = (const char *)r->texts.data + who;
    r->message = (const char *)r->texts.data + message;
    r->expression = (const char *)r->texts.data + expression;
    r->handlers = (const char *)r->texts.data + handlers;
    return 0;
fail:
    pyri_record_fini(r);
    return err;
}

const char *
pyri_record_who(void)
{
    static _Thread_local char who[256];
    static _Thread_local pid_t pid;
    if (pid == getpid())
        return who;
    char host[65] = "localhost", room[1024];
    struct passwd entry, *found = NULL;
    gethostname(host, sizeof host - 1);
    getpwuid_r(geteuid(), &entry, room, sizeof room, &found);
    pid = getpid();
    if (found)
        snprintf(who, sizeof who, "%.100s@%s:%ld", found->pw_name, host,
                 (long)pid);
    else
        snprintf(who, sizeof who, "%lu@%s:%ld", (unsigned long)geteuid(), host,
                 (long)pid);
    return who;
}
