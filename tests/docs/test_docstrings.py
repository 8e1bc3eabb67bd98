"""Every public name is documented, and each docstring's example runs and prints what it says."""

from __future__ import annotations

import doctest
import re
import sys
import warnings

import pytest

from tests.docs.public_names import different_names, docstring_of

NAMES = different_names()
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PARSER = doctest.DocTestParser()


def test_there_are_many_names():
    assert len(NAMES) > 200
    assert len({id(value) for value in NAMES.values()}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    text = docstring_of(name, NAMES[name])
    assert text, f"{name} has no docstring"
    test = PARSER.get_doctest(text, {"__name__": "__main__"}, name, None, None)
    assert test.examples, f"{name} has no example: add a section Examples to its docstring"
    assert "import forewise" in text, f"the example of {name} cannot be copied and run"
    assert "+SKIP" not in text, f"the example of {name} does not run"
    if re.search(r"^>>> import mlflow$", text, re.MULTILINE):
        warnings.simplefilter("ignore")  # until the end of the test: MLflow warns of its own plans
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        pytest.importorskip("mlflow", reason="pip install mlflow-skinny")
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("MPLBACKEND", "agg")
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=said.append)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    assert not runner.failures, "".join(said)
