"""Policies as MLflow models; skipped where MLflow is not installed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import forewise as fw
from tests.planner.tables import sales_table

PROBLEM = fw.Newsvendor(3.0, 1.0)
# MLflow warns of its own plans while it is imported.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_without_mlflow_the_library_imports_and_says_what_is_missing(tmp_path):
    script = """
import sys
sys.modules["mlflow"] = None
import forewise as fw
try:
    fw.mlflow.load_model("model")
except fw.exceptions.MissingDependencyError as error:
    assert "forewise[mlflow]" in str(error)
else:
    raise AssertionError
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr


def test_what_is_no_policy_is_refused(tmp_path):
    learner = fw.DecoupledLearner(PROBLEM, fw.EmpiricalPredictor()).fit([[1.0]] * 3, [1.0, 2, 3])
    with pytest.raises(fw.exceptions.InputTypeError, match="policy must be a fitted policy"):
        fw.mlflow.save_model(learner, tmp_path / "model")
    with pytest.raises(fw.InvalidInputError, match="past must be None"):
        fw.mlflow.save_model(learner.policy_, tmp_path / "model", past=pd.DataFrame({"x": [1]}))


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("mlflow", reason="MLflow is not installed: pip install mlflow-skinny")
    return pytest.importorskip("mlflow.pyfunc") and sys.modules["mlflow"]


def frame(n_rows: int = 40) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame({"heat": random.normal(20, 5, n_rows), "day": ["sat", "mon"] * 20})


def test_a_policy_of_arrays_decides_alike(mlflow):
    X = np.random.default_rng(0).normal(size=(40, 2))
    policy = fw.DecoupledLearner(PROBLEM, fw.NeighborPredictor(9)).fit(X, 9 + X[:, 0]).policy_
    fw.mlflow.save_model(policy, "model")
    loaded = mlflow.pyfunc.load_model("model")
    np.testing.assert_array_equal(loaded.predict(X[:5]), policy.decide(X[:5]))
    assert loaded.metadata.signature.inputs.inputs[0].shape == (-1, 2)
    few = {"n_scenarios": 3, "random_state": 7}
    np.testing.assert_array_equal(loaded.predict(X[:5], params=few), policy.decide(X[:5], **few))
    assert type(fw.mlflow.load_model("model")) is type(policy)


def test_nothing_in_a_model_is_pickled_and_requirements_are_pinned(mlflow, tmp_path):
    X = frame()
    policy = fw.DecoupledLearner(PROBLEM, fw.NeighborPredictor(9)).fit(X, 9 + X["heat"]).policy_
    fw.mlflow.save_model(policy, "model", input_example=X[:3])
    names = [path.name for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".pt", ".joblib"))]
    lines = (tmp_path / "model" / "requirements.txt").read_text().split()
    assert f"forewise=={fw.__version__}" in lines
    assert all("==" in line and "+" not in line for line in lines)
    loaded = mlflow.pyfunc.load_model("model")
    assert [column.name for column in loaded.metadata.signature.inputs.inputs] == ["heat", "day"]
    pd.testing.assert_frame_equal(loaded.predict(X[:5]), policy.decide(X[:5]))


def test_given_parameters_are_columns(mlflow):
    cp = pytest.importorskip("cvxpy")
    z, y = cp.Variable(1, nonneg=True, name="order"), cp.Parameter(1, name="sold")
    room = cp.Parameter(name="room")
    cost = 3 * cp.sum(cp.pos(y - z)) + cp.sum(cp.pos(z - y))
    problem = fw.CvxpyProblem(cp.Minimize(cost), [z <= room], decision=z, outcome=y, given=room)
    X, rooms = frame(), np.linspace(20.0, 40.0, 40)
    learner = fw.DecoupledLearner(problem, fw.NeighborPredictor(9))
    policy = learner.fit(X, 9 + X["heat"], given=rooms).policy_
    asked = X.assign(room=rooms)
    fw.mlflow.save_model(policy, "model", input_example=asked[:3])
    found = mlflow.pyfunc.load_model("model").predict(asked)
    pd.testing.assert_frame_equal(found, policy.decide(X, given=rooms))
    fw.mlflow.save_model(policy, "without a signature")
    with pytest.raises(fw.ForewiseError, match="day"):
        mlflow.pyfunc.load_model("without a signature").predict(asked.drop(columns="day"))
    of_arrays = fw.DecoupledLearner(problem, fw.NeighborPredictor(9))
    of_arrays.fit(X[["heat"]].to_numpy(), 9 + X["heat"].to_numpy(), given=rooms)
    with pytest.raises(fw.InvalidInputError, match="data frame"):
        fw.mlflow.save_model(of_arrays.policy_, "other")


@pytest.mark.parametrize("kept", [True, False], ids=["past in the model", "past in the table"])
def test_a_planners_policy_decides_alike(mlflow, kept):
    table = sales_table(56)
    last = table["date"] == table["date"].max()
    past, future = table[~last], table[last].drop(columns="sales")
    planner = fw.Planner(
        PROBLEM, outcome="sales", date="date", series="store", known="promotion", closed="closed",
        learner=fw.EmpiricalPredictor(), n_scenarios=16,
    )  # fmt: skip
    policy = planner.fit(past).policy_
    fw.mlflow.save_model(policy, "model", past=past if kept else None)
    asked = future if kept else pd.concat([past, future])
    found = mlflow.pyfunc.load_model("model").predict(asked)
    wanted = policy.decide(past, future=future)
    assert list(found.columns) == list(wanted.columns)
    np.testing.assert_array_equal(found["decision"], wanted["decision"])


def test_a_logged_model_is_loaded_from_its_address(mlflow, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    X = np.random.default_rng(0).normal(size=(40, 2))
    policy = fw.DecoupledLearner(PROBLEM, fw.NeighborPredictor(9)).fit(X, 9 + X[:, 0]).policy_
    with mlflow.start_run():
        info = fw.mlflow.log_model(policy, "orders", input_example=X[:2])
    found = mlflow.pyfunc.load_model(info.model_uri).predict(X[:5])
    np.testing.assert_array_equal(found, policy.decide(X[:5]))
    np.testing.assert_array_equal(fw.mlflow.load_model(info.model_uri).decide(X), policy.decide(X))
