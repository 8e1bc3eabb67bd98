"""How the tests write, read and compare folders, and tamper with them."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np

from forewise.storage import read_folder, write_folder
from forewise.storage.folders import checksum


def same(left, right) -> bool:
    """Whether two trees agree in types, order of keys, dtypes, shapes and bits (one NaN)."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray):
        alike = (left.dtype, left.shape) == (right.dtype, right.shape)
        return alike and left.tobytes() == right.tobytes()
    if isinstance(left, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return left == right


def read(folder):
    return read_folder(folder, kind="test", versions=[1])[1]


def write(folder, content):
    write_folder(folder, content, kind="test", version=1)


def round_trip(folder, content):
    write(folder, content)
    return read(folder)


def arrays_path(folder: Path) -> Path:
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def forge(folder: Path, change) -> None:
    """Change the parsed header and give it the checksum it needs, as an attacker would."""
    header = json.loads((folder / "header.json").read_text())
    change(header)
    header["sha256"] = checksum(header)
    (folder / "header.json").write_text(json.dumps(header))


def forge_arrays(folder: Path, data: bytes) -> None:
    """Replace the arrays file, with its name, size and checksums as they should be."""
    arrays_path(folder).unlink()
    digest = hashlib.sha256(data).hexdigest()
    entry = {"file": f"arrays-{digest[:16]}.safetensors", "bytes": len(data), "sha256": digest}
    (folder / entry["file"]).write_bytes(data)
    forge(folder, lambda header: header.update(arrays=entry))
