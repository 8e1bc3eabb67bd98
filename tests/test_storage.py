"""What is written is read again, bit by bit; what cannot be written or read says why."""

from __future__ import annotations

import enum
import errno
import json
import math
import os
import pickle
import random
import resource
import stat
import string
from pathlib import Path

import numpy as np
import pytest
import torch

from forewise import storage
from forewise.exceptions import InvalidInputError, StorageError
from forewise.storage import read_folder, write_folder

NUMBER_DTYPES = sorted(storage._DTYPES)


def same(left, right) -> bool:
    """Whether two trees agree in types, order of keys, dtypes, shapes and bits (one NaN)."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray):
        return (left.dtype, left.shape, left.tobytes()) == (
            right.dtype,
            right.shape,
            right.tobytes(),
        )
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


TEXTS = ["", "$", "$array", "$$array", "$float", "dtype", "a.b[0]", "__metadata__", "\0\n\t\"\\'"]
TEXTS += ["zażółć", "需求", "👩‍🚀", "\u2028", "\ufeff", "NaN", "null", "arrays-0123456789abcdef"]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, 1e22]
INTS = [0, -1, 2**53 + 1, -(2**63), 2**64, 2**127 - 1, 2**4095]


def random_array(rng: random.Random) -> np.ndarray:
    shape = [rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.randint(0, 4))]
    dtype = np.dtype(rng.choice(NUMBER_DTYPES))
    raw = rng.randbytes(math.prod(shape) * dtype.itemsize)
    array = np.frombuffer(raw, dtype=np.uint8)
    return (array % 2 == 0 if dtype.kind == "b" else array.view(dtype)).reshape(shape)


def random_tree(rng: random.Random, depth: int = 0):
    kind = rng.randint(0, 8 if depth < 4 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([*INTS, rng.getrandbits(70)])
    if kind == 2:
        return rng.choice([*FLOATS, rng.gauss(0, 1)])
    if kind == 3:
        return rng.choice([*TEXTS, "".join(rng.choices(string.printable, k=9))])
    if kind <= 6:
        return random_array(rng)
    if kind == 7:
        return [random_tree(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return random_dict(rng, depth)


def random_dict(rng: random.Random, depth: int = 0):
    keys = rng.sample([*TEXTS, "weights", "fitted", "x"], k=rng.randint(0, 6))
    return {key: random_tree(rng, depth + 1) for key in keys}


def test_random_trees_come_back_bit_by_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # 1,200 of them take long
    rng = random.Random(0)
    for number in range(300):
        content = random_dict(rng)
        assert same(round_trip(tmp_path / "folder", content), content), f"tree {number}"
    assert len(os.listdir(tmp_path / "folder")) == 2


@pytest.mark.parametrize("dtype", NUMBER_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_arrays_keep_dtype_and_shape(tmp_path, dtype, shape):
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    stored = round_trip(tmp_path, {"array": array})["array"]
    assert same(stored, array)
    stored[...] = 1  # it owns its memory


def test_unusual_layouts_of_memory(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    content = {
        "transposed": base.T,
        "strided": base[::2, ::-3],
        "repeated": np.broadcast_to(np.float32(2.5), (3, 2)),
        "big endian": base.astype(">f8"),
        "big endian strided": base.astype(">i4")[:, ::2],
        "read-only": np.frombuffer(b"abc", dtype=np.uint8),
        "matrix": np.array([[1, 2]]).view(type("Sub", (np.ndarray,), {})),
    }
    stored = round_trip(tmp_path, content)
    for key, array in content.items():
        np.testing.assert_array_equal(stored[key], array, err_msg=key)
        assert stored[key].dtype == array.dtype.newbyteorder("=")
        assert type(stored[key]) is np.ndarray


def test_tensors_come_back_as_arrays(tmp_path):
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    content = {"weight": weight, "view": weight.T, "count": torch.tensor(3), "on": weight > 2}
    content["negated"] = torch.tensor([1 + 2j]).conj().imag  # a lazy minus sign in torch
    stored = round_trip(tmp_path, content)
    assert same(stored["weight"], weight.detach().numpy())
    assert same(stored["view"], weight.detach().numpy().T.copy())
    assert same(stored["count"], np.array(3))
    assert same(stored["on"], weight.detach().numpy() > 2)
    assert same(stored["negated"], np.array([-2], dtype=np.float32))


class Size(enum.IntEnum):
    SMALL = 3


class Color(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2.0, None)), [1, [2.0, None]]),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(math.inf), math.inf),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (Size.SMALL, 3),
        (Color.RED, "red"),
        (np.array([["a", "bc"]]), [["a", "bc"]]),
        (np.array("a"), "a"),
        (np.array([], dtype=str), []),
        (np.array(["a", None, 1.5, np.nan], dtype=object), ["a", None, 1.5, math.nan]),
        (np.array(["a", "bc"], dtype=np.dtypes.StringDType()), ["a", "bc"]),
    ],
)
def test_values_that_come_back_as_plain_ones(tmp_path, value, expected):
    assert same(round_trip(tmp_path, {"value": value}), {"value": expected})


def test_what_looks_like_a_reference_is_not_one(tmp_path):
    content = {
        "$array": "0",
        "dtype": "float64",
        "shape": [1],
        "inner": {"$array": "0", "dtype": "float64", "shape": [1]},
        "number": {"$float": "nan"},
        "escaped": {"$$array": {"$$$": 1, "$$": 2, "$": 3}},
        "real": np.array([1.0]),
    }
    assert same(round_trip(tmp_path, content), content)


class Strange:
    pass


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Strange(), r"predictor\.fitted\.trees\[3\] cannot be stored: it is a Strange"),
        (b"bytes", r"trees\[3\] cannot be stored: it is a bytes"),
        ({1, 2}, r"trees\[3\] cannot be stored: it is a set"),
        (1j, r"trees\[3\] cannot be stored: it is a complex"),
        (np.longdouble(1), r"trees\[3\] cannot be stored: it is a longdouble"),
        (np.array([1j]), r"trees\[3\] cannot be stored: it is an array of complex128; convert"),
        (np.array(["2024-01-01"], dtype="M8[D]"), r"trees\[3\] .* an array of datetime64\[D\]"),
        (np.zeros(1, dtype=[("a", int)]), r"trees\[3\] .* an array of \[\('a'"),
        (np.array([{"deep": Strange()}]), r"trees\[3\]\[0\]\.deep cannot be stored: it is a Str"),
        (np.ma.masked_array([1.0], [True]), r"trees\[3\] cannot be stored: it is a MaskedArray"),
        (torch.zeros(1, dtype=torch.bfloat16), r"trees\[3\] .* a strided tensor of torch\.bfloat1"),
        (torch.eye(2).to_sparse(), r"trees\[3\] .* a sparse_coo tensor of torch\.float32"),
        (torch.zeros(1, device="meta"), r"trees\[3\] .* tensor of torch\.float32 .*; convert it"),
        ({"a": {1: 2}}, r"trees\[3\]\.a\[1\] cannot be stored: it is a key of type int; use text"),
        ({"a": {"\ud800": 2}}, r"trees\[3\]\.a .* text that is not valid Unicode, '\\ud800'"),
        ("\udcff", r"trees\[3\] cannot be stored: it is text that is not valid Unicode"),
        (2**4096, r"trees\[3\] cannot be stored: it is an integer of more than 4096 bits"),
        (CYCLE, r"trees\[3\]\[0\].* nested more than 100 deep; does it contain itself"),
    ],
)
def test_what_cannot_be_stored_is_named_by_its_path(tmp_path, value, message):
    with pytest.raises(InvalidInputError, match=message):
        write(tmp_path / "new", {"predictor": {"fitted": {"trees": [0, 1, 2, value]}}})
    assert not (tmp_path / "new").exists()


def test_content_must_be_a_dict_that_fits_the_header(tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match="content must be a dict, but came as list"):
        write(tmp_path, [1])
    monkeypatch.setattr(storage, "_MAX_HEADER_BYTES", 1000)
    with pytest.raises(InvalidInputError, match=r"header of 1000 bytes .* as arrays"):
        write(tmp_path, {"a": list(range(1000))})
    assert os.listdir(tmp_path) == []


def test_the_header_can_be_read_by_people(tmp_path):
    write(tmp_path, {"Größe": 1.5, "weights": np.zeros((2, 3), dtype=np.float32)})
    text = (tmp_path / "header.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "format": "forewise",\n  "layout": 1,\n  "kind": "test",')
    assert '"Größe": 1.5' in text
    header = json.loads(text)
    assert header["content"]["weights"] == {"$array": "0", "dtype": "float32", "shape": [2, 3]}
    assert header["arrays"]["file"] == f"arrays-{header['arrays']['sha256'][:16]}.safetensors"
    assert sorted(os.listdir(tmp_path)) == [header["arrays"]["file"], "header.json"]


def test_files_get_the_users_permissions(tmp_path):
    mask = os.umask(0o027)
    try:
        write(tmp_path, {"a": np.zeros(2)})
    finally:
        os.umask(mask)
    assert {stat.S_IMODE((tmp_path / n).stat().st_mode) for n in os.listdir(tmp_path)} == {0o640}


# --- versions and kinds


@pytest.mark.parametrize(
    ("kind", "versions", "message"),
    [
        ("policy", [3], "must hold a policy, but holds a test"),
        ("test", [1, 2], r"has version 3 of the test format, .* reads 1, 2: .* newer .* upgrade"),
        ("test", [5, 4], r"has version 3 of the test format, .* reads 4, 5: .* older .* again"),
    ],
)
def test_other_kinds_and_versions(tmp_path, kind, versions, message):
    write_folder(tmp_path, {"a": 1}, kind="test", version=3)
    assert read_folder(tmp_path, kind="test", versions=(2, 3)) == (3, {"a": 1})
    with pytest.raises(StorageError, match=message):
        read_folder(tmp_path, kind=kind, versions=versions)


# --- damaged folders, one reason each; the many random ones are in test_storage_faults.py


@pytest.fixture
def stored(tmp_path) -> Path:
    folder = tmp_path / "stored"
    write(folder, {"a": np.arange(5.0), "flags": np.array([True, False]), "b": [1, 2.5, "x"]})
    return folder


def arrays_path(folder: Path) -> Path:
    (path,) = folder.glob("arrays-*.safetensors")
    return path


def forge(folder: Path, change) -> None:
    """Change the parsed header and give it the checksum it needs, as an attacker would."""
    header = json.loads((folder / "header.json").read_text())
    change(header)
    header["sha256"] = storage._checksum(header)
    (folder / "header.json").write_text(json.dumps(header))


def forge_arrays(folder: Path, old: bytes, new: bytes) -> None:
    """Replace bytes of the arrays' file, with all names, sizes and checksums as they should be."""
    path = arrays_path(folder)
    data = path.read_bytes().replace(old, new)
    path.unlink()
    digest = storage.hashlib.sha256(data).hexdigest()
    description = {"file": f"arrays-{digest[:16]}.safetensors", "bytes": len(data)}
    (folder / description["file"]).write_bytes(data)
    forge(folder, lambda header: header.update(arrays={**description, "sha256": digest}))


def set_arrays(**entries):
    return lambda header: header["arrays"].update(entries)


def set_content(**entries):
    return lambda header: header["content"].update(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format="other"), r"header\.json is not one of forewise's"),
        (lambda h: h.update(layout=2), "file layout 2, and this forewise reads 1: .* newer .* upg"),
        (lambda h: h.update(kind=3), "fields that are missing, unknown or of the wrong type"),
        (lambda h: h.update(version=True), "fields that are missing, unknown or of the wrong"),
        (lambda h: h.update(version=1.0), "fields that are missing, unknown or of the wrong"),
        (lambda h: h.update(extra=1), "fields that are missing, unknown or of the wrong type"),
        (lambda h: h.pop("content"), "fields that are missing, unknown or of the wrong type"),
        (lambda h: h.update(arrays=[]), "fields that are missing, unknown or of the wrong type"),
        (lambda h: h.update(content=[]), "fields that are missing, unknown or of the wrong type"),
        (lambda h: h.update(content={"$float": "nan"}), "does not refer to all of its arrays"),
        (set_arrays(file="../arrays-0123456789abcdef.safetensors"), "of the wrong type"),
        (set_arrays(file="/etc/passwd"), "of the wrong type"),
        (set_arrays(file="arrays-0123456789abcdef.safetensors\n"), "of the wrong type"),
        (set_arrays(file="arrays-0123456789abcdef.safetensors"), "its header names, is missing"),
        (set_arrays(bytes=10**18), "bytes, where 10{18} are expected"),
        (set_arrays(bytes=-1), "bytes, where -1 are expected"),
        (set_arrays(bytes="1"), "of the wrong type"),
        (set_arrays(sha256="0" * 64), r"checksum of arrays-.*\.safetensors does not match"),
        (set_content(a=1), "does not refer to all of its arrays"),
        (set_content(c={"$array": "9", "dtype": "f", "shape": []}), "an array that is missing or"),
        (set_content(c={"$array": [], "dtype": "f", "shape": []}), "an array that is missing or"),
        (
            set_content(c={"$array": "0", "dtype": "float64", "shape": [5]}),
            "an array that is missing or taken",
        ),
        (
            set_content(a={"$array": "0", "dtype": "float64", "shape": [1, 5]}),
            "an array differs from its description",
        ),
        (
            set_content(a={"$array": "0", "dtype": "float32", "shape": [5]}),
            "an array differs from its description",
        ),
        (set_content(c={"$array": "0"}), "a reference that cannot be understood"),
        (set_content(c={"$float": "1"}), "a reference that cannot be understood"),
        (set_content(c={"$pickle": "gASV"}), "a reference that cannot be understood"),
        (set_content(c=json.loads("[" * 150 + "]" * 150)), "its content is nested too deep"),
    ],
)
def test_forged_headers(stored, change, message):
    forge(stored, change)
    with pytest.raises(StorageError, match=message):
        read(stored)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"F64"', b'"F63"', r"is not a safetensors file \("),
        (b'"F64"', b'"I64"', "an array differs from its description"),
        (b"[5]", b"[6]", r"is not a safetensors file \("),
        (b"\x01\x00", b"\x07\x00", "truth values that are neither true nor false"),
        (b'"shape":[5]', b'"shape":[0,18446744073709551615]', r"is not a safetensors file \("),
    ],
)
def test_forged_arrays(stored, old, new, message):
    forge_arrays(stored, old, new)
    with pytest.raises(StorageError, match=message):
        read(stored)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"", "is not the JSON of a header"),
        (b"\xff\xfe", "is not the JSON of a header"),
        (b"{}", r"header\.json is not one of forewise's"),
        (b"[" * 10**6, "is not the JSON of a header .*recursion"),
        (b'{"a":' * 10**5, "is not the JSON of a header .*recursion"),
        (b'{"format": "forewise", "format": "forewise"}', "a key stands twice"),
        (b'{"format": "forewise", "layout": 1, "content": NaN}', "JSON of a header .*not JSON com"),
        (b'{"format": "forewise", "layout": 1, "content": 1e999}', "JSON of a header .*not JSON"),
        (b'{"a": ' + b"9" * 10**6 + b"}", "is not the JSON of a header .*digits"),
        (b'{"format": "forewise", "layout": 1}', r"the checksum of header\.json does not match"),
        (pickle.dumps({"format": "forewise"}), "is not the JSON of a header"),
    ],
)
def test_other_files_in_place_of_the_header(stored, header, message):
    (stored / "header.json").write_bytes(header)
    with pytest.raises(StorageError, match=message):
        read(stored)


def test_white_space_is_free_and_all_else_is_not(stored):
    before = read(stored)
    header = stored / "header.json"
    compact = json.dumps(json.loads(header.read_text()))
    header.write_text(compact)
    assert same(read(stored), before)
    header.write_text(compact.replace("2.5", "2.25"))
    with pytest.raises(StorageError, match=r"the checksum of header\.json does not match.*copy"):
        read(stored)


def test_a_header_of_any_size_is_not_read(stored):
    os.truncate(stored / "header.json", 2**40)  # sparse: nothing is on the disk
    with pytest.raises(StorageError, match=f"has {2**40} bytes, where at most 16777216"):
        read(stored)


def test_too_little_memory_is_said(stored, monkeypatch):
    def no_memory(*arguments):
        raise MemoryError

    monkeypatch.setattr(storage, "_open_plainly", no_memory)
    with pytest.raises(StorageError, match=r"cannot read .*: it does not fit into memory"):
        read(stored)


def test_missing_files_and_folders(stored, tmp_path):
    with pytest.raises(StorageError, match=r"nothing is stored in .*: there is no such folder"):
        read(tmp_path / "nowhere")
    arrays_path(stored).unlink()
    with pytest.raises(StorageError, match="which its header names, is missing"):
        read(stored)
    (stored / "header.json").unlink()
    with pytest.raises(StorageError, match=r"nothing is stored in .*: it has no header\.json"):
        read(stored)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot read .*a file where a folder is expected"):
        read(tmp_path / "file")
    with pytest.raises(StorageError, match=r"cannot read .*: embedded null"):
        read("no\0path")


def test_links_pipes_and_folders_are_not_followed(stored, tmp_path):
    for path in (stored / "header.json", arrays_path(stored)):
        content = path.read_bytes()
        elsewhere = tmp_path / "elsewhere"
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        with pytest.raises(StorageError, match=r"cannot read .*symbolic link; put the file itself"):
            read(stored)
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(StorageError, match="is not a regular file"):
            read(stored)
        path.unlink()
        path.mkdir()
        with pytest.raises(StorageError, match=r"cannot read .*: Is a directory"):
            read(stored)
        path.rmdir()
        path.write_bytes(content)
    link = tmp_path / "link"
    link.symlink_to(stored)  # the folder itself may be a link
    assert same(read(link), read(stored))


# --- where to write, and what happens when that fails


def test_folders_of_others_are_not_touched(tmp_path):
    for number, name in enumerate(["notes.txt", ".hidden", "sub", "header.json", "arrays-1.bin"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).mkdir() if name == "sub" else (folder / name).write_text('{"mine": 1}')
        with pytest.raises(StorageError, match=rf"not forewise's \({name}\).*choose an empty"):
            write(folder, {"a": 1})
        assert os.listdir(folder) == [name]


def test_files_added_to_a_stored_folder_stay(stored):
    names = ["README.md", "arrays-old.safetensors", ".forewise-x.tmp", "header.json.bak"]
    for name in names:
        (stored / name).write_text("mine")
        os.utime(stored / name, (0, 0))
    assert round_trip(stored, {"a": 2}) == {"a": 2}
    assert {name for name in names if (stored / name).read_text() == "mine"} == set(names)


def test_a_damaged_folder_can_be_written_again(stored):
    header = stored / "header.json"
    header.write_bytes(header.read_bytes()[:100])
    assert round_trip(stored, {"a": 2}) == {"a": 2}


def test_only_old_leftovers_are_removed(tmp_path):
    """Fresh ones may be another writer's; they do not make a folder somebody else's either."""
    names = [f"{prefix}-{i:016x}" for i in range(2) for prefix in ("arrays", ".forewise")]
    names = [n + (".tmp" if n[0] == "." else ".safetensors") for n in names]
    for name in names:
        (tmp_path / name).touch()
    for name in names[:2]:
        os.utime(tmp_path / name, (0, 0))
    write(tmp_path, {"a": 1})
    assert set(names) & set(os.listdir(tmp_path)) == set(names[2:])
    assert len(os.listdir(tmp_path)) == 4


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match=r"cannot write .*a file where a folder is expected"):
            write(path, {"a": 1})
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(StorageError, match=r"cannot write .*: embedded null"):
        write("no\0path", {"a": 1})


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission(stored):
    before = read(stored)
    stored.chmod(0o500)
    try:
        with pytest.raises(StorageError, match=r"Permission denied; what was .* is unchanged"):
            write(stored, {"a": 1})
    finally:
        stored.chmod(0o700)
    assert same(read(stored), before)


def fail_at(monkeypatch, name: str, number: int, code: int) -> None:
    """Let the `number`-th call of ``os.name`` fail as the system would."""
    original, calls = getattr(os, name), []

    def function(*arguments, **options):
        calls.append(arguments)
        if len(calls) == number:
            raise OSError(code, os.strerror(code))
        return original(*arguments, **options)

    monkeypatch.setattr(storage.os, name, function)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize(
    ("name", "number"),
    [("fsync", 1), ("fsync", 2), ("fsync", 3), ("replace", 1), ("replace", 2), ("listdir", 1)],
)
def test_a_failing_disk_leaves_the_old_content(stored, monkeypatch, name, number, code):
    before, files = read(stored), sorted(os.listdir(stored))
    fail_at(monkeypatch, name, number, code)
    reason = os.strerror(code)
    with pytest.raises(StorageError, match=f"cannot write .*: {reason}; what was .* is unchanged"):
        write(stored, {"a": np.zeros(3)})
    monkeypatch.undo()
    assert same(read(stored), before)
    assert sorted(os.listdir(stored)) == files


def test_a_disk_that_fails_after_the_new_content_is_in_place(stored, monkeypatch):
    fail_at(monkeypatch, "fsync", 4, errno.EIO)
    with pytest.raises(StorageError, match="the new content is in place, but may not survive"):
        write(stored, {"a": 2})
    assert read(stored) == {"a": 2}


def test_file_systems_that_cannot_flush_folders(stored, monkeypatch):
    fail_at(monkeypatch, "fsync", 2, errno.EINVAL)
    assert round_trip(stored, {"a": 2}) == {"a": 2}


def test_leftovers_that_cannot_be_removed_are_no_failure(stored, monkeypatch):
    fail_at(monkeypatch, "unlink", 1, errno.EACCES)
    assert round_trip(stored, {"a": 2}) == {"a": 2}
    assert len(os.listdir(stored)) == 3


@pytest.mark.parametrize("new", [{"a": np.zeros(10_000)}, {"a": list(range(10_000))}])
def test_a_write_that_the_system_cuts_short(stored, new):
    """A limit on the size of files is a full disk that a test can have."""
    before, files = read(stored), sorted(os.listdir(stored))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"File too large; what was .* is unchanged"):
            write(stored, new)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert same(read(stored), before)
    assert sorted(os.listdir(stored)) == files


def test_a_reader_whose_arrays_were_just_replaced_reads_again(stored, monkeypatch):
    original, raced = storage._read_arrays, []

    def overtaken(folder, description):
        if len(raced) < 3:
            raced.append(True)
            write(folder, {"a": np.full(3, len(raced))})
        return original(folder, description)

    monkeypatch.setattr(storage, "_read_arrays", overtaken)
    assert same(read(stored), {"a": np.full(3, 3)})


def test_an_interrupted_writer_leaves_what_the_header_names(stored, monkeypatch):
    """Ctrl-C between the last rename and the next line must not remove the new arrays."""
    original = os.replace

    def interrupted(source, target):
        original(source, target)
        if Path(target).name == "header.json":
            raise KeyboardInterrupt

    monkeypatch.setattr(storage.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(stored, {"a": np.full(3, 7)})
    assert same(read(stored), {"a": np.full(3, 7)})


def test_a_writer_of_the_old_content_is_not_robbed_of_its_arrays(tmp_path, monkeypatch):
    """Another writer replaces the old content and removes its arrays, between our two renames."""
    write(tmp_path, {"a": np.zeros(3)})
    original, overtaken = storage._place, []

    def place(path, data):
        if path.name == "header.json" and not overtaken:
            overtaken.append(True)
            write(tmp_path, {"a": np.ones(3)})
        original(path, data)

    monkeypatch.setattr(storage, "_place", place)
    assert same(round_trip(tmp_path, {"a": np.zeros(3)}), {"a": np.zeros(3)})
