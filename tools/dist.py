"""The wheel and the sdist, built and tried as strangers would: each in an environment of its own, away from the repository.

    python tools/dist.py             build both into dist/, try both
    python tools/dist.py --whole     the sdist with all its tests, not the fast lane alone

The wheel must carry the command, the list of policies and the examples of README.md. The sdist must carry its own tests, which run against
the package that was installed from it. Exit status 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
README_EXTRAS = "report"
"""What the examples of README.md need."""
EXAMPLES = """import doctest, sys, bridle
assert sys.prefix in bridle.__file__, f"{bridle.__file__} is not what was installed"
found = doctest.testfile(sys.argv[1], module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
print(f"{found.attempted} lines of examples, {found.failed} failed")
sys.exit(bool(found.failed) or not found.attempted)
"""
WHERE = 'import sys, bridle; assert sys.prefix in bridle.__file__, bridle.__file__; print("bridle", bridle.__version__, "from", sys.prefix)'


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command where nothing of the repository can be imported; the first that fails ends it all."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name != "VIRTUAL_ENV"}
    print("$", *(str(word).partition("\n")[0] for word in command if str(word).strip()), flush=True)
    if subprocess.run([str(word) for word in command], cwd=cwd, env=clean).returncode:
        sys.exit("failed: the command above")


def environment(folder: Path, what: str) -> Path:
    """A new environment with one thing installed: its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what, cwd=folder)
    run(python, "-c", WHERE, cwd=folder)
    return python


def build() -> tuple[Path, Path]:
    """The wheel and the sdist, and nothing else, in dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT, cwd=ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def try_wheel(wheel: Path, folder: Path) -> None:
    """The command, the list of policies, the examples of README.md."""
    python = environment(folder / "wheel", f"{wheel}[{README_EXTRAS}]")
    run(python.with_name("bridle"), "--version", cwd=folder)
    run(python.with_name("bridle"), "policies", "--json", folder / "policies.json", cwd=folder)
    run(python, "-c", EXAMPLES, ROOT / "README.md", cwd=folder)


def try_sdist(sdist: Path, folder: Path, whole: bool) -> None:
    """The tests that ship, from the folder that was unpacked, against what was installed."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.glob("bridle_oco-*/")
    python = environment(folder / "sdist", f"{sdist}[test]")
    run(python, "-m", "pytest", "tests", "-n", "2", "-p", "no:cacheprovider", *([] if whole else ["--fast"]), cwd=unpacked)


def main() -> None:
    """Build both, try both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--whole", action="store_true", help="run all tests of the sdist")
    parser.add_argument("--only", choices=["wheel", "sdist"], help="try one of the two")
    given = parser.parse_args()
    started = time.monotonic()
    wheel, sdist = build()
    with tempfile.TemporaryDirectory(prefix="bridle-dist-") as folder:
        if given.only != "sdist":
            try_wheel(wheel, Path(folder))
        if given.only != "wheel":
            try_sdist(sdist, Path(folder), given.whole)
    print(f"{wheel.name} and {sdist.name} are good: {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
