"""Folders of another kind, damaged or forged, one reason each; random ones stand elsewhere."""

from __future__ import annotations

import json
import os
import pickle

import pytest

from forewise.exceptions import StorageError
from forewise.storage import arrays, files, read_folder, write_folder
from tests.storage.folders import arrays_path, forge, forge_arrays, read, same


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
        (b'"F64","shape":[5]', b'"BF16","shape":[20]', r"is not a safetensors file \('BF16'\)"),
        (b"[5]", b"[" + b"1," * 70 + b"5]", r"is not a safetensors file \(maximum supported dim"),
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

    monkeypatch.setattr(arrays, "load", no_memory)
    with pytest.raises(StorageError, match=r"cannot read .*arrays-.*: it does not fit into memory"):
        read(stored)
    monkeypatch.setattr(files, "open_plainly", no_memory)
    with pytest.raises(StorageError, match=r"cannot read .*header.*: it does not fit into memory"):
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
