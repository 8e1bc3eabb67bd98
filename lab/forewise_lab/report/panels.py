"""The paper's last figure, from policies that were saved: four ideas of the outcome on NV1.

May import: datasets, exceptions, plots, policy.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import matplotlib as mpl
from markupsafe import Markup

from forewise.exceptions import InvalidInputError
from forewise.plots import STYLE, decision_panels
from forewise.policy import Policy, load_policy
from forewise_lab.datasets import paper_split

#: The optimal order of NV1 is this quantile: shortage 100, excess 900.
LEVEL = 0.1
_SEED = 0
_KEPT = f"policies/nv1-panels/seed{_SEED}"


def kept_panels(results: str | os.PathLike[str]) -> Path | None:
    """Where a folder of results has the policies of the figure; None if it has none."""
    place = Path(results) / _KEPT
    return place if place.is_dir() else None


def nv1_panels(folder: str | os.PathLike[str]) -> Markup:
    """The figure as inline SVG.

    Parameters
    ----------
    folder : path
        Its subfolders are policies for NV1, each saved with `save`; their names are the titles.

    Raises
    ------
    InvalidInputError
        If there is no policy in it.
    StorageError
        If one of them cannot be read.
    """
    place = Path(folder)
    inner = sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    if not inner:
        raise InvalidInputError(
            f"policies must be a folder with one subfolder per saved policy, but {str(place)!r} "
            "has none"
        )
    policies: dict[str, Policy] = {path.name: load_policy(path) for path in inner}
    figure = decision_panels(paper_split("nv1", _SEED).test, policies, LEVEL)
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # Names inside the picture are made from a salt, which is random unless it is given: the same
    # policies must give the same page.
    with mpl.rc_context({"svg.hashsalt": STYLE["svg.hashsalt"]}):
        figure.savefig(file, format="svg", metadata=nothing)
    svg = file.getvalue()
    # Inside a page there is no XML head; the page says how large it may be.
    body = svg[svg.index("<svg") :]
    names = ", ".join(policies)
    label = Markup(' role="img" aria-label="Decisions on NV1 over the context: {}"').format(names)
    body = re.sub(r'(<svg[^>]*?)\s+width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?)\s+height="[^"]*"', r"\1", body, count=1)
    # As plain text: what matplotlib wrote is not to be escaped a second time.
    return Markup("<svg" + str(label) + body[len("<svg") :])
