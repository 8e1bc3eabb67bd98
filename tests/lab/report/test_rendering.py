"""Tables as text, Markdown and LaTeX."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from rich.console import Console

from forewise_lab.report.rendering import as_latex, as_markdown, print_table
from forewise_lab.report.tables import table1, table2

NASTY = r"50% & _more_ #1 {a} \b ~ ^ $x$ <b>|</b> [red]"


def as_text(table, width):
    """What a terminal or a file of this width shows."""
    console = Console(width=width, color_system=None, force_terminal=False, highlight=False)
    with console.capture() as capture:
        print_table(table, console)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


@pytest.fixture(scope="module")
def tables(all_rows):
    gone = all_rows.eval("experiment == 'nv1' and method == 'c-ann'")
    return table1(all_rows[~gone]), table2(all_rows)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_text_fits_and_loses_nothing(tables, width):
    for table in tables:
        text = as_text(table, width)
        assert max(len(line) for line in text.splitlines()) <= width
        assert "…" not in text
        for line in table.lines:
            assert line.split()[0] in text
        for cell in table.cells:
            assert cell.label in text


def test_wide_text_has_columns_side_by_side(tables):
    def longest(table, width):
        return max(len(line) for line in as_text(table, width).splitlines())

    assert longest(tables[0], 100) > 80


def test_text_has_means_intervals_papers_and_signs(tables):
    text = as_text(tables[0], 100)
    assert "C-ANN · 5 missing" in text
    assert "531 (70)" in text
    assert "*" in text
    assert any(sign in text for sign in "▼▲≈")
    assert "Welch" in text


def test_names_are_taken_literally_in_text(all_rows):
    rows = all_rows[all_rows["experiment"] == "nv1"].replace({"method": {"mixture": NASTY}})
    text = as_text(table1(rows), 100)
    assert "[red]" in text


def test_markdown_is_a_table(tables):
    for table in tables:
        lines = [line for line in as_markdown(table).splitlines() if line.startswith("|")]
        heads = [line for line in lines if line.startswith("| :--")]
        assert len(heads) == len(table.groups)
        assert "**" in "".join(lines)


def test_markdown_escapes(all_rows):
    rows = all_rows[all_rows["experiment"] == "nv1"].replace({"method": {"mixture": NASTY}})
    (line,) = (line for line in as_markdown(table1(rows)).splitlines() if "50%" in line)
    assert r"\<b\>\|\</b\>" in line
    assert line.replace(r"\|", "").count("|") == 10


def test_latex_escapes(all_rows):
    rows = all_rows[all_rows["experiment"] == "nv1"].replace({"method": {"mixture": NASTY}})
    text = as_latex(table1(rows))
    assert r"50\% \& \_more\_ \#1 \{a\} \textbackslash{}b \textasciitilde{}" in text
    assert r"\textasciicircum{} \$x\$ \textless{}b\textgreater{}\textbar{}" in text


def test_latex_is_booktabs(tables):
    for table in tables:
        text = as_latex(table)
        assert text.count(r"\toprule") == text.count(r"\bottomrule") == text.count(r"\begin{table}")
        assert text.count("{tabular}") == 2 * text.count(r"\begin{table}")
        assert "–" not in text
        assert text.isascii() or set(text) - set(map(chr, range(128))) <= set("’")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX here")
def test_latex_compiles(tables, all_rows, tmp_path):
    rows = all_rows[all_rows["experiment"] == "nv1"].replace({"method": {"mixture": NASTY}})
    body = "\n".join(as_latex(table) for table in (*tables, table1(rows)))
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{amssymb,booktabs,graphicx}"
    (tmp_path / "t.tex").write_text(rf"{head}\begin{{document}}{body}\end{{document}}")
    command = ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
