"""Downloading real data sets: nothing is kept but the published files."""

from __future__ import annotations

import io
import tempfile
import urllib.request
import zipfile
import zlib
from http.client import HTTPException, IncompleteRead
from pathlib import Path, PurePosixPath
from urllib.error import HTTPError

import forewise as fw
from forewise.datasets.files import (
    availability,
    checksum,
    how_to_get,
    search_places,
    source,
    user_folder,
)

_TIMEOUT_SECONDS = 60.0
_LARGEST = 64 * 2**20  # bytes, of the archive and of each file in it


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
        raise fw.MissingDataError(f"{name} cannot be fetched: {how_to_get(known)}")
    folder = (places[0] if len(places) == 1 else user_folder()) / name
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            _unpack(known, _download(known.archive), Path(scratch))
            folder.mkdir(exist_ok=True)
            for file in known.checksums:
                (Path(scratch) / file).replace(folder / file)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise fw.InvalidInputError(
            f"data_dir must be a folder that can be written to, but {folder.parent} is not: {error}"
        ) from error
    return folder


def _download(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "forewise"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            announced = int(response.headers.get("Content-Length") or 0)
            content: bytes = response.read(_LARGEST + 1)
    except HTTPError as error:
        raise fw.MissingDataError(
            f"{url} answered {error.code} ({error.reason}): the archive may have moved"
        ) from error
    except IncompleteRead as error:
        raise fw.datasets.CorruptDataError(
            f"the download of {url} was cut short; try again"
        ) from error
    except (OSError, HTTPException) as error:
        raise fw.MissingDataError(
            f"{url} could not be reached ({error}): check the connection to the internet, or get "
            "the files by hand"
        ) from error
    if len(content) > _LARGEST:
        raise fw.datasets.CorruptDataError(
            f"{url} is larger than the {_LARGEST} bytes that are expected"
        )
    if announced > len(content):
        raise fw.datasets.CorruptDataError(f"the download of {url} was cut short; try again")
    return content


def _unpack(known: fw.datasets.Source, archive: bytes, folder: Path) -> None:
    """The published files of an archive; whatever else is in it, or where, is never written."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as content:
            for member in content.infolist():
                name = PurePosixPath(member.filename).name
                file = known.aliases.get(name, name)
                if file in known.checksums:
                    with content.open(member) as packed:
                        (folder / file).write_bytes(packed.read(_LARGEST))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise fw.datasets.CorruptDataError(
            f"{known.archive} is not a ZIP archive that can be read: {error}; try again, or get "
            f"the files from {known.homepage}"
        ) from error
    for file, expected in known.checksums.items():
        if not (folder / file).is_file():
            raise fw.datasets.CorruptDataError(
                f"{known.archive} must contain {file}, but does not; get it from {known.homepage}"
            )
        found = checksum(folder / file)
        if found != expected:
            raise fw.datasets.CorruptDataError(
                f"{file} in {known.archive} must have the SHA-256 checksum {expected}, but has "
                f"{found}: it is another version, or was changed on the way. Nothing was kept"
            )
