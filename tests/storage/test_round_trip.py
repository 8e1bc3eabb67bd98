"""What is written is read again, bit by bit; what cannot be stored is named by its path."""

from __future__ import annotations

import enum
import json
import math
import os
import random
import stat
import string

import numpy as np
import pytest
import torch

from forewise.exceptions import InvalidInputError
from forewise.storage import header
from forewise.storage.trees import DTYPES
from tests.storage.folders import round_trip, same, write

NUMBER_DTYPES = sorted(DTYPES)
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
    monkeypatch.setattr(header, "_MAX_HEADER_BYTES", 1000)
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
