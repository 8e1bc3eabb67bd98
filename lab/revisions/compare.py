"""Whether two revisions decide, learn and differentiate alike, to the last bit.

    python lab/revisions/compare.py OLD [NEW]

NEW is the working tree by default. Each revision is built, with its compiled core, and installed in
a temporary folder; `probe.py` runs with it in a process of its own, with the other packages of the
running interpreter. Then the new revision decides with the policies that the old one stored, and
every example of both is run and what it prints is compared. Building takes minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).parent / "probe.py"


def checked_out(revision: str, folder: Path) -> Path:
    """The sources of a revision, in a folder."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision], check=True, capture_output=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def installed(sources: Path, folder: Path) -> Path:
    """The folder, with the package built from the sources of a revision."""
    options = ["--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(sources)], check=True)
    found = Path(run(folder, "-c", "import forewise; print(forewise.__file__)").strip())
    if not found.is_relative_to(folder):
        raise SystemExit(f"{found} is imported instead of the revision in {folder}")
    return folder


def run(package: Path, *arguments: str, cwd: Path | None = None) -> str:
    """What a script prints, run with an installed revision."""
    # -S: without the finder of an editable install, which comes before any path.
    path = os.pathsep.join([str(package), *filter(None, sys.path[1:])])
    environment = os.environ | {"PYTHONPATH": path, "FOREWISE_DATA": "hidden"}
    command = [sys.executable, "-S", "-W", "ignore", *arguments]
    done = subprocess.run(
        command, env=environment, cwd=cwd, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def report(title: str, old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> bool:
    """Print what differs; whether nothing does."""
    wrong = [f"{name} is missing" for name in old if name not in new]
    wrong += [
        f"{name} differs"
        for name in old.keys() & new.keys()
        if not np.array_equal(old[name], new[name], equal_nan=old[name].dtype.kind == "f")
    ]
    print(f"{title}: {len(old) - len(wrong)} of {len(old)} arrays are equal to the last bit")
    for line in sorted(wrong):
        print(f"  {line}")
    return not wrong


def main() -> None:
    """Compare."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        old = checked_out(sys.argv[1], place / "old")
        new = checked_out(sys.argv[2], place / "new") if len(sys.argv) > 2 else ROOT
        packages = [installed(sources, place / f"{sources.name} package") for sources in (old, new)]
        found = {}
        for name, package in zip(("before", "after"), packages, strict=True):
            folder = place / name
            folder.mkdir()
            run(package, str(PROBE), "all", str(folder), "all")
            found[name] = dict(np.load(folder / "all.npz"))
        same = report("decisions, gradients, draws, scores", found["before"], found["after"])
        run(packages[1], str(PROBE), "stored", str(place / "before"), "stored")
        read = dict(np.load(place / "before" / "stored.npz"))
        same &= report("stored policies", {name: found["before"][name] for name in read}, read)
        for example in sorted((old / "examples").glob("*.py")):
            outputs = [
                run(package, str(sources / "examples" / example.name), cwd=place)
                for package, sources in zip(packages, (old, new), strict=True)
            ]
            equal = outputs[0] == outputs[1]
            print(f"{example.name}: {'prints the same' if equal else 'prints something else'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
