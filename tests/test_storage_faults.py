"""Storage under attack: killed writers, crowds of writers, and thousands of damaged folders.

Writers are forked, which costs milliseconds where a fresh process would import for seconds.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import resource
import signal
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from forewise import storage
from forewise.exceptions import StorageError
from forewise.storage import read_folder, write_folder
from tests.test_storage import same

KILLS = 100
WRITERS, WRITES = 4, 50
ARRAY_SIZE = 5_000
CHANGING_CALLS = ("open", "fsync", "replace", "unlink", "listdir")


# --- writers that are killed, that crash, that disturb each other


def numbered(counter: int) -> dict:
    """Content that shows a mixture of two writings at once."""
    arrays = [np.full(ARRAY_SIZE + i, counter, dtype=np.int64) for i in range(3)]
    return {"counter": counter, "arrays": arrays, "last": {"counter": counter}}


def counter_of(folder: Path) -> int:
    """The number of what is stored; raises if it is not all of one writing."""
    _, content = read_folder(folder, kind="numbered", versions=[1])
    counter = content["counter"]
    sizes = [array.size for array in content["arrays"]]
    if sizes != [ARRAY_SIZE + i for i in range(3)]:
        raise AssertionError(f"sizes {sizes}")
    if not all((array == counter).all() for array in content["arrays"]):
        raise AssertionError("a mixture of two writings")
    if content["last"]["counter"] != counter:
        raise AssertionError("a mixture of two writings")
    return counter


def write_numbered(folder: Path, counter: int) -> None:
    write_folder(folder, numbered(counter), kind="numbered", version=1)


def fork(function) -> int:
    """Run `function` in a child that ends with it, whatever happens."""
    with warnings.catch_warnings():
        # Threads of pytest or a library do not matter to a child that only writes a folder.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return child


def skip_flushing() -> None:
    """In a child only: what a killed process has written stays, flushed to the disk or not.

    Without the wait for the disk, more of a child's time is spent where a kill could hurt.
    """
    os.fsync = lambda descriptor: None


def kill_writers(folder: Path, rng: random.Random) -> dict:
    """Kill a busy writer at random moments; what is stored must be whole and not too old."""
    write_numbered(folder, 0)
    counter, kills_amid, writings = 0, 0, 0
    for trial in range(KILLS):
        reports, reporting = os.pipe()

        def keep_writing(start=counter + 1, reporting=reporting, flushing=trial % 4 == 0):
            if not flushing:
                skip_flushing()
            for number in range(start, start + 10_000):
                write_numbered(folder, number)
                os.write(reporting, b"%d\n" % number)

        before = set(os.listdir(folder))
        child = fork(keep_writing)
        os.close(reporting)
        # On a busy machine a child may not get far; every second one is given a first writing.
        first = os.read(reports, 1) if trial % 2 else b""
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reports, "rb") as file:
            reported = [int(line) for line in (first + file.read()).split()]
        complete = reported[-1] if reported else counter
        found = counter_of(folder)
        if not complete <= found <= complete + 1:
            raise AssertionError(f"{complete} was complete, but {found} was read")
        named = storage._named_in_header(folder)
        kills_amid += bool(set(os.listdir(folder)) - before - named - {"header.json"})
        writings += len(reported)
        counter = found
    return {"kills": KILLS, "amid a writing": kills_amid, "writings": writings}


def crash_at_every_step(folder: Path) -> dict:
    """End the process before and after each call that changes the folder, one after another."""
    write_numbered(folder, 0)
    counter, step, found_new = 0, 0, 0
    while True:
        step += 1

        def crash(step=step, number=counter + 1):
            calls = 0
            originals = {name: getattr(os, name) for name in CHANGING_CALLS}
            for name in CHANGING_CALLS:

                def counted(*arguments, original=originals[name], **options):
                    nonlocal calls
                    calls += 1
                    if calls == step:
                        os._exit(9)
                    result = original(*arguments, **options)
                    calls += 1
                    if calls == step:
                        os._exit(9)
                    return result

                setattr(os, name, counted)
            write_numbered(folder, number)

        _, status = os.waitpid(fork(crash), 0)
        found = counter_of(folder)
        if found not in (counter, counter + 1):
            raise AssertionError(f"step {step}: {found} was read")
        found_new += found == counter + 1
        counter = found
        if os.waitstatus_to_exitcode(status) == 0:
            return {"steps": step - 1, "found new": found_new}
        if os.waitstatus_to_exitcode(status) != 9:
            raise AssertionError(f"step {step} ended with status {status}")


def crowd_of_writers(folder: Path) -> dict:
    """Several writers at once, some of the same content, while a reader reads without a pause."""
    write_numbered(folder, 0)

    def write_some():
        skip_flushing()
        for number in range(WRITES):
            write_numbered(folder, number % 3)

    children = {fork(write_some) for _ in range(WRITERS)}
    reads = 0
    while children:
        counter_of(folder)
        reads += 1
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.discard(child)
            if status != 0:
                raise AssertionError(f"a writer ended with status {status}")
    leftovers = len(os.listdir(folder)) - 2
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    write_numbered(folder, 1)
    return {"reads": reads, "left": leftovers, "left at last": len(os.listdir(folder)) - 2}


def test_killed_writers_leave_the_old_content_or_the_new(tmp_path):
    seen = kill_writers(tmp_path / "folder", random.Random(0))
    print(seen)
    assert seen["amid a writing"] > KILLS // 10  # otherwise the kills proved little
    assert seen["writings"] >= KILLS // 2


def test_a_crash_before_or_after_any_step_leaves_the_old_content_or_the_new(tmp_path):
    seen = crash_at_every_step(tmp_path / "folder")
    print(seen)
    assert seen["steps"] > 20
    assert 1 < seen["found new"] < seen["steps"]


def test_a_crowd_of_writers_and_a_reader_do_not_disturb_each_other(tmp_path):
    seen = crowd_of_writers(tmp_path / "folder")
    print(seen)
    assert seen["reads"] > 10
    assert seen["left at last"] == 0


# --- damaged folders

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
        header["sha256"] = storage._checksum(header)
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
    monkeypatch.setattr(storage.time, "sleep", lambda seconds: None)
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
