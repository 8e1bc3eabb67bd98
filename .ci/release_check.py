"""What has to hold before a release: `make release-check`. Needs an index of packages.

Builds the source distribution and from it the wheel, installs the wheel with README's extras in an
empty environment, runs README's lines there, compares the versions, lists the licences of what was
installed, and asks pip-audit for known flaws. What cannot be checked here is said at the end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST_SDIST = 1_000_000  # bytes
#: Words of licences under which a dependency may come along; others stop the check.
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|PSF|PSFL|Python Software Foundation|ISC|MPL|Mozilla Public|Unlicense|HPND"
    r"|Zlib|0BSD|CC0)\b",
    re.IGNORECASE,
)
LICENCES = """
import json
from importlib.metadata import distributions

found = []
for one in distributions():
    meta = one.metadata
    classified = [line for line in meta.get_all("Classifier") or [] if "License ::" in line]
    named = ", ".join(line.split(" :: ")[-1] for line in classified)
    text = (meta.get("License-Expression") or named or meta.get("License") or "").strip()
    found.append([meta["Name"], one.version, text.partition("\\n")[0][:70]])
print(json.dumps(sorted(found, key=lambda row: row[0].lower())))
"""
unchecked: list[str] = []


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def run(*command: object, cwd: Path | None = None, quiet: bool = False) -> str:
    """A command that has to end well; what it says."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, cwd=cwd, text=True, capture_output=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(words)}\n{ended.stdout}\n{ended.stderr}")
    if not quiet:
        print(ended.stdout.strip())
    return ended.stdout


def environment(folder: Path) -> Path:
    """The Python of a new environment."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: object) -> None:
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments, quiet=True)


def built(scratch: Path) -> Path:
    """The wheel, from the source distribution."""
    python = environment(scratch / "build")
    pip(python, "build")
    dist = scratch / "dist"
    run(python, "-m", "build", "--sdist", "--outdir", dist, ROOT, quiet=True)
    (sdist,) = dist.glob("*.tar.gz")
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", dist, sdist, quiet=True)
    (wheel,) = dist.glob("*.whl")
    for file in (sdist, wheel):
        print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")
    if sdist.stat().st_size > LARGEST_SDIST:
        sys.exit(f"{sdist.name} is larger than {LARGEST_SDIST / 1e6:.0f} MB: see sdist.exclude")
    return wheel


def readme_runs(python: Path, folder: Path) -> None:
    """README's snippets and its commands, on files of the demo."""
    text = (ROOT / "README.md").read_text()
    for number, snippet in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)):
        script = folder / f"snippet_{number}.py"
        script.write_text(snippet)
        run(python, script, cwd=folder)
    program = python.with_name("forewise")
    run(program, "demo", "--files", ".", cwd=folder, quiet=True)
    for line in re.findall(r"^ {4}forewise (init|fit|decide)(.*?)(?:  #.*)?$", text, re.M):
        words = [line[0], *line[1].split()]
        run(program, *words, *(["--time-limit", "5"] if line[0] == "fit" else []), cwd=folder)
    if not (folder / "orders.csv").is_file():
        sys.exit("README's commands made no orders.csv")


def versions_agree(python: Path, folder: Path) -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    said = run(python.with_name("forewise"), "--version", cwd=folder, quiet=True).split()[-1]
    if {said, cited[1] if cited else None} != {wanted}:
        sys.exit(
            f"pyproject.toml has {wanted}, the program {said}, CITATION.cff {cited and cited[1]}"
        )
    if f"## {wanted}" not in (ROOT / "CHANGELOG.md").read_text():
        unchecked.append(f"CHANGELOG.md has no heading for {wanted} yet: release it under one")
    print(wanted)


def licences(python: Path) -> None:
    rows = json.loads(run(python, "-c", LICENCES, quiet=True))
    for name, version, text in rows:
        print(f"{name} {version}: {text or 'not said'}")
    strange = [row[0] for row in rows if not PERMISSIVE.search(row[2])]
    if strange:
        unchecked.append(f"licences to be read by a person: {', '.join(strange)}")


def audit(python: Path, scratch: Path) -> None:
    """Known flaws of what was installed, by pip-audit."""
    auditor = environment(scratch / "audit")
    tool = auditor.with_name("pip-audit")
    frozen = run(python, "-m", "pip", "freeze", "--exclude", "forewise", quiet=True)
    # Databases know no local versions such as 2.13.0+cpu.
    wanted = [re.sub(r"\+\w+$", "", line) for line in frozen.splitlines() if "==" in line]
    (scratch / "frozen.txt").write_text("\n".join(wanted))
    try:
        pip(auditor, "pip-audit")
    except SystemExit:
        unchecked.append("known flaws of dependencies: pip-audit could not be installed")
        return
    options = ["--no-deps", "--disable-pip", "--timeout", "10", "--format", "json"]
    command = [tool, "-r", scratch / "frozen.txt", *options]
    ended = subprocess.run(command, text=True, capture_output=True, check=False)
    try:
        rows = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (ended.stderr.strip().splitlines() or ["it did not say why"])[-1][:160]
        unchecked.append(f"known flaws of dependencies: pip-audit did not get through ({reason})")
        return
    flawed = [row for row in rows if row.get("vulns")]
    if flawed:
        sys.exit(json.dumps(flawed, indent=2))
    seen = [row for row in rows if "skip_reason" not in row]
    if seen:
        print(f"{len(seen)} of {len(wanted)} packages were looked up: no known flaws")
    if len(seen) < len(wanted):
        unchecked.append(
            f"known flaws of {len(wanted) - len(seen)} of {len(wanted)} dependencies: pip-audit "
            "reached no database that has them"
        )


def main() -> None:
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        say("source distribution and wheel")
        wheel = built(scratch)
        say("an empty environment")
        python = environment(scratch / "empty")
        extras = re.search(r'-e "\.(\[[\w,]+\])"', (ROOT / "README.md").read_text())
        wanted = f"{wheel}{extras[1] if extras else ''}"
        pip(python, "-c", ROOT / "constraints.txt", wanted)
        print(run(python, "-m", "pip", "check", quiet=True).strip())
        folder = scratch / "elsewhere"
        folder.mkdir()
        say("versions")
        versions_agree(python, folder)
        say("README's lines")
        readme_runs(python, folder)
        say("licences of what was installed")
        licences(python)
        say("known flaws of what was installed")
        audit(python, scratch)
    say("not checked" if unchecked else "all checked")
    print(*[f"- {text}" for text in unchecked], sep="\n")


if __name__ == "__main__":
    main()
