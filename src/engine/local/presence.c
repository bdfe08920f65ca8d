/*
 * engine/local/presence.c - who is alive.
 *
 * Every site that may write holds a slot: one byte of STORE/live/presence,
 * locked for as long as the process lives (an open-file-description lock,
 * which the system lets go of when the process ends, however it ends). The
 * live environment notes for each slot
 *
 *   'w' slot (4 bytes, big-endian) -> writer id (8), handles (4)
 *
 * A writer (slot, id) is alive if its slot is noted under its id and the byte
 * is locked. One that is alive is never taken for dead: its id was noted
 * before it got its first ticket, and nobody else can lock its byte.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/io.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

enum { MAX_SLOTS = 65536, SLOT_KEY = 5, SLOT_VALUE = 12 };

static void
slot_key(uint8_t key[SLOT_KEY], uint32_t slot)
{
    key[0] = 'w';
    for (int i = 0; i < 4; i++)
        key[1 + i] = (uint8_t)(slot >> (24 - 8 * i));
}

static int
note_slot(pyri_site *s, pyri_txn *txn)
{
    uint8_t key[SLOT_KEY], value[SLOT_VALUE];
    slot_key(key, s->presence.slot);
    pyri_store64(value, s->presence.writer);
    pyri_store32(value + 8, s->presence.handles);
    return pyri_env_put(txn, s->live_db, key, sizeof key, value,
                        sizeof value);
}

int
pyri_presence_open(pyri_site *s)
{
    char path[PATH_MAX];
    int err = pyri_path_join(path, sizeof path, s->path, "live/presence");
    if (err < 0)
        return err;
    s->presence.fd = PYRI_RETRY(
        pyri_sys_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    return s->presence.fd < 0 ? pyri_fail_errno(errno, "%s", path) : 0;
}

/* Lock the first byte that nobody holds. */
static int
lock_slot(pyri_site *s)
{
    for (uint32_t slot = 0; slot < MAX_SLOTS; slot++) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET,
                          .l_start = slot, .l_len = 1};
        if (pyri_sys_fcntl(s->presence.fd, F_OFD_SETLK, &l) == 0) {
            s->presence.slot = slot;
            return 0;
        }
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return pyri_fail_errno(errno, "%s/live/presence: lock", s->path);
    }
    return pyri_fail(PYR_EIO, "%s: more than %d writers", s->path, MAX_SLOTS);
}

static int
join(pyri_site *s)
{
    int errnum =
        pyri_io_random(&s->presence.writer, sizeof s->presence.writer);
    if (errnum)
        return pyri_fail_errno(errnum, "random numbers");
    s->presence.writer |= 1; /* 0 is nobody */
    int err = lock_slot(s);
    s->presence.member = err == 0;
    return err;
}

int
pyri_presence_change(pyri_site *s, int by)
{
    pyri_txn *txn;
    int err = s->presence.member ? 0 : join(s);
    if (err < 0 || (err = pyri_env_write(s->live, &txn)) < 0)
        return err;
    s->presence.handles += (unsigned)by;
    if ((err = note_slot(s, txn)) == 0)
        err = pyri_env_commit(txn, "note a writer");
    else
        pyri_env_abort(txn);
    if (err < 0)
        s->presence.handles -= (unsigned)by;
    return err;
}

void
pyri_presence_close(pyri_site *s)
{
    if (s->presence.member) {
        uint8_t key[SLOT_KEY];
        bool found;
        pyri_txn *txn;
        slot_key(key, s->presence.slot);
        if (pyri_env_write(s->live, &txn) == 0) {
            pyri_env_delete(txn, s->live_db, key, sizeof key, &found);
            pyri_env_commit(txn, "sign off");
        }
    }
    if (s->presence.fd >= 0)
        pyri_sys_close(s->presence.fd); /* and with it goes the lock */
    s->presence = (pyri_presence){.fd = -1};
}

static int
is_locked(pyri_site *s, uint32_t slot, bool *yes)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET,
                      .l_start = slot, .l_len = 1};
    if (pyri_sys_fcntl(s->presence.fd, F_OFD_GETLK, &l) < 0)
        return pyri_fail_errno(errno, "%s/live/presence", s->path);
    *yes = l.l_type != F_UNLCK;
    return 0;
}

int
pyri_presence_alive(pyri_site *s, pyri_txn *txn, uint32_t slot,
                    uint64_t writer, bool *alive)
{
    if (s->presence.member && writer == s->presence.writer) {
        *alive = true; /* one's own lock cannot be asked for */
        return 0;
    }
    uint8_t key[SLOT_KEY];
    MDB_val v;
    slot_key(key, slot);
    int err = pyri_env_get(txn, s->live_db, key, sizeof key, &v, alive);
    if (err < 0 || !*alive)
        return err;
    *alive = v.mv_size == SLOT_VALUE && pyri_load64(v.mv_data) == writer;
    return *alive ? is_locked(s, slot, alive) : 0;
}

/* --- badges -------------------------------------------------------------- */

enum { BADGE_ID = 48 }; /* bits */

static uint64_t
badge_of(uint32_t slot, uint64_t writer)
{
    return (uint64_t)slot << BADGE_ID |
           (writer & ((UINT64_C(1) << BADGE_ID) - 1));
}

uint64_t
pyri_presence_badge(const pyri_site *s)
{
    return s->presence.member
               ? badge_of(s->presence.slot, s->presence.writer)
               : 0;
}

int
pyri_presence_has_badge(pyri_site *s, uint64_t badge, bool *alive)
{
    uint32_t slot = (uint32_t)(badge >> BADGE_ID);
    uint8_t key[SLOT_KEY];
    pyri_txn *txn;
    MDB_val v;
    slot_key(key, slot);
    int err = pyri_env_read(s->live, &txn);
    if (err < 0)
        return err;
    err = pyri_env_get(txn, s->live_db, key, sizeof key, &v, alive);
    if (err == 0 && *alive)
        *alive = v.mv_size == SLOT_VALUE &&
                 badge_of(slot, pyri_load64(v.mv_data)) == badge;
    if (err == 0 && *alive)
        err = pyri_presence_alive(s, txn, slot, pyri_load64(v.mv_data), alive);
    pyri_env_abort(txn);
    return err;
}

/* --- how many ------------------------------------------------------------ */

static int
count_slot(pyri_site *s, pyri_txn *txn, const MDB_val *key, const MDB_val *v,
           uint64_t *out)
{
    const uint8_t *k = key->mv_data, *at = v->mv_data;
    bool alive;
    if (key->mv_size != SLOT_KEY || v->mv_size != SLOT_VALUE)
        return 0;
    uint32_t slot = (uint32_t)k[1] << 24 | (uint32_t)k[2] << 16 |
                    (uint32_t)k[3] << 8 | k[4];
    int err = pyri_presence_alive(s, txn, slot, pyri_load64(at), &alive);
    if (err == 0 && alive)
        *out += pyri_load32(at + 8);
    return err;
}

int
pyri_presence_count(pyri_site *s, uint64_t *out)
{
    pyri_txn *txn;
    pyri_walk *cursor;
    MDB_val key = {1, (void *)(uintptr_t)"w"}, value;
    pyri_bytes prefix = {"w", 1};
    bool more;
    *out = 0;
    int err = pyri_env_read(s->live, &txn);
    if (err < 0)
        return err;
    if ((err = pyri_env_cursor(txn, s->live_db, &cursor)) == 0) {
        err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &key, &value,
                            &more);
        while (err == 0 && more)
            if ((err = count_slot(s, txn, &key, &value, out)) == 0)
                err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value,
                                    &more);
        pyri_env_cursor_close(cursor);
    }
    pyri_env_abort(txn);
    return err;
}
