"""Where the files of real data sets are, which there are, and how to get them.

No data come with forewise. `SOURCES` lists what is known, `locate` finds a folder, `available`
says what is there, `fetch` downloads. May import: exceptions. To add a data set: an entry in
`SOURCES`, and a loader in a module of its own.

A folder of data is sought in the first of these that is given:

1. ``data_dir=``;
2. the environment variable ``FOREWISE_DATA``;
3. otherwise in each of ``../shared/data`` seen from the current directory, ``shared/data`` beside
   the project, and ``~/.cache/forewise``.

In it, every data set has a subfolder of its own name.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import stat
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from forewise.exceptions import ForewiseError, InvalidInputError, MissingDataError

VARIABLE = "FOREWISE_DATA"

_TIMEOUT_SECONDS = 60.0
_LARGEST_DOWNLOAD = 64 * 2**20
_LARGEST_CONTENT = 64 * 2**20
_PIECE = 2**16


class CorruptDataError(ForewiseError, ValueError):
    """A data file or a download is not what was expected; the message names it."""


@dataclass(frozen=True)
class Source:
    """A real data set: its files, and where they come from.

    Parameters
    ----------
    name : str
        Also the name of its folder.
    title : str
    checksums : mapping of str to str
        SHA-256 of each file, by its name.
    homepage : str
        Where a person gets it.
    archive : str, optional
        Address of a ZIP archive that holds the files; without it they are to be got by hand.
    aliases : mapping of str to str
        Names that files have in the archive, where they differ, and the name they get here.
    """

    name: str
    title: str
    checksums: Mapping[str, str]
    homepage: str
    archive: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)


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


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="cnnpred",
            title="CNNpred: five US stock indices with 82 daily features each, 2009-2017",
            checksums={
                "Processed_DJI.csv": (
                    "6c0509451c784f117ce96e90b61b8e21a3f96a7dbc32f4a8427a146202c559eb"
                ),
                "Processed_NASDAQ.csv": (
                    "fe5b09089d1e0c1f11aa66f512d6edc740489452cdd90aec48f760df90c51b01"
                ),
                "Processed_NYSE.csv": (
                    "569a4e44e9fa258acbc799ed43462e93d38b3ceb8ae075474bcfe60f5ef5c11f"
                ),
                "Processed_RUSSELL.csv": (
                    "c3c0e5eaaf60cc06047d4d79ba7288d744365642f6a6b7ad4963eaca53967857"
                ),
                "Processed_SP.csv": (
                    "62f39a586e101390c915f65af3c37caa0e19ef6a979de9d20fb2e006ec52053e"
                ),
            },
            homepage="https://archive.ics.uci.edu/dataset/554",
            archive=(
                "https://archive.ics.uci.edu/static/public/554/cnnpred+cnn+based+stock+market+"
                "prediction+using+a+diverse+set+of+variables.zip"
            ),
            aliases={"Processed_S&P.csv": "Processed_SP.csv"},
        ),
        Source(
            name="bakery",
            title="Daily demand of 3 products in 35 bakeries, 2016-2019",
            checksums={
                "bakery_data.csv": (
                    "7561736117e885503cf285bcd0744e8814777a4ed03749f268862511ebb6a62b"
                ),
                "bakery_target.csv": (
                    "525f7b30912ce29eebb123c5708196514081640ffb496ab940c325bddced99ab"
                ),
            },
            homepage="https://github.com/d3group/ddopai/releases/tag/bakery_v1.0",
        ),
        Source(
            name="vic_electricity",
            title="Half-hourly electricity demand of Victoria, 2012-2014",
            checksums={
                "vic_electricity.csv": (
                    "6fa81bc3552f8822e984900f727584b82b3f10f41d78a1a0cdda2879a29a122e"
                ),
            },
            homepage="https://github.com/skforecast/skforecast-datasets",
        ),
    )
}


def source(name: str) -> Source:
    """The entry of `SOURCES`, or an error that lists the names."""
    if name not in SOURCES:
        raise InvalidInputError(f"name must be one of {sorted(SOURCES)}, but is {name!r}")
    return SOURCES[name]


def how_to_get(known: Source) -> str:
    """What a person does to get the files."""
    by_hand = f"get {', '.join(known.checksums)} from {known.homepage}"
    if known.archive is None:
        return f"{by_hand} and put them into a folder named {known.name}"
    return f"run `forewise data fetch {known.name}`, or {by_hand}"


def search_places(data_dir: str | Path | None = None) -> list[Path]:
    """Folders in which the subfolder of a data set is sought, in this order."""
    if data_dir is not None:
        if not isinstance(data_dir, (str, os.PathLike)):
            raise InvalidInputError(f"data_dir must be the path of a folder, but is {data_dir!r}")
        return [Path(data_dir).expanduser()]
    if os.environ.get(VARIABLE):
        return [Path(os.environ[VARIABLE]).expanduser()]
    beside_project = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    places = [Path.cwd().parent / "shared" / "data", beside_project, _user_folder()]
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
    return [_availability(known, search_places(data_dir)) for known in SOURCES.values()]


def fetch(name: str, data_dir: str | Path | None = None) -> Path:
    """Download a data set, check its files, and put them in their folder.

    Nothing is downloaded if the files are there already. Files are first unpacked beside their
    folder and only moved into it when all of them have the published checksum; files there with
    other content are then replaced.

    Parameters
    ----------
    name : str
        A key of `SOURCES`.
    data_dir : path, optional
        Folder in which the data set gets its own. By default what ``FOREWISE_DATA`` names, or
        else ``~/.cache/forewise``.

    Returns
    -------
    Path
        The data set's folder.

    Raises
    ------
    MissingDataError
        If the source cannot be reached, or does not offer a download.
    CorruptDataError
        If what came is cut short, too large, unsafe to unpack or not the published files.
    """
    known = source(name)
    places = search_places(data_dir)
    for place in places:
        found = _availability(known, [place])
        if found.complete and found.folder is not None:
            return found.folder
    if known.archive is None:
        raise MissingDataError(f"{name} cannot be fetched: {how_to_get(known)}")
    folder = (places[0] if len(places) == 1 else _user_folder()) / name
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            archive = Path(scratch) / "archive.zip"
            _download(known.archive, archive)
            unpacked = Path(scratch) / "unpacked"
            unpacked.mkdir()
            _unpack(known, archive, unpacked)
            folder.mkdir(exist_ok=True)
            for file in known.checksums:
                (unpacked / file).replace(folder / file)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise InvalidInputError(
            f"data_dir must be a folder that can be written to, but {folder.parent} is not: {error}"
        ) from error
    return folder


def _user_folder() -> Path:
    return Path.home() / ".cache" / "forewise"


def _what_lacks(folder: Path, missing: list[str]) -> str:
    return f"without {', '.join(missing)}" if folder.is_dir() else "no such folder"


def _availability(known: Source, places: list[Path]) -> Availability:
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


def _download(url: str, target: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "forewise"})
    try:
        with (
            urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response,
            target.open("wb") as stream,
        ):
            announced = response.headers.get("Content-Length")
            received = _copy(response, stream, _LARGEST_DOWNLOAD, url)
    except urllib.error.HTTPError as error:
        raise MissingDataError(
            f"{url} answered {error.code} ({error.reason}): the archive may have moved"
        ) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise MissingDataError(
            f"{url} could not be reached ({reason}): check the connection to the internet, or get "
            "the files by hand"
        ) from error
    except http.client.IncompleteRead as error:
        raise CorruptDataError(f"the download of {url} was cut short; try again") from error
    except http.client.HTTPException as error:
        raise CorruptDataError(f"{url} did not answer as a web server does: {error!r}") from error
    if announced is not None and announced != str(received):
        raise CorruptDataError(
            f"the download of {url} was cut short: {received} of {announced} bytes came; try again"
        )


def _copy(incoming: IO[bytes], outgoing: IO[bytes], limit: int, what: str) -> int:
    """Copy at most `limit` bytes, and say so if there are more; returns how many there were."""
    received = 0
    while piece := incoming.read(_PIECE):
        received += len(piece)
        if received > limit:
            raise CorruptDataError(f"{what} is larger than the {limit} bytes that are expected")
        outgoing.write(piece)
    return received


def _unpack(known: Source, archive: Path, folder: Path) -> None:
    """Write the data set's files, and nothing else, of an archive into `folder`."""
    try:
        with zipfile.ZipFile(archive) as content:
            for member in content.infolist():
                _refuse_unsafe(known, member)
            for member in content.infolist():
                name = PurePosixPath(member.filename).name
                file = known.aliases.get(name, name)
                if file in known.checksums:
                    with content.open(member) as packed, (folder / file).open("wb") as stream:
                        _copy(packed, stream, _LARGEST_CONTENT, f"{file} in {known.archive}")
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise CorruptDataError(
            f"{known.archive} is not a ZIP archive that can be read: {error}; try again, or get "
            f"the files from {known.homepage}"
        ) from error
    for file, expected in known.checksums.items():
        if not (folder / file).is_file():
            raise CorruptDataError(
                f"{known.archive} must contain {file}, but does not; get it from {known.homepage}"
            )
        found = checksum(folder / file)
        if found != expected:
            raise CorruptDataError(
                f"{file} in {known.archive} must have the SHA-256 checksum {expected}, but has "
                f"{found}: it is another version, or was changed on the way. Nothing was kept"
            )


def _refuse_unsafe(known: Source, member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or ":" in member.filename or is_link:
        raise CorruptDataError(
            f"{known.archive} has the entry {member.filename!r}, which would be written outside of "
            "its folder; nothing of it was unpacked"
        )
    if member.file_size > _LARGEST_CONTENT:
        raise CorruptDataError(
            f"{member.filename} in {known.archive} is larger than the {_LARGEST_CONTENT} bytes "
            "that are expected"
        )
