"""Downloading real data sets: nothing is kept but the published files."""

from __future__ import annotations

import http.client
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from forewise.datasets.files import (
    CorruptDataError,
    Source,
    availability,
    checksum,
    how_to_get,
    search_places,
    source,
    user_folder,
)
from forewise.exceptions import InvalidInputError, MissingDataError

_TIMEOUT_SECONDS = 60.0
_LARGEST_DOWNLOAD = 64 * 2**20
_LARGEST_CONTENT = 64 * 2**20
_PIECE = 2**16


def fetch(name: str, data_dir: str | Path | None = None) -> Path:
    """Download a data set, check its files, and put them in their folder, which is returned.

    Nothing is downloaded if the files are there already. Files are moved into their folder only
    when all of them have the published checksum; files there with other content are then replaced.
    `data_dir` is what ``FOREWISE_DATA`` names by default, or else ``~/.cache/forewise``. Raises a
    `MissingDataError` or a `CorruptDataError`.
    """
    known = source(name)
    places = search_places(data_dir)
    for place in places:
        found = availability(known, [place])
        if found.complete and found.folder is not None:
            return found.folder
    if known.archive is None:
        raise MissingDataError(f"{name} cannot be fetched: {how_to_get(known)}")
    folder = (places[0] if len(places) == 1 else user_folder()) / name
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
    """The published files of an archive; whatever else is in it, or where, is never written."""
    try:
        with zipfile.ZipFile(archive) as content:
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
