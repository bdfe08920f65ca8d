"""A store on a Ceph cluster beside plain librados: a cluster of its own is
started for it and stopped again. Without Ceph the case says so."""
import os
import shutil
import subprocess

from . import programs
from .turns import say

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "tools", "dev-ceph")


def run(ctx, cast):
    missing = lacking(ctx)
    if missing:
        say(f"ceph: {missing}")
        return []
    where = os.path.join(ctx.folder, "ceph")
    try:
        done = subprocess.run(
            [TOOL, "start", where, "--class-dir",
             os.path.join(ctx.build, "src", "cls")],
            capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            say(f"ceph: no cluster: {done.stderr.strip()[-500:]}")
            return []
        return programs.run(ctx, cast, "ceph", done.stdout.split()[-1])
    finally:
        if os.path.isdir(where):
            subprocess.run([TOOL, "stop", where], capture_output=True,
                           timeout=120, check=False)


def lacking(ctx):
    """What is not there, or None."""
    if not os.path.exists(os.path.join(ctx.build, "bench", "bench-ceph")):
        return "built without librados"
    if not os.path.isdir(os.path.join(ctx.build, "src", "cls")):
        return "built without the object class"
    for program in ("ceph-mon", "ceph-osd"):
        if not shutil.which(program):
            return f"{program} is not installed: tools/install-deps.sh ceph"
    return None
