"""After a change of a kernel's helper, nothing that was compiled before it runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forewise.solvers.interior_point.kernels import stale_code
from forewise.solvers.interior_point.kernels.stale_code import forget_stale_code


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("helper", "kernel"):
        (folder / f"{name}.py").write_text(f"# {name}\n")
    return folder


def compiled_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("*.nbi"))


def compile_something(cache: Path) -> None:
    for name in ("helper.f-1.py311.nbi", "kernel.g-1.py311.nbi"):
        (cache / name).touch()


def test_code_is_kept_until_any_source_changes(sources, tmp_path):
    cache = tmp_path / "cache"
    forget_stale_code(sources.glob("*.py"), cache)
    compile_something(cache)
    forget_stale_code(sources.glob("*.py"), cache)
    assert len(compiled_in(cache)) == 2
    (sources / "helper.py").write_text("# other\n")
    forget_stale_code(sources.glob("*.py"), cache)
    assert compiled_in(cache) == []
    compile_something(cache)
    (sources / "helper.py").rename(sources / "assistant.py")
    forget_stale_code(sources.glob("*.py"), cache)
    assert compiled_in(cache) == []


def test_code_from_before_there_was_a_stamp_is_forgotten(sources, tmp_path):
    compile_something(tmp_path)
    forget_stale_code(sources.glob("*.py"), tmp_path)
    assert compiled_in(tmp_path) == []
    assert [path.name for path in tmp_path.glob("*.sha256*")] == [stale_code._STAMP]


def test_a_cache_that_cannot_be_made_is_no_error(sources, tmp_path):
    (tmp_path / "file").touch()
    forget_stale_code(sources.glob("*.py"), tmp_path / "file" / "cache")


def test_a_kernel_follows_a_change_of_its_helper(tmp_path):
    """With numba itself, which looks at the kernel's own file only."""
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copy(stale_code.__file__, package / "stale_code.py")
    (package / "helper.py").write_text("import numba\n\nSLOT = 1\n")
    (package / "kernel.py").write_text(
        "from pathlib import Path\n"
        "import numba\n"
        "from kernels import helper\n"
        "from kernels.stale_code import forget_stale_code\n"
        "@numba.njit(cache=True)\n"
        "def slot():\n"
        "    return helper.SLOT\n"
        "if FORGET:\n"
        "    forget_stale_code(Path(__file__).parent.glob('*.py'), Path(slot.stats.cache_path))\n"
    )

    def run(forget: bool) -> str:
        program = f"import builtins; builtins.FORGET = {forget}\nfrom kernels.kernel import slot"
        command = [sys.executable, "-c", f"{program}; print(slot())"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert run(forget=True) == "1"
    (package / "helper.py").write_text("import numba\n\nSLOT = 2  # another\n")
    assert run(forget=False) == "1"  # what happens without
    assert run(forget=True) == "2"
