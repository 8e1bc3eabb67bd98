"""The pages hang together, and their code runs: each page as one story, in a folder of its own."""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stdout

import pytest
from typer.testing import CliRunner

from forewise import cli
from tests.docs.pages import DOCS, NAVIGATION, PAGES, ROOT, blocks
from tests.docs.public_names import all_names, different_names

LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
WITH_CODE = [page for page in PAGES if any(b.language in ("python", "sh") for b in blocks(page))]
# Comparing methods takes as long as one lets it; a second will do.
LIMITED = {"fit", "evaluate", "report"}


def anchors(page: str) -> set[str]:
    """Of the headings of a page, as the site makes them."""
    titles = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", title.lower()).strip() for title in titles]
    return {re.sub(r"[\s-]+", "-", title) for title in plain}


def test_every_page_is_in_the_navigation_once():
    assert sorted(NAVIGATION) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_exist(page):
    here = (DOCS / page).parent
    for groups in LINK.findall((DOCS / page).read_text()):
        target = "".join(groups)
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        found = (here / path).resolve() if path else DOCS / page
        assert found.is_relative_to(DOCS), f"{target} is not part of the site"
        assert found.is_file(), f"{target} does not exist"
        assert not anchor or anchor in anchors(found.relative_to(DOCS).as_posix()), target


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_repositorys_pages_exist(name):
    for groups in LINK.findall((ROOT / name).read_text()):
        target = "".join(groups).partition("#")[0]
        if target and not target.startswith(("http://", "https://", "mailto:")):
            assert (ROOT / target).exists(), f"{name}: {target} does not exist"


def test_the_reference_has_every_public_name_once():
    text = "".join((DOCS / page).read_text() for page in PAGES if page.startswith("reference/"))
    listed = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    values = {name.replace("fw.", "forewise.", 1): id(value) for name, value in all_names()}
    assert not set(listed) - set(values), "these are not public"
    missing = {
        name
        for name, value in different_names().items()
        if id(value) not in map(values.get, listed)
    }
    assert not missing, "add them to a page of docs/reference"
    assert len({values[name] for name in listed}) == len(listed), "one of them is listed twice"


def test_llms_txt_has_every_page():
    listed = re.findall(r"\]\(([^)]+)\): .+", (DOCS / "llms.txt").read_text())
    assert sorted(listed) == PAGES


def test_few_blocks_are_not_run():
    elsewhere = [b for page in PAGES for b in blocks(page) if b.elsewhere is not None]
    assert len(elsewhere) <= 6, [f"{b.page}:{b.line} {b.elsewhere}" for b in elsewhere]


def run_command(line: str) -> None:
    """`forewise ...` as it would be typed."""
    program, *words = shlex.split(line)
    assert program == "forewise", f"{line}: mark what only runs elsewhere"
    if words[0] in LIMITED:
        words += ["--time-limit", "1"]
    ended = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output


@pytest.mark.parametrize("page", WITH_CODE)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # of short fits
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr("forewise.cli.tour._DAYS", 60)
    monkeypatch.setitem(sys.modules, "mlflow", None)  # has tests of its own
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.elsewhere is not None:
            continue
        place = f"docs/{page}:{block.line}"
        if block.language == "python":
            source = "\n" * (block.line - 1) + block.source  # for the lines of tracebacks
            with redirect_stdout(io.StringIO()):
                exec(compile(source, place, "exec"), names)
        elif block.language == "sh":
            for line in block.source.replace("\\\n", "").splitlines():
                run_command(line)
        else:
            assert block.language in ("text", ""), f"{place}: python, sh or text"
