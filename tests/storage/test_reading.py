"""What is written is read again to the bit; what is damaged, forged or foreign is rejected."""

from __future__ import annotations

import enum
import json
import math
import os
import pickle
import random
import resource
import shutil
import time

import numpy as np
import pytest
import torch

from forewise.exceptions import InvalidInputError, StorageError
from forewise.storage import read_folder, write_folder
from forewise.storage.trees import DTYPES
from tests.storage.helpers import arrays_path, forge, forge_arrays, read, round_trip, same, write

TEXTS = ["", "$", "$array", "$$array", "$float", "dtype", "a.b[0]", "__metadata__", "\0\n\t\"\\'"]
TEXTS += ["zażółć", "需求", "👩‍🚀", "\u2028", "\ufeff", "NaN", "null", "arrays-0123456789abcdef"]
PLAIN = [None, True, False, 0, -1, 2**53 + 1, 2**64, 2**4095, *TEXTS, math.nan, math.inf]
PLAIN += [0.0, -0.0, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, 1e22]


def random_tree(rng: random.Random, depth: int = 0):
    kind = rng.randint(0, 5 if depth < 4 else 3)
    if kind <= 1:
        return rng.choice(PLAIN)
    if kind <= 3:
        shape = [rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.randint(0, 4))]
        dtype = np.dtype(rng.choice(sorted(DTYPES)))
        raw = np.frombuffer(rng.randbytes(math.prod(shape) * dtype.itemsize), dtype=np.uint8)
        return (raw % 2 == 0 if dtype.kind == "b" else raw.view(dtype)).reshape(shape)
    if kind == 4:
        return [random_tree(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return random_dict(rng, depth)


def random_dict(rng: random.Random, depth: int = 0):
    keys = rng.sample([*TEXTS, "weights", "fitted"], k=rng.randint(0, 6))
    return {key: random_tree(rng, depth + 1) for key in keys}


def test_random_trees_come_back_bit_by_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # 1,200 of them take long
    rng = random.Random(0)
    for number in range(300):
        content = random_dict(rng)
        assert same(round_trip(tmp_path / "folder", content), content), f"tree {number}"
    assert len(os.listdir(tmp_path / "folder")) == 2
    round_trip(tmp_path / "folder", {"a": np.zeros(3)})["a"][...] = 1  # it owns its memory


class Size(enum.IntEnum):
    SMALL = 3


WEIGHT = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2.0, None)), [1, [2.0, None]]),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(math.inf), math.inf),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (Size.SMALL, 3),
        (np.array([["a", "bc"]]), [["a", "bc"]]),
        (np.array([], dtype=str), []),
        (np.array(["a", None, 1.5, np.nan], dtype=object), ["a", None, 1.5, math.nan]),
        (np.array(["a", "bc"], dtype=np.dtypes.StringDType()), ["a", "bc"]),
        (np.arange(3, dtype=">f8"), np.arange(3.0)),
        (np.arange(6.0).reshape(2, 3)[:, ::2], np.array([[0.0, 2.0], [3.0, 5.0]])),
        (torch.nn.Parameter(WEIGHT.clone()), WEIGHT.numpy()),
        (WEIGHT.T, WEIGHT.numpy().T.copy()),
        (torch.tensor(3), np.array(3)),
        (WEIGHT > 2, WEIGHT.numpy() > 2),
        (torch.tensor([2j]).conj().imag, np.array([-2], dtype=np.float32)),
    ],
    ids=repr,
)
def test_values_that_come_back_as_plain_ones(tmp_path, value, expected):
    assert same(round_trip(tmp_path, {"value": value}), {"value": expected})


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), r"predictor\.fitted\.trees\[3\] .* a object"),
        (b"bytes", "a bytes"),
        ({1, 2}, "a set"),
        (1j, "a complex"),
        (np.longdouble(1), "a longdouble"),
        (np.array([1j]), "complex128; convert"),
        (np.array(["2024-01-01"], dtype="M8[D]"), "datetime64"),
        (np.zeros(1, dtype=[("a", int)]), "an array of"),
        (np.array([{"deep": object()}]), r"trees\[3\]\[0\]\.deep .* object"),
        (np.ma.masked_array([1.0], [True]), "MaskedArray"),
        (torch.zeros(1, dtype=torch.bfloat16), "bfloat16"),
        (torch.eye(2).to_sparse(), "sparse_coo"),
        (torch.zeros(1, device="meta"), "tensor of torch.float32 .*; convert it"),
        ({"a": {1: 2}}, r"trees\[3\]\.a\[1\] .* key of type int"),
        ({"a": {"\ud800": 2}}, r"trees\[3\]\.a .* Unicode"),
        ("\udcff", "Unicode"),
        (2**4096, "4096 bits"),
        (CYCLE, r"trees\[3\]\[0\].* nested more than 100 deep"),
    ],
    ids=lambda value: None,
)
def test_what_cannot_be_stored_is_named_by_its_path(tmp_path, value, message):
    with pytest.raises(InvalidInputError, match=message):
        write(tmp_path / "new", {"predictor": {"fitted": {"trees": [0, 1, 2, value]}}})
    assert not (tmp_path / "new").exists()


def test_content_is_a_dict_that_fits_the_header(tmp_path):
    with pytest.raises(InvalidInputError, match="content must be a dict"):
        write(tmp_path, [1])
    with pytest.raises(InvalidInputError, match=r"content must fit .* as arrays"):
        write(tmp_path, {"a": "x" * 2**24})
    assert os.listdir(tmp_path) == []


def test_people_can_read_the_header(tmp_path):
    write(tmp_path, {"Größe": 1.5, "weights": np.zeros((2, 3), dtype=np.float32)})
    text = (tmp_path / "header.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "format": "forewise",\n  "layout": 1,\n  "kind": "test",')
    assert '"Größe": 1.5' in text
    header = json.loads(text)
    assert header["content"]["weights"] == {"$array": "0", "dtype": "float32", "shape": [2, 3]}
    assert header["arrays"]["file"] == f"arrays-{header['arrays']['sha256'][:16]}.safetensors"
    assert sorted(os.listdir(tmp_path)) == [header["arrays"]["file"], "header.json"]


@pytest.mark.parametrize(
    ("kind", "versions", "message"),
    [
        ("policy", [3], "must hold a policy, but holds a test"),
        ("test", [1, 2], r"version 3 of the test format, .* reads 1, 2: .* newer .* upgrade"),
        ("test", [5, 4], r"version 3 of the test format, .* reads 4, 5: .* older .* again"),
    ],
)
def test_other_kinds_and_versions(tmp_path, kind, versions, message):
    write_folder(tmp_path, {"a": 1}, kind="test", version=3)
    assert read_folder(tmp_path, kind="test", versions=(2, 3)) == (3, {"a": 1})
    with pytest.raises(StorageError, match=message):
        read_folder(tmp_path, kind=kind, versions=versions)


def arrays(**entries):
    return lambda header: header["arrays"].update(entries)


def content(**entries):
    return lambda header: header["content"].update(entries)


def reference(**changes):
    return {"$array": "0", "dtype": "float64", "shape": [5]} | changes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format="other"), "not one of forewise's"),
        (lambda h: h.update(layout=2), "file layout 2, .* newer .* upgrade"),
        *[
            (lambda h, entry=entry: h.update(entry), "fields that are missing, unknown or")
            for entry in (
                {"kind": 3}, {"version": True}, {"version": 1.0}, {"extra": 1}, {"arrays": []},
                {"content": []},
            )
        ],
        (lambda h: h.pop("content"), "fields that are missing"),
        (lambda h: h.update(content={"$float": "nan"}), "refer to all of its arrays"),
        (arrays(file="../arrays-0123456789abcdef.safetensors"), "of the wrong type"),
        (arrays(file="/etc/passwd"), "of the wrong type"),
        (arrays(file="arrays-0123456789abcdef.safetensors\n"), "of the wrong type"),
        (arrays(file="arrays-0123456789abcdef.safetensors"), "is missing"),
        (arrays(bytes=10**18), "bytes, and not 10{18}"),
        (arrays(bytes=-1), "bytes, and not -1"),
        (arrays(bytes="1"), "of the wrong type"),
        (arrays(sha256="0" * 64), r"checksum of arrays-.*\.safetensors"),
        (content(a=1), "refer to all of its arrays"),
        (content(c=reference(**{"$array": "9"})), "array that is missing"),
        (content(c=reference(**{"$array": []})), "array that is missing"),
        (content(c=reference()), "missing, taken"),
        (content(a=reference(shape=[1, 5])), "not as described"),
        (content(a=reference(dtype="float32")), "not as described"),
        (content(c={"$array": "0"}), "unknown reference"),
        (content(c={"$float": "1"}), "unknown reference"),
        (content(c={"$pickle": "gASV"}), "unknown reference"),
        (content(c=json.loads("[" * 150 + "]" * 150)), "nested too deep"),
    ],
)  # fmt: skip
def test_forged_headers(stored, change, message):
    forge(stored, change)
    with pytest.raises(StorageError, match=message):
        read(stored)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"F64"', b'"F63"', "not a safetensors file"),
        (b'"F64"', b'"I64"', "not as described"),
        (b"[5]", b"[6]", "not a safetensors file"),
        (b"\x01\x00", b"\x07\x00", "truth values"),
        (b'"shape":[5]', b'"shape":[0,18446744073709551615]', "not a safetensors file"),
        (b'"F64","shape":[5]', b'"BF16","shape":[20]', "not a safetensors file"),
        (b"[5]", b"[" + b"1," * 70 + b"5]", "not a safetensors file"),
    ],
)
def test_forged_arrays(stored, old, new, message):
    data = arrays_path(stored).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    described = data[8:start].replace(old, new)
    size = len(described).to_bytes(8, "little")
    forge_arrays(stored, size + described + data[start:].replace(old, new))
    with pytest.raises(StorageError, match=message):
        read(stored)


class Trap:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("sprung",))


FOREIGN = [b"", b"\xff\xfe", b"{}", b"[]", b"[" * 10**6, b'{"a":' * 10**5, pickle.dumps(Trap())]
FOREIGN += [b'{"a": ' + b"9" * 10**6 + b"}", bytes(100)]
FOREIGN += [b'{"format": "forewise", "layout": 1' + b for b in (b"}", b', "content": NaN}')]


def test_other_files_in_the_place_of_one_are_rejected_and_never_run(stored, monkeypatch):
    monkeypatch.chdir(stored.parent)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    for name in ("header.json", arrays_path(stored).name):
        sound = (stored / name).read_bytes()
        for data in FOREIGN:
            (stored / name).write_bytes(data)
            with pytest.raises(StorageError):
                read(stored)
        (stored / name).write_bytes(sound)
    forge_arrays(stored, pickle.dumps(Trap()))
    with pytest.raises(StorageError, match="not a safetensors file"):
        read(stored)
    os.truncate(stored / "header.json", 2**40)  # sparse: nothing is on the disk
    with pytest.raises(StorageError, match=rf"{2**40} bytes, and not 0 to 16777216"):
        read(stored)
    assert not (stored.parent / "sprung").exists()
    pickle.loads(pickle.dumps(Trap()))  # it would have been
    assert (stored.parent / "sprung").exists()


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Bytes flipped, cut, inserted, doubled, moved, zeroed or replaced by what JSON may mean."""
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice([1, 2, 5, 20, len(data)]))
    words = [b"null", b"1e999", b"NaN", b"{}", b"[[", b'"', b"\\ud800", b"9" * 5000, b'"BOOL"']
    flipped = bytes([data[start] ^ 1 << rng.randrange(8)])
    middle = data[start:stop]
    new = [b"", rng.randbytes(9) + middle, 2 * middle, bytes(len(middle)), rng.choice(words)]
    if rng.random() < 0.3:
        return data[:start] + flipped + data[start + 1 :]
    if rng.random() < 0.1:
        return data[:start] + data[stop:] + middle
    return data[:start] + rng.choice(new) + data[stop:]


@pytest.mark.parametrize("number", [500, pytest.param(5_000, marks=pytest.mark.slow)])
def test_random_damage_is_rejected_or_changes_nothing(stored, monkeypatch, number):
    """Damage by accident never changes the content; forged data may, within bounded memory."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    rng, sound, expected = random.Random(number), stored.parent / "sound", read(stored)
    shutil.copytree(stored, sound)
    rejected, forged, before = 0, 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for trial in range(number):
        shutil.rmtree(stored)
        shutil.copytree(sound, stored)
        path = rng.choice([arrays_path(stored), stored / "header.json"])
        if trial % 2:
            path.write_bytes(mutated(rng, path.read_bytes()))
        elif path.name == "header.json":
            text = json.dumps(json.loads(path.read_text())["content"]).encode()
            try:
                made = json.loads(mutated(rng, text))
                forge(stored, lambda header, made=made: header.update(content=made))
            except (ValueError, RecursionError):
                continue  # nothing that an attacker could write
        else:
            forge_arrays(stored, mutated(rng, path.read_bytes()))
        try:
            found = read(stored)
        except StorageError as error:
            assert len(str(error)) < 1000  # noqa: PT017
            rejected += 1
            continue
        assert same(found, expected) if trial % 2 else type(found) is dict
        forged += not trial % 2
    assert rejected > 0.5 * number
    assert forged > 0.01 * number  # forgeries reach the inner checks
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_every_flipped_bit_of_the_arrays_is_an_error(stored):
    """The header's checksum is of its meaning, so there white space alone may change."""
    before, path = read(stored), arrays_path(stored)
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        with pytest.raises(StorageError, match="checksum"):
            read(stored)
    path.write_bytes(data)
    header = stored / "header.json"
    compact = json.dumps(json.loads(header.read_text()))
    header.write_text(compact)
    assert same(read(stored), before)
    header.write_text(compact.replace("2.5", "2.25"))
    with pytest.raises(StorageError, match=r"checksum of header\.json.*copy"):
        read(stored)


def test_too_little_memory_is_said(stored, monkeypatch):
    def no_memory(*arguments):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.numpy.load", no_memory)
        with pytest.raises(StorageError, match=r"cannot read .*arrays-.* not fit into memory"):
            read(stored)
    monkeypatch.setattr(os, "open", no_memory)
    with pytest.raises(StorageError, match=r"cannot read .*header.* not fit into memory"):
        read(stored)


def test_missing_files_and_folders(stored, tmp_path):
    with pytest.raises(StorageError, match="there is no such folder"):
        read(tmp_path / "nowhere")
    arrays_path(stored).unlink()
    with pytest.raises(StorageError, match="which its header names, is missing"):
        read(stored)
    (stored / "header.json").unlink()
    with pytest.raises(StorageError, match=r"it has no header\.json"):
        read(stored)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file where a folder is expected"):
        read(tmp_path / "file")
    with pytest.raises(StorageError, match="embedded null"):
        read("no\0path")


def test_links_pipes_and_folders_are_not_followed(stored, tmp_path):
    for path in (stored / "header.json", arrays_path(stored)):
        content = path.read_bytes()
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StorageError, match="symbolic link"):
            read(stored)
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(StorageError, match="not a regular file"):
            read(stored)
        path.unlink()
        path.mkdir()
        with pytest.raises(StorageError, match="Is a directory"):
            read(stored)
        path.rmdir()
        path.write_bytes(content)
    (tmp_path / "link").symlink_to(stored)  # the folder itself may be a link
    assert same(read(tmp_path / "link"), read(stored))
