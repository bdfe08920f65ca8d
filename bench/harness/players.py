"""Players: processes that hold a store each and do what they are told.
bench/player.h has the lines they understand."""
import json
import os
import re
import shutil
import subprocess

from .turns import Failed

PEERS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "peers")


class Player:
    """One process. `home` is its folder, made if it is not there."""

    def __init__(self, command, home):
        self.home = home
        os.makedirs(home, exist_ok=True)
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", RUST_LOG="error",
                   ICECHUNK_LOG="error")
        self.process = subprocess.Popen(
            command[:1] + [a.replace("@", home) for a in command[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=env)

    def tell(self, verb, **words):
        line = " ".join([verb] + [f"{k}={text(v)}" for k, v in words.items()])
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # hear() says why

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            end = self.process.stderr.read().strip().splitlines()
            raise Failed(plain(end[-1] if end else "ended without a word"))
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(plain(reply["error"]))
        if "cannot" in reply:
            raise Failed("-")
        return reply

    def ask(self, verb, **words):
        self.tell(verb, **words)
        return self.hear()

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        shutil.rmtree(self.home, ignore_errors=True)


def plain(fault):
    """One line of it, without the folders of this machine."""
    line = (fault.strip().splitlines() or ["failed"])[0]
    return re.sub(r"(/[\w.-]+)+/", ".../", line)[:160]


def text(value):
    if isinstance(value, (tuple, list)):
        return ",".join(str(v) for v in value)
    return str(value)


class Cast:
    """Who can play here: {side: command}; those who cannot: {side: why}."""

    def __init__(self, build, venv):
        self.build = build
        self.python = os.path.join(venv, "bin", "python")
        self.commands, self.absent = {}, {}
        c = {"Pyramid": ("play_pyramid", []),
             "HDF5": ("play_hdf5", []),
             "HDF5, large cache": ("play_hdf5", ["cache"])}
        for side, (name, more) in c.items():
            path = os.path.join(build, "bench", "bench-" + name)
            if os.path.exists(path):
                self.commands[side] = [path, "@"] + more
            else:
                self.absent[side] = "not built: its library is not installed"
        self.python_peers()

    def python_peers(self):
        python = self.python
        peers = {"h5py": ("hdf5", "", "h5py"),
                 "Zarr": ("zarr", "", "zarr"),
                 "Zarr + zarrs": ("zarr", "zarrs", "zarrs"),
                 "tensorstore": ("tensorstore", "", "tensorstore"),
                 "tensorstore, cache": ("tensorstore", "cache", "tensorstore"),
                 "tensorstore, batch": ("tensorstore", "batch", "tensorstore"),
                 "TileDB": ("tiledb", "", "tiledb"),
                 "TileDB, one thread": ("tiledb", "one", "tiledb"),
                 "Icechunk": ("icechunk", "", "icechunk"),
                 "memmap": ("memmap", "", "numpy")}
        there = installed(python)
        for side, (peer, option, package) in peers.items():
            if package in there:
                self.commands[side] = [python, os.path.join(PEERS,
                                                            "player.py"),
                                       peer, "@"] + ([option] if option
                                                     else [])
            else:
                self.absent[side] = f"{package} could not be installed"

    def start(self, side, folder):
        return Player(self.commands[side], folder)

    def versions(self):
        """Of the Python packages."""
        return installed(self.python)


def installed(python):
    code = ("import importlib.metadata as m, json; print(json.dumps({n: "
            "m.version(n) for n in ['numpy','zarr','zarrs','tensorstore',"
            "'tiledb','icechunk','h5py'] if any(True for d in "
            "m.distributions(name=n))}))")
    try:
        out = subprocess.run([python, "-c", code], capture_output=True,
                             text=True, timeout=60)
        return json.loads(out.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}
