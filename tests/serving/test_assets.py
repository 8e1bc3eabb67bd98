"""The page's files: built from the sources that are here, small, safe, licensed."""

from __future__ import annotations

import gzip
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import pytest

from tests.serving.conftest import TOKEN, serving

BUILT = Path(str(files("forewise.serving"))) / "studio"
SOURCES = Path(__file__).parents[2] / "studio"


def hash_of_sources() -> str:
    """As `studio/vite.config.ts` makes it."""
    found = {
        path.relative_to(SOURCES).as_posix(): path
        for path in SOURCES.rglob("*")
        if path.is_file()
        and not any(
            part == "node_modules" or part.startswith(".")
            for part in path.relative_to(SOURCES).parts
        )
    }
    made = hashlib.sha256()
    for name in sorted(found):
        made.update(f"{name}\0".encode() + found[name].read_bytes() + b"\0")
    return made.hexdigest()


def test_the_built_files_are_of_these_sources():
    recorded = json.loads((BUILT / "built.json").read_text())["sources"]
    assert recorded == hash_of_sources(), "studio/ has changed: run `make studio`"


def test_files_are_few_and_small():
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in BUILT.iterdir()}
    assert sum(sizes.values()) <= 150_000, sizes
    assert {name.rpartition(".")[2] for name in sizes} == {"html", "js", "css", "txt", "json"}


def test_every_bundled_package_has_its_notice():
    text = (BUILT / "licences.txt").read_text()
    for name in ("@observablehq/plot", "preact", "d3-scale"):
        assert f"\n{name} " in text
    assert text.count("ermission") >= text.count("(ISC)\n")


def test_the_page_and_its_policy(plain):
    with serving({"ice": plain}, token=TOKEN) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["x-content-type-options"] == "nosniff"
        rules = dict(
            rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; ")
        )
        assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
        assert rules["script-src"] == rules["connect-src"] == "'self'"
        assert "unsafe" not in str(rules)
        assert "<script>" not in page.text
        assert "style=" not in page.text
        names = [name for name in page.text.split('"') if name.startswith("/studio/")]
        assert len(names) == 2
        for name in names:
            plainly = client.get(name, headers={"Accept-Encoding": "identity"})
            packed = client.get(name, headers={"Accept-Encoding": "gzip"})
            assert packed.headers["content-encoding"] == "gzip"
            assert "content-encoding" not in plainly.headers
            assert packed.text == plainly.text == (BUILT / name.split("/")[-1]).read_text()
            assert "immutable" in packed.headers["cache-control"]
        for path in ("/policies", "/policies/ice/form", "/openapi.json", "/studio/../app.py"):
            answer = client.get(path)
            assert answer.status_code == 401
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200), ("127.0.0.1:80", 200), ("LOCALHOST", 200), ("[::1]:1", 200),
        ("evil.example", 421), ("localhost.evil.example:8000", 421), ("127.0.0.1.evil.com", 421),
        ("", 421), ("[::1].evil.com:80", 421), ("evil:80:localhost", 421),
    ],
)  # fmt: skip
def test_names_of_other_sites_are_refused_without_a_token(plain, host, status):
    """Else a page of another site could point its name here and read what has no token."""
    from forewise.serving.app import create_app

    with serving({"ice": plain}) as client:
        client.app = create_app(client.shelf, local=True)
        for path in ("/", "/policies"):
            assert client.get(path, headers={"Host": host}).status_code == status
