"""Every predictor keeps the promises of the contract, scikit-learn's and our own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import forewise as fw
from forewise.testing import check_predictor

BRIEF = fw.Training(epochs=2, batch_size=16)
PREDICTORS = [
    fw.BayesianPredictor((8,), n_scenarios=3, training=BRIEF, random_state=0),
    fw.MixturePredictor(2, (8,), n_scenarios=3, training=BRIEF, random_state=0),
    fw.PointPredictor((8,), training=BRIEF, random_state=0),
    fw.GaussianPredictor((8,), training=BRIEF, random_state=0),
    fw.GaussianPredictor((8,), n_factors=2, training=BRIEF, random_state=0),
    fw.GaussianPredictor(
        (8,), encoding=fw.predictors.FourierFeatures(3), training=BRIEF, random_state=0
    ),
    fw.GaussianPredictor(
        (8,), off_support=fw.predictors.OffSupportFallback(), training=BRIEF, random_state=0
    ),
    fw.EnsemblePredictor(fw.GaussianPredictor((8,), training=BRIEF), 3, random_state=0),
    fw.EnsemblePredictor(fw.BayesianPredictor((8,), 2, training=BRIEF), 3, random_state=0),
    fw.EmpiricalPredictor(),
    fw.NeighborPredictor(),
    fw.ForestPredictor(n_trees=10),
    fw.ResidualPredictor(Ridge()),
    fw.GaussianProcessPredictor(),
    fw.GroupedPredictor(),
    fw.BoostingPredictor(n_trees=5),
    fw.QuantileBoostingPredictor((0.1, 0.5, 0.9), n_trees=5),
    fw.ResidualPredictor(fw.BoostingPredictor(n_trees=5), shuffle=False),
]
NETWORKS = [p for p in PREDICTORS if isinstance(p, fw.predictors.NetworkPredictor)]


def name(predictor):
    return type(predictor).__name__


def table(n=60, n_outcomes=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = X[:, :1] * [1.0, -2.0][:n_outcomes] + random.normal(size=(n, n_outcomes))
    return X, y


@pytest.mark.parametrize("predictor", PREDICTORS, ids=name)
@pytest.mark.parametrize("n_outcomes", [1, 2])
def test_contract(predictor, n_outcomes):
    check_predictor(predictor, *table(n_outcomes=n_outcomes))


@parametrize_with_checks(NETWORKS)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("predictor", NETWORKS, ids=name)
class TestBadInput:
    def test_nan_is_told_by_column(self, predictor):
        X, y = table()
        frame = pd.DataFrame(X, columns=["price", "rain", "day"])
        frame.loc[3, "rain"] = np.nan
        with pytest.raises(fw.InvalidInputError, match=r"X must be finite.*'rain' \(1 of 60 rows"):
            predictor.fit(frame, y)
        with pytest.raises(fw.InvalidInputError, match=r"y must be finite.*'sold'"):
            predictor.fit(X, pd.DataFrame({"sold": np.r_[np.inf, y[1:, 0]]}))

    def test_text_is_told_by_column(self, predictor):
        X, y = table()
        frame = pd.DataFrame(X, columns=["price", "rain", "day"]).assign(shop="north")
        with pytest.raises(fw.InvalidInputError, match=r"numbers in every column.*'shop'"):
            predictor.fit(frame, y)

    def test_columns_must_be_those_of_the_fit(self, predictor):
        X, y = table()
        frame = pd.DataFrame(X, columns=["price", "rain", "day"])
        predictor.fit(frame, y)
        with pytest.raises(fw.InvalidInputError, match="wind"):
            predictor.sample(frame.rename(columns={"rain": "wind"}))
        with pytest.raises(fw.InvalidInputError, match="day"):
            predictor.sample(frame[["price", "rain"]])
        predictor.fit(X, y)
        with pytest.raises(fw.InvalidInputError, match=r"2 features.*3 features"):
            predictor.sample(X[:, :2])

    def test_lengths_and_missing_y(self, predictor):
        X, y = table()
        with pytest.raises(fw.InvalidInputError, match="same number of rows"):
            predictor.fit(X, y[:-1])
        with pytest.raises(fw.InvalidInputError, match="requires y to be passed"):
            predictor.fit(X, None)
        with pytest.raises(fw.InvalidInputError, match="y_val is missing"):
            predictor.fit(X, y, X_val=X)
        with pytest.raises(fw.InvalidInputError, match=r"2 outcome\(s\) of y, but has 1"):
            predictor.fit(X, y, X_val=X, y_val=y[:, 0])


@pytest.mark.parametrize("predictor", PREDICTORS, ids=name)
def test_one_row_and_constant_outcomes(predictor):
    """Too little to learn from is either learnt as it is, or refused by name."""
    X, y = table()
    try:
        drawn = predictor.fit(X[:1], y[:1]).sample(X, 8, random_state=0)
        assert drawn.values.isfinite().all()
    except fw.InvalidInputError as error:
        assert "row" in str(error) or "sample" in str(error) or "n_neighbors" in str(error)  # noqa: PT017
    drawn = predictor.fit(X, np.full(60, 7.0)).sample(X, 8, random_state=0)
    assert drawn.values.isfinite().all()


@pytest.mark.parametrize(
    ("predictor", "told"),
    [
        (fw.BayesianPredictor(hidden_sizes=8), "hidden_sizes must be a tuple"),
        (fw.BayesianPredictor(hidden_sizes=(0,)), "hidden_sizes must be a tuple"),
        (fw.BayesianPredictor(n_scenarios=0), "n_scenarios must be a whole number"),
        (fw.BayesianPredictor(n_factors=-1), "n_factors must be a whole number of at least 0"),
        (
            fw.EnsemblePredictor(fw.GaussianPredictor(n_factors=1.5)),
            "n_factors must be a whole number of at least 0",
        ),
        (fw.PointPredictor(extrapolate="no"), "extrapolate must be True or False"),
        (fw.BayesianPredictor(kl_weight=-1), "kl_weight must be at least 0"),
        (fw.BayesianPredictor(prior_std=0), "prior_std must be a finite number above 0"),
        (fw.BayesianPredictor(training=3), "training must be a forewise.Training"),
        (fw.MixturePredictor(n_components=0), "n_components must be"),
        (fw.EnsemblePredictor(n_members=0), "n_members must be"),
        (fw.EnsemblePredictor(fw.EnsemblePredictor()), "member must be one network"),
        (fw.EnsemblePredictor(fw.ForestPredictor()), "member must be one network"),
        (fw.PointPredictor(encoding="waves"), "encoding must be an Encoding"),
    ],
)
def test_bad_settings_are_told_at_fit(predictor, told):
    with pytest.raises(fw.InvalidInputError, match=told):
        predictor.fit(*table())


def test_frames_and_tensors_are_taken_like_arrays():
    X, y = table()
    predictor = NETWORKS[0]
    frame = pd.DataFrame(X, columns=list("abc"))
    arrays = predictor.fit(X, y).sample(X, 5, random_state=1).values
    tensors = predictor.fit(torch.tensor(X), torch.tensor(y)).sample(
        torch.tensor(X), 5, random_state=1
    )
    frames = predictor.fit(frame, pd.DataFrame(y, columns=["u", "v"])).sample(
        frame, 5, random_state=1
    )
    assert torch.equal(arrays, tensors.values)
    assert torch.equal(arrays, frames.values)
    assert predictor.outcome_names_ == ["u", "v"]
