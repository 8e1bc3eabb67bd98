"""Encodings: what is made of a column, what it lets a network learn, and bad settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.predictors import FourierFeatures


def test_inputs_are_the_columns_and_their_sines_and_cosines():
    encoding = FourierFeatures(n_frequencies=3, lowest=1.0, highest=4.0)
    x = torch.tensor([[0.3, -2.0], [1.0, 0.5]])
    inputs = encoding.inputs(x)
    assert inputs.shape == (2, encoding.width(2)) == (2, 14)
    assert torch.equal(inputs[:, :2], x)
    # Frequencies 1, 2 and 4, of the first column and then of the second.
    angles = torch.stack([x[:, 0], 2 * x[:, 0], 4 * x[:, 0], x[:, 1], 2 * x[:, 1], 4 * x[:, 1]], 1)
    torch.testing.assert_close(inputs[:, 2:8], angles.sin())
    torch.testing.assert_close(inputs[:, 8:], angles.cos())
    one = FourierFeatures(1, lowest=2.0, highest=9.0).inputs(torch.tensor([[0.25]]))
    torch.testing.assert_close(one, torch.tensor([[0.25, np.sin(0.5), np.cos(0.5)]]).float())


def test_a_fast_wave_is_learned_with_the_encoding_and_not_without():
    """Ten ups and downs over the range of the column, little noise, 400 rows."""
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (400, 1))
    y = np.sin(10 * np.pi * X[:, 0]) + 0.05 * random.normal(size=400)
    contexts = np.linspace(-0.95, 0.95, 200)[:, None]
    truth = np.sin(10 * np.pi * contexts[:, 0])

    def error(encoding):
        brief = fw.Training(epochs=60, batch_size=64, learning_rate=5e-3)
        predictor = fw.PointPredictor((32, 32), encoding=encoding, training=brief, random_state=0)
        forecast = predictor.fit(X, y).sample(contexts, 1).values[:, 0, 0].numpy()
        return np.sqrt(np.mean((forecast - truth) ** 2))

    assert error(FourierFeatures(highest=25.0)) < 0.15
    assert error(None) > 0.5


def test_every_member_of_an_ensemble_sees_the_encoding():
    X = np.linspace(-1, 1, 40)[:, None]
    brief = fw.Training(epochs=1)
    member = fw.predictors.MeanFieldPredictor((4,), 2, encoding=FourierFeatures(5), training=brief)
    predictor = fw.EnsemblePredictor(member, 3, random_state=0).fit(X, X)
    assert predictor.network_.layout.sizes == (11, 4, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_frequencies": 0}, "n_frequencies must be"),
        ({"lowest": 0.0}, "lowest must be"),
        ({"highest": float("inf")}, "highest must be"),
        ({"lowest": 3.0, "highest": 2.0}, "lowest must not exceed highest"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(fw.InvalidInputError, match=message):
        FourierFeatures(**settings)
