"""Where the files of real data sets are, and what is there of them.

No data come with forewise: `locate` finds a folder, `available` says what is there. May import:
exceptions, its sibling `sources`.

A folder of data is sought in the first of these that is given:

1. ``data_dir=``;
2. the environment variable ``FOREWISE_DATA``;
3. otherwise in each of ``../shared/data`` seen from the current directory, ``shared/data`` beside
   the project, and ``~/.cache/forewise``.

In it, every data set has a subfolder of its own name.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from forewise.datasets.sources import SOURCES, Source, how_to_get, source
from forewise.exceptions import ForewiseError, InvalidInputError, MissingDataError

VARIABLE = "FOREWISE_DATA"


class CorruptDataError(ForewiseError, ValueError):
    """A data file or a download is not what was expected; the message names it."""


@dataclass(frozen=True)
class Availability:
    """What is there of one data set.

    `folder` is None if none was found. `altered` are the files whose content is not the published
    one; the loaders' documentation says whether they take them.
    """

    source: Source
    folder: Path | None
    missing: tuple[str, ...]
    altered: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every file is there, with the published content."""
        return self.folder is not None and not self.missing and not self.altered

    def __str__(self) -> str:
        if self.folder is None:
            return f"{self.source.name}: missing; {how_to_get(self.source)}"
        if self.complete:
            return f"{self.source.name}: complete, in {self.folder}"
        faults = [f"{name} is missing" for name in self.missing]
        faults += [f"{name} is not the published file" for name in self.altered]
        return (
            f"{self.source.name}: in {self.folder}, but {', '.join(faults)}; "
            f"{how_to_get(self.source)}"
        )


def search_places(data_dir: str | Path | None = None) -> list[Path]:
    """Folders in which the subfolder of a data set is sought, in this order."""
    if data_dir is not None:
        if not isinstance(data_dir, (str, os.PathLike)):
            raise InvalidInputError(f"data_dir must be the path of a folder, but is {data_dir!r}")
        return [Path(data_dir).expanduser()]
    if os.environ.get(VARIABLE):
        return [Path(os.environ[VARIABLE]).expanduser()]
    beside_project = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    places = [Path.cwd().parent / "shared" / "data", beside_project, user_folder()]
    return list(dict.fromkeys(places))


def locate(name: str, data_dir: str | Path | None = None) -> Path:
    """Folder with all files of a data set.

    Parameters
    ----------
    name : str
        A key of `SOURCES`.
    data_dir : path, optional
        Folder in which the data set has its own; see the module for the places that are searched
        without it.

    Raises
    ------
    MissingDataError
        If a file is nowhere to be found. The message lists the places and how to get the data.
    """
    known = source(name)
    looked = []
    for place in search_places(data_dir):
        folder = place / name
        missing = [file for file in known.checksums if not (folder / file).is_file()]
        if not missing:
            return folder
        looked.append(f"{folder} ({_what_lacks(folder, missing)})")
    raise MissingDataError(
        f"the data set {name} ({known.title}) is not here. Looked in: {'; '.join(looked)}. "
        f"To get it, {how_to_get(known)}; then pass data_dir=, the folder that holds {name}/, or "
        f"set {VARIABLE} to it"
    )


def available(data_dir: str | Path | None = None) -> list[Availability]:
    """What is there of every known data set, and what is missing or altered."""
    return [availability(known, search_places(data_dir)) for known in SOURCES.values()]


def user_folder() -> Path:
    """Where data are fetched to, unless somebody says otherwise."""
    return Path.home() / ".cache" / "forewise"


def _what_lacks(folder: Path, missing: list[str]) -> str:
    return f"without {', '.join(missing)}" if folder.is_dir() else "no such folder"


def availability(known: Source, places: list[Path]) -> Availability:
    """State of the first folder that has all files, or else the most of them, or of none."""
    folders = [place / known.name for place in places if (place / known.name).is_dir()]
    if not folders:
        return Availability(known, None, tuple(known.checksums), ())
    folder = max(folders, key=lambda path: sum((path / file).is_file() for file in known.checksums))
    there = {file: folder / file for file in known.checksums if (folder / file).is_file()}
    missing = tuple(file for file in known.checksums if file not in there)
    altered = tuple(f for f, path in there.items() if checksum(path) != known.checksums[f])
    return Availability(known, folder, missing, altered)


def checksum(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
