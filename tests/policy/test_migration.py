"""Policies that older versions of the format stored load and decide as they did."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import forewise as fw
from forewise.storage import read_folder, write_folder

PAPER = Path(__file__).parents[2] / "lab/results/paper/policies/nv1-panels/seed0"
X = np.random.default_rng(0).normal(size=(40, 2))
y = 5 + X + np.random.default_rng(1).normal(size=(40, 2))
# By present names: classes, arguments of any class or of one, and fitted attributes.
OLD_NAMES = {
    "OffSupportFallback": "Caution",
    "ClarabelEngine": "Clarabel",
    "DualSearchSolver": "DualSearch",
    "InteriorPointSolver": "InteriorPoint",
    "MoreauEngine": "Moreau",
    "FourierFeatures": "PeriodicEncoding",
    "WeightedQuantileSolver": "WeightedQuantile",
    "MeanFieldPredictor": "BayesianPredictor",
    "off_support": "caution",
    "quantile": "usual",
    "typical_distance_": "usual_distance_",
}

OLD_HEADER = ("BayesianPredictor", "Caution", "usual", "usual_distance_", "caution")


@pytest.mark.skipif(not PAPER.exists(), reason="no stored results here")
@pytest.mark.parametrize(
    ("name", "decided"),
    [
        ("C-BNN", [4.787532244458841, 6.526760433505029]),
        ("D-ANN", [5.591750732321077, 7.215925993749218]),
    ],
)
def test_a_policy_of_the_paper_decides_as_the_revision_before_the_renaming(name, decided):
    policy = fw.load_policy(PAPER / name)
    assert policy.decide([[0.2], [0.8]]).ravel() == pytest.approx(decided, rel=1e-6)


def as_version_1(folder: Path) -> None:
    """Write a stored policy anew, under the names of version 1."""

    def renamed(tree):
        if isinstance(tree, list):
            return [renamed(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        moved = {OLD_NAMES.get(key, key): renamed(item) for key, item in tree.items()}
        if "class" in tree:
            moved["class"] = OLD_NAMES.get(tree["class"], tree["class"])
        return moved

    version, content = read_folder(folder, kind="policy", versions=[3])
    assert version == 3
    shutil.rmtree(folder)
    write_folder(folder, renamed(content), kind="policy", version=1)


@pytest.mark.parametrize(
    "solver",
    [
        fw.AutoSolver(conic=fw.solvers.ConicSolver(engine=fw.solvers.ClarabelEngine())),
        fw.AutoSolver(conic=fw.solvers.ConicSolver(engine=fw.solvers.MoreauEngine())),
        fw.solvers.WeightedQuantileSolver(),
        fw.InteriorPointSolver(smoothing=0.01),
    ],
    ids=repr,
)
def test_every_renamed_class_and_argument_is_read(tmp_path, solver):
    predictor = fw.predictors.MeanFieldPredictor(
        (4,),
        encoding=fw.predictors.FourierFeatures(2),
        off_support=fw.predictors.OffSupportFallback(0.5, 1.1),
        training=fw.Training(epochs=1),
        random_state=0,
    )
    policy = fw.policy.ScenarioPolicy(fw.Newsvendor(3, 1), predictor.fit(X, y), solver)
    policy.save(tmp_path / "policy")
    as_version_1(tmp_path / "policy")
    header = (tmp_path / "policy" / "header.json").read_text()
    assert all(f'"{name}"' in header for name in OLD_HEADER)
    loaded = fw.load_policy(tmp_path / "policy")
    assert loaded.solver == solver
    assert loaded.predictor.off_support == predictor.off_support
    assert np.array_equal(loaded.decide(X), policy.decide(X))


def test_keys_of_a_users_own_dict_are_not_renamed(tmp_path):
    policy = fw.policy.ScenarioPolicy(fw.Newsvendor(3, 1), fw.EmpiricalPredictor().fit(X, y))
    policy.predictor.notes_ = {"caution": 1, "class": "Caution"}
    policy.save(tmp_path / "policy")
    _, content = read_folder(tmp_path / "policy", kind="policy", versions=[3])
    shutil.rmtree(tmp_path / "policy")
    write_folder(tmp_path / "policy", content, kind="policy", version=1)
    loaded = fw.load_policy(tmp_path / "policy")
    assert loaded.predictor.notes_ == {"caution": 1, "class": "Caution"}


@pytest.mark.parametrize("ensemble", [False, True])
def test_what_version_2_called_bayesian_is_the_papers_network(tmp_path, ensemble):
    brief = {"training": fw.Training(epochs=1), "random_state": 0}
    predictor = fw.predictors.MeanFieldPredictor((4,), 2, 0.01, n_factors=1, **brief)
    if ensemble:
        predictor = fw.EnsemblePredictor(predictor, 2, random_state=0)
    policy = fw.policy.ScenarioPolicy(fw.Newsvendor(3, 1), predictor.fit(X, y))
    policy.save(tmp_path / "policy")
    _, content = read_folder(tmp_path / "policy", kind="policy", versions=[3])
    made = content["policy"]["settings"]["predictor"]
    if ensemble:
        made = made["settings"]["member"]
    assert made["class"] == "MeanFieldPredictor"
    made["class"] = "BayesianPredictor"
    shutil.rmtree(tmp_path / "policy")
    write_folder(tmp_path / "policy", content, kind="policy", version=2)
    loaded = fw.load_policy(tmp_path / "policy")
    assert np.array_equal(loaded.decide(X), policy.decide(X))
