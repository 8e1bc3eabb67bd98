"""Thousands of damaged folders: none is read wrongly, runs anything or takes much memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import resource
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from forewise.exceptions import StorageError
from forewise.storage import read_folder, write_folder
from forewise.storage.header import checksum
from tests.storage.folders import same

CONTENT = {
    "predictor": {
        "name": "größe",
        "sizes": [3, 2**70, -1],
        "rates": [0.1, float("nan"), float("-inf"), -0.0],
        "weights": [np.arange(12.0).reshape(3, 4), np.ones((2, 0), dtype=np.float32)],
        "mask": np.array([True, False, True]),
        "$array": {"$float": "inf", "deep": [[], {}, [None, True]]},
    },
    "count": np.array(7, dtype=np.uint8),
    "images": np.arange(200, dtype=np.uint8),
}


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(2**22))
    return buffer.getvalue()


def flip(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def span(rng, data):
    start = rng.randrange(len(data))
    return start, min(len(data), start + rng.choice([1, 2, 5, 20, len(data)]))


def cut(rng, data):
    start, stop = span(rng, data)
    return data[:start] + data[stop:]


def insert(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice([1, 2, 9])) + data[at:]


def duplicate(rng, data):
    start, stop = span(rng, data)
    return data[:stop] + data[start:stop] + data[stop:]


def swap(rng, data):
    a, b, c = sorted(rng.sample(range(len(data) + 1), 3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def overwrite(rng, data):
    start, stop = span(rng, data)
    return (
        data[:start] + rng.choice([bytes(stop - start), rng.randbytes(stop - start)]) + data[stop:]
    )


def retype(rng, data):
    """Replace something by what the formats could give a meaning to."""
    words = [
        b"null",
        b"1e999",
        b"NaN",
        b"-1",
        b"{}",
        b"[[",
        b'"',
        b"\\ud800",
        b"18446744073709551615",
    ]
    words += [b'"$array"', b'"F64"', b'"BF16"', b'"BOOL"', b"[0]", b"9" * 5000, b"[" * 3000]
    start, stop = span(rng, data)
    return data[:start] + rng.choice(words) + data[stop:]


BYTE_MUTATIONS = [flip, flip, cut, insert, duplicate, swap, overwrite, retype]


def nodes(tree, found):
    """Every list and dict of a tree, with the keys of its entries."""
    for key, entry in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        found.append((tree, key))
        if isinstance(entry, dict | list):
            nodes(entry, found)
    return found


def edit_header(rng, header: dict) -> None:
    """Change one entry of a parsed header, somewhere."""
    values = [None, True, -1, 0, 2**64, 1e300, "", "0", "1", "float64", "../../etc/passwd", [], {}]
    values += [[1] * 70, {"$array": "0"}, {"$array": "1", "dtype": "bool", "shape": [3]}, "x" * 999]
    values += [{"$float": "nan"}, {"$$": 1}, {"$pickle": "x"}, [2**40, 2**40], "/dev/zero"]
    found = nodes(header, [])
    parent, key = rng.choice(found)
    other, other_key = rng.choice(found)
    action = rng.randrange(4)
    if action == 0:
        parent[key] = rng.choice(values)
    elif action == 1:
        del parent[key]
    elif action == 2:
        parent[key] = json.loads(json.dumps(other[other_key]))
    elif isinstance(parent, dict):
        parent[rng.choice(["$array", "$float", "$x", "dtype", "shape", "extra"])] = rng.choice(
            values
        )
    else:
        parent.append(rng.choice(values))


class Attack:
    """A folder that is damaged again and again, each time from its sound state."""

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = root / "folder"
        self.folder.mkdir()
        self.trap = root / "trap"
        write_folder(root / "sound", CONTENT, kind="test", version=1)
        self.sound = {path.name: path.read_bytes() for path in (root / "sound").iterdir()}
        (self.arrays,) = set(self.sound) - {"header.json"}
        trapped = pickle.dumps(Trap(self.trap))
        self.foreign = [
            b"",
            bytes(100),
            trapped,
            zip_bomb(),
            b"{}",
            b"[]",
            b"\x80\x04.",
            b"[" * 50_000,
        ]

    def accident(self) -> dict[str, bytes | None]:
        """Files after an accident: bytes changed, or a whole file lost or replaced."""
        files, rng = dict(self.sound), self.rng
        name = rng.choice(list(files))
        action = rng.random()
        if action < 0.9:
            for _ in range(rng.choice([1, 1, 1, 2, 5])):
                files[name] = rng.choice(BYTE_MUTATIONS)(rng, files[name] or b"\0")
        elif action < 0.98:
            files[name] = rng.choice(self.foreign)
        elif action < 0.99:
            files["header.json"], files[self.arrays] = files[self.arrays], files["header.json"]
        else:
            files[name] = None
        return files

    def forgery(self) -> dict[str, bytes | None]:
        """Files with all checksums right, by someone who knows the format."""
        files, rng = dict(self.sound), self.rng
        header = json.loads(files["header.json"])
        name, data = self.arrays, files[self.arrays]
        if rng.random() < 0.5:
            length = 8 + int.from_bytes(data[:8], "little")
            mutation = rng.choice(BYTE_MUTATIONS)
            if rng.random() < 0.7:  # the part that describes the arrays, with its length put right
                description = mutation(rng, data[8:length])
                data = len(description).to_bytes(8, "little") + description + data[length:]
            else:
                data = mutation(rng, data)
            if rng.random() < 0.1:
                data = rng.choice(self.foreign)
            digest = hashlib.sha256(data).hexdigest()
            name = f"arrays-{digest[:16]}.safetensors"
            header["arrays"] = {"file": name, "bytes": len(data), "sha256": digest}
        if rng.random() < 0.7:
            edit_header(rng, header)
        header["sha256"] = checksum(header)
        return {"header.json": json.dumps(header).encode(), name: data}

    def read(self, files: dict[str, bytes | None]):
        """What is read from these files, or None if they are rejected as they should be."""
        for path in self.folder.iterdir():
            path.unlink()
        for name, data in files.items():
            if data is not None:
                (self.folder / name).write_bytes(data)
        try:
            return read_folder(self.folder, kind="test", versions=[1])
        except StorageError as error:
            assert len(str(error)) < 1000  # noqa: PT017
            return None

    def run(self, number: int) -> dict[str, int]:
        counts = {"same": 0, "rejected": 0, "forged": 0}
        for _ in range(number // 2):
            read = self.read(self.accident())
            counts["rejected" if read is None else "same"] += 1
            assert read is None or (read[0] == 1 and same(read[1], CONTENT))
            read = self.read(self.forgery())
            counts["rejected" if read is None else "forged"] += 1
            assert read is None or (read[0] == 1 and type(read[1]) is dict)
        assert not self.trap.exists()
        return counts


def peak_memory() -> float:
    """In megabytes, of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(
    ("number", "seed"), [(1_000, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)]
)
def test_damage_is_rejected_or_changes_nothing(tmp_path, monkeypatch, number, seed):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    attack = Attack(tmp_path, seed)
    assert same(attack.read(attack.sound)[1], CONTENT)
    before = peak_memory()
    counts = attack.run(number)
    assert peak_memory() - before < 100
    assert counts["rejected"] > 0.6 * number
    assert counts["forged"] > 0.01 * number  # so that forgeries reach the inner checks
    print(counts)


def test_the_trap_works(tmp_path):
    """Otherwise that it was never sprung would show nothing."""
    pickle.loads(pickle.dumps(Trap(tmp_path / "trap")))
    assert (tmp_path / "trap").exists()


@pytest.mark.slow
def test_the_largest_header_takes_bounded_memory(tmp_path):
    """Empty lists make the most memory of the fewest bytes; their parsing stays below 600 MB."""
    (tmp_path / "header.json").write_bytes(b"[" + b"[]," * (5 * 2**20) + b"1]")
    before = peak_memory()
    with pytest.raises(StorageError, match=r"header\.json is not one of forewise's"):
        read_folder(tmp_path, kind="test", versions=[1])
    assert peak_memory() - before < 600
