"""Which real data sets are known: their files, and where they come from.

May import: exceptions. To add one: an entry in `SOURCES`, and a loader in a module of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewise.exceptions import InvalidInputError


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
    return f"run `forewise-lab data fetch {known.name}`, or {by_hand}"
