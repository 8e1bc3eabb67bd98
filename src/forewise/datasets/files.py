"""Real data sets: their files, where they come from, and where they are on this machine.

No data come with forewise. A folder of data is sought in the first of these that is given:

1. ``data_dir=``;
2. the environment variable ``FOREWISE_DATA``;
3. otherwise in each of ``../shared/data`` seen from the current directory, ``shared/data`` beside
   the project, and ``~/.cache/forewise``.

In it, every data set has a subfolder of its own name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from forewise.exceptions import ForewiseError, InvalidInputError, MissingDataError

VARIABLE = "FOREWISE_DATA"


class CorruptDataError(ForewiseError, ValueError):
    """A data file or a download is not what was expected; the message names it.

    Examples
    --------
    >>> import forewise as fw
    >>> issubclass(fw.datasets.CorruptDataError, fw.ForewiseError)
    True
    """


@dataclass(frozen=True)
class Source:
    """A real data set: its files, and where they come from.

    Examples
    --------
    >>> import forewise as fw
    >>> for source in fw.datasets.SOURCES.values():
    ...     print(source.name, "-", source.title)
    cnnpred - CNNpred: five US stock indices with 82 daily features each, 2009-2017
    bakery - Daily demand of 3 products in 35 bakeries, 2016-2019
    vic_electricity - Half-hourly electricity demand of Victoria, 2012-2014
    """

    name: str  # also of its folder
    title: str
    checksums: Mapping[str, str]  # SHA-256 of each file, by its name
    homepage: str
    archive: str | None = None  # address of a ZIP archive of the files, if there is one
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names of files in it


_CNNPRED = {
    "Processed_DJI.csv": "6c0509451c784f117ce96e90b61b8e21a3f96a7dbc32f4a8427a146202c559eb",
    "Processed_NASDAQ.csv": "fe5b09089d1e0c1f11aa66f512d6edc740489452cdd90aec48f760df90c51b01",
    "Processed_NYSE.csv": "569a4e44e9fa258acbc799ed43462e93d38b3ceb8ae075474bcfe60f5ef5c11f",
    "Processed_RUSSELL.csv": "c3c0e5eaaf60cc06047d4d79ba7288d744365642f6a6b7ad4963eaca53967857",
    "Processed_SP.csv": "62f39a586e101390c915f65af3c37caa0e19ef6a979de9d20fb2e006ec52053e",
}
_BAKERY = {
    "bakery_data.csv": "7561736117e885503cf285bcd0744e8814777a4ed03749f268862511ebb6a62b",
    "bakery_target.csv": "525f7b30912ce29eebb123c5708196514081640ffb496ab940c325bddced99ab",
}
_VICTORIA = {
    "vic_electricity.csv": "6fa81bc3552f8822e984900f727584b82b3f10f41d78a1a0cdda2879a29a122e",
}

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "cnnpred",
            "CNNpred: five US stock indices with 82 daily features each, 2009-2017",
            _CNNPRED,
            "https://archive.ics.uci.edu/dataset/554",
            "https://archive.ics.uci.edu/static/public/554/cnnpred+cnn+based+stock+market+"
            "prediction+using+a+diverse+set+of+variables.zip",
            {"Processed_S&P.csv": "Processed_SP.csv"},
        ),
        Source(
            "bakery",
            "Daily demand of 3 products in 35 bakeries, 2016-2019",
            _BAKERY,
            "https://github.com/d3group/ddopai/releases/tag/bakery_v1.0",
        ),
        Source(
            "vic_electricity",
            "Half-hourly electricity demand of Victoria, 2012-2014",
            _VICTORIA,
            "https://github.com/skforecast/skforecast-datasets",
        ),
    )
}
"""The real data sets that loaders know, by name; none comes with forewise.

Examples
--------
>>> import forewise as fw
>>> sorted(fw.datasets.SOURCES)
['bakery', 'cnnpred', 'vic_electricity']
"""


@dataclass(frozen=True)
class Availability:
    """What is there of one data set.

    `folder` is None if none was found; `altered` are the files whose content is not the published
    one.

    Examples
    --------
    >>> import forewise as fw
    >>> found = fw.datasets.available("nowhere")[0]
    >>> found.folder is None, len(found.missing) > 0
    (True, True)
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
    return f"run `forewise-lab data fetch {known.name}`, or {by_hand}"


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


def user_folder() -> Path:
    """Where data are fetched to by default."""
    return Path.home() / ".cache" / "forewise"


def locate(name: str, data_dir: str | Path | None = None) -> Path:
    """Folder with all files of a data set, one of `SOURCES`.

    `data_dir` is the folder that holds the data set's own; see `forewise.datasets.files` for the
    places that are searched without it. A `MissingDataError` lists them, and how to get the data.

    Examples
    --------
    >>> import forewise as fw
    >>> try:
    ...     folder = fw.datasets.locate("bakery", "nowhere")
    ... except fw.MissingDataError as error:
    ...     print("how to get it" if "To get it" in str(error) else error)
    how to get it
    """
    known = source(name)
    looked = []
    for place in search_places(data_dir):
        folder = place / name
        missing = [file for file in known.checksums if not (folder / file).is_file()]
        if not missing:
            return folder
        lacks = f"without {', '.join(missing)}" if folder.is_dir() else "no such folder"
        looked.append(f"{folder} ({lacks})")
    raise MissingDataError(
        f"the data set {name} ({known.title}) is not here. Looked in: {'; '.join(looked)}. "
        f"To get it, {how_to_get(known)}; then pass data_dir=, the folder that holds {name}/, or "
        f"set {VARIABLE} to it"
    )


def available(data_dir: str | Path | None = None) -> list[Availability]:
    """What is there of every known data set, and what is missing or altered.

    Examples
    --------
    >>> import forewise as fw
    >>> [found.source.name for found in fw.datasets.available()]
    ['cnnpred', 'bakery', 'vic_electricity']
    """
    return [availability(known, search_places(data_dir)) for known in SOURCES.values()]


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
