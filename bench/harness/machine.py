"""The machine: what it is, what its page cache holds, room on it."""
import ctypes
import mmap
import os
import platform
import time


def first_line(path, key):
    with open(path) as f:
        for line in f:
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    return ""


def describe(folder):
    kib = int(first_line("/proc/meminfo", "MemTotal").split()[0])
    return {"machine": {
        "cpu": first_line("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(kib / 1048576),
        "kernel": platform.release(),
        "file_system": file_system(folder),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "load_at_start": round(os.getloadavg()[0], 2),
        "dirty_limit_mib": dirty_limit() >> 20,
    }}


def file_system(folder):
    best, kind = "", "?"
    with open("/proc/mounts") as f:
        for line in f:
            _, where, fs = line.split()[:3]
            if os.path.abspath(folder).startswith(where) and \
                    len(where) > len(best):
                best, kind = where, fs
    return kind


def available():
    """Bytes of memory that may be taken."""
    return int(first_line("/proc/meminfo", "MemAvailable").split()[0]) << 10


def dirty_limit():
    """Bytes that may be dirty before writers are slowed to the disk's pace."""
    def setting(name):
        with open("/proc/sys/vm/" + name) as f:
            return int(f.read())

    def limit(kind):
        return setting(kind + "_bytes") or \
            available() * setting(kind + "_ratio") // 100
    return (limit("dirty") + limit("dirty_background")) // 2


def files(folder):
    if os.path.isfile(folder):
        yield folder
    for where, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(where, name)


def disk_bytes(folder):
    """What it takes on the disk."""
    return sum(os.lstat(f).st_blocks * 512 for f in files(folder))


def resident(folder, most=64):
    """The part of the files' pages that the page cache holds, of the largest
    files."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                          ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t,
                             ctypes.c_char_p]
    pages = there = 0
    largest = sorted(files(folder), key=os.path.getsize)[-most:]
    for path in largest:
        size = os.path.getsize(path)
        if not size:
            continue
        fd = os.open(path, os.O_RDONLY)
        holes = os.lstat(path).st_blocks * 512 < size // 2
        at = libc.mmap(None, size, 1, 1, fd, 0)
        os.close(fd)
        if at in (None, ctypes.c_void_p(-1).value) or holes:
            continue
        n = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        held = ctypes.create_string_buffer(n)
        if libc.mincore(at, size, held) == 0:
            pages += n
            there += sum(b & 1 for b in held.raw)
        libc.munmap(at, size)
    return there / pages if pages else 0.0
