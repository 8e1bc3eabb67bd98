"""From the three files to a program."""

from __future__ import annotations

import os
from pathlib import Path

from forewise.exceptions import InvalidInputError, MissingDataError
from forewise.smps.core import read_core
from forewise.smps.lines import read_lines
from forewise.smps.periods import read_first_columns
from forewise.smps.stochastic import read_groups
from forewise.smps.two_stage import TwoStageProgram

_ENDINGS = {
    "core": (".cor", ".core", ".mps"),
    "time": (".tim", ".time"),
    "stoch": (".sto", ".stoch", ".stoc"),
}


def read(
    path: str | os.PathLike[str],
    time: str | os.PathLike[str] | None = None,
    stoch: str | os.PathLike[str] | None = None,
) -> TwoStageProgram:
    """Read a two-stage stochastic linear program from its SMPS files.

    Free and fixed layout are distinguished by trying: names with blanks in them need the fixed one.
    INDEP (DISCRETE, UNIFORM, NORMAL, GAMMA, BETA), BLOCKS and SCENARIOS (DISCRETE) are read.
    Programs with integers or with more than two stages are refused, each with an error that says
    so. An error names the file and the line.

    Parameters
    ----------
    path : path
        A folder with one .cor, one .tim and one .sto file, or the core file itself.
    time, stoch : path, optional
        The other two files, where `path` is the core file.

    Examples
    --------
    Orders at 1 each, rush orders at 3, and a demand of 8 or 12, in the three files:

    >>> from pathlib import Path
    >>> import forewise as fw
    >>> folder = Path("shop")
    >>> folder.mkdir(exist_ok=True)
    >>> core = '''NAME shop
    ... ROWS
    ...  N cost
    ...  G demand
    ... COLUMNS
    ...  order cost 1 demand 1
    ...  rush cost 3 demand 1
    ... RHS
    ...  RHS demand 10
    ... ENDATA'''
    >>> time = '''TIME shop
    ... PERIODS
    ...  order cost TODAY
    ...  rush demand TOMORROW
    ... ENDATA'''
    >>> stoch = '''STOCH shop
    ... INDEP DISCRETE
    ...  RHS demand 8 0.5
    ...  RHS demand 12 0.5
    ... ENDATA'''
    >>> for suffix, lines in (("cor", core), ("tim", time), ("sto", stoch)):
    ...     _ = (folder / f"shop.{suffix}").write_text(lines)
    >>> program = fw.smps.read(folder)
    >>> fw.solve_program(program.program(program.scenarios())).decision.round(decimals=6)
    tensor([[12.]], dtype=torch.float64)
    """
    core, times, stochs = _files(path, time, stoch)
    try:
        return _read(core, times, stochs, fixed=False)
    except InvalidInputError as error:
        try:
            return _read(core, times, stochs, fixed=True)
        except InvalidInputError:
            raise error from None


def _read(core_file: Path, time_file: Path, stoch_file: Path, fixed: bool) -> TwoStageProgram:
    core = read_core(read_lines(core_file, fixed))
    first = read_first_columns(read_lines(time_file, fixed), core, time_file)
    groups = read_groups(read_lines(stoch_file, fixed), core)
    return TwoStageProgram(core.with_first(first), len(first), groups)


def _files(
    path: str | os.PathLike[str],
    time: str | os.PathLike[str] | None,
    stoch: str | os.PathLike[str] | None,
) -> tuple[Path, Path, Path]:
    if (time is None) != (stoch is None):
        raise InvalidInputError("time and stoch belong together: give both files, or a folder")
    if time is None or stoch is None:
        folder = Path(path).expanduser()
        if not folder.is_dir():
            raise MissingDataError(
                f"path must be a folder with a .cor, a .tim and a .sto file, but {folder} is none; "
                "or give the three files"
            )
        return _only(folder, "core"), _only(folder, "time"), _only(folder, "stoch")
    files = (Path(path).expanduser(), Path(time).expanduser(), Path(stoch).expanduser())
    for file in files:
        if not file.is_file():
            raise MissingDataError(f"there is no file {file}")
    return files


def _only(folder: Path, kind: str) -> Path:
    """The one file of a folder with an ending of its kind."""
    endings = _ENDINGS[kind]
    found = sorted(file for file in folder.iterdir() if file.suffix.lower() in endings)
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        kind_of = InvalidInputError if found else MissingDataError
        raise kind_of(
            f"{folder} must have one {kind} file ({', '.join(endings)}), but has {names}; "
            "give the three files instead"
        )
    return found[0]
