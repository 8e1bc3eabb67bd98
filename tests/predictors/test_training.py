"""The training loop: repeatable, resumable, stoppable."""

from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.predictors import CosineSchedule, ExponentialSchedule, FourierFeatures, Schedule
from forewise.predictors.networks.rows import Likelihood
from tests.predictors.interruption import interrupting


def table(n=120):
    random = np.random.default_rng(0)
    X = random.uniform(-2, 2, size=(n, 1))
    return X, np.sin(2 * X) + 0.1 * random.normal(size=(n, 1))


def predictor(**training):
    settings = {"epochs": 6, "batch_size": 32} | training
    return fw.predictors.MeanFieldPredictor(
        (16,), n_scenarios=4, training=fw.Training(**settings), random_state=1
    )


def weights(fitted):
    return fitted.network_.state_dict()


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_training_learns():
    X, y = table(400)
    fitted = predictor(epochs=150).fit(X, y)
    means = fitted.sample(X, 64, random_state=0).values.mean(1).numpy()
    assert np.mean((means - y) ** 2) < 0.1 * y.var()
    history = fitted.history_
    assert len(history) == 150
    assert history[-1]["loss"] < history[0]["loss"]


def with_figures(monkeypatch, figures):
    """Validation that gives these figures, the first before training; the weights it saw."""
    figures, seen = iter(figures), []

    def validate(self, network, epoch, generator):
        seen.append({name: value.clone() for name, value in network.state_dict().items()})
        figure = next(figures)
        return figure if isinstance(figure, dict) else {"validation": figure}

    monkeypatch.setattr(Likelihood, "validate", validate)
    return seen


def test_the_best_epoch_is_kept(monkeypatch):
    seen = with_figures(monkeypatch, [9.0, 3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    fitted = predictor().fit(*table())
    assert same(weights(fitted), seen[2])
    assert not same(seen[2], seen[-1])


def test_a_penalty_counts_in_what_is_kept(monkeypatch):
    pairs = [(3.0, 0.0), (2.0, 1.5), (2.5, 0.1), (2.4, 0.3)]
    seen = with_figures(monkeypatch, [{"validation": v, "penalty": p} for v, p in pairs])
    assert same(weights(predictor(epochs=3).fit(*table())), seen[2])


def test_training_that_makes_it_worse_changes_nothing(monkeypatch):
    """What another training left behind is a candidate too."""
    seen = with_figures(monkeypatch, [1.0, *[2.0] * 6])
    assert same(weights(predictor().fit(*table())), seen[0])


def test_patience_stops(monkeypatch):
    with_figures(monkeypatch, [9.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    assert len(predictor(patience=3).fit(*table()).history_) == 4


def test_given_validation_rows_are_used_and_none_are_split_off():
    X, y = table()
    fitted = predictor().fit(X, y, X_val=X[:5], y_val=y[:5])
    assert fitted.outcome_mean_ == pytest.approx(y.mean(0))
    assert "validation" in fitted.history_[0]
    assert "validation" not in predictor(validation_share=0).fit(X, y).history_[0]


def test_ctrl_c_keeps_the_best_weights_so_far_if_asked_to(tmp_path, monkeypatch):
    interrupting(monkeypatch, after=3)
    settings = {"on_interrupt": "keep_best", "checkpoint": tmp_path / "checkpoint"}
    with pytest.warns(UserWarning, match="after 3 of 6 epochs"):
        fitted = predictor(**settings).fit(*table())
    assert [record.get("interrupted") for record in fitted.history_] == [None, None, 1.0]
    assert fitted.sample([[0.0]], 4, random_state=0).values.isfinite().all()
    assert not (tmp_path / "checkpoint").exists()


def test_ctrl_c_before_the_first_epoch_has_ended_leaves_nothing_to_keep(monkeypatch):
    interrupting(monkeypatch, after=0)
    with pytest.raises(KeyboardInterrupt):
        predictor(on_interrupt="keep_best").fit(*table())


SCRIPT = """
import signal
import sys
import numpy as np
import forewise as fw

def fit(checkpoint):
    X = np.linspace(-2, 2, 200)[:, None]
    training = fw.Training(epochs=40, batch_size=16, checkpoint=checkpoint)
    predictor = fw.predictors.MeanFieldPredictor((16,), 4, training=training, random_state=5)
    learner = fw.CombinedLearner(fw.Newsvendor(1.0, 9.0), predictor, pretraining=False)
    return learner.fit(X, np.sin(3 * X) + 3).policy_

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    fit(sys.argv[1]).save(sys.argv[2])
"""


def test_a_script_that_ctrl_c_ends_goes_on_to_the_same_bits_in_another_process(tmp_path):
    checkpoint, policy = tmp_path / "checkpoint", tmp_path / "policy"
    header = checkpoint / "header.json"

    def start():
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, checkpoint, policy],
            stderr=subprocess.PIPE,
            text=True,
        )

    script = start()
    while not header.exists():
        assert script.poll() is None, script.stderr.read()
        time.sleep(0.005)
    script.send_signal(signal.SIGINT)
    _, errors = script.communicate(timeout=60)
    assert script.returncode in (-signal.SIGINT, 130)
    assert "KeyboardInterrupt" in errors
    assert header.exists()
    assert not policy.exists()

    script = start()
    _, errors = script.communicate(timeout=60)
    assert script.returncode == 0, errors
    assert not checkpoint.exists()
    names = {"__name__": "here"}
    exec(SCRIPT, names)
    undisturbed, resumed = names["fit"](None), fw.load_policy(policy)
    assert same(weights(undisturbed.predictor), weights(resumed.predictor))
    assert undisturbed.predictor.history_ == resumed.predictor.history_
    assert len(resumed.predictor.history_) == 40
    contexts = np.linspace(-2, 2, 90)[:, None]
    assert np.array_equal(undisturbed.decide(contexts), resumed.decide(contexts))


class Killed(BaseException):
    """Nobody catches it, as nobody catches kill -9."""


@pytest.mark.parametrize(("killed_after", "by"), [(1, Killed), (4, Killed), (3, KeyboardInterrupt)])
def test_a_killed_fit_resumes_to_the_same_bits(tmp_path, monkeypatch, killed_after, by):
    undisturbed = predictor().fit(*table())
    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patch:
        interrupting(patch, killed_after, error=by)
        with pytest.raises(by):
            predictor(checkpoint=folder).fit(*table())
    assert (folder / "header.json").exists()
    resumed = predictor(checkpoint=folder).fit(*table())
    assert same(weights(resumed), weights(undisturbed))
    assert resumed.history_ == undisturbed.history_
    assert not folder.exists()


DEFAULTS = {
    "default": {},
    "mean field": {"inference": fw.predictors.MeanField()},
    "normal": {"head": fw.predictors.NormalHead()},
    "linear": {"embedding": fw.predictors.LinearEmbedding()},
}


def default_network(name, rows=None, folder=None, **changes):
    """The default Bayesian network, or an ensemble of it, fitted."""
    settings = {"hidden_sizes": (8,), "n_members": 3, "random_state": 1} | changes
    share = settings.pop("validation_share", None)
    training = fw.Training(epochs=4, batch_size=32, checkpoint=folder, validation_share=share)
    network = fw.BayesianPredictor(**settings, training=training, **DEFAULTS.get(name, {}))
    if name == "ensemble":
        network = fw.EnsemblePredictor(network, 2, random_state=1)
    return network.fit(*(rows or table()))


@pytest.mark.parametrize("name", [*DEFAULTS, "ensemble"])
def test_the_default_network_resumes_to_the_same_bits(name, tmp_path, monkeypatch):
    undisturbed, folder = default_network(name), tmp_path / "checkpoint"
    interrupted(monkeypatch, lambda: default_network(name, folder=folder))
    assert (folder / "header.json").exists()
    resumed = default_network(name, folder=folder)
    assert same(weights(resumed), weights(undisturbed))
    assert resumed.history_ == undisturbed.history_
    drawn = [one.sample(table()[0], 9, random_state=0).values for one in (resumed, undisturbed)]
    assert torch.equal(*drawn)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("predictor.n_members", {"n_members": 2}),
        ("predictor.inference", {"inference": fw.predictors.LastLayer(prior_std=2.0)}),
        ("predictor.head", {"head": fw.predictors.QuantileHead((0.1, 0.5, 0.9))}),
        ("predictor.embedding", {"embedding": fw.predictors.PeriodicEmbedding(clip=2.0)}),
        ("predictor.extrapolate", {"extrapolate": 0.2}),
        ("training.validation_share", {"validation_share": 0.3}),
        ("the training rows", {"rows": (lambda X, y: (X, np.nextafter(y, 9)))(*table())}),
    ],
)
def test_the_default_network_refuses_another_fit_s_checkpoint(part, changes, tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    interrupted(monkeypatch, lambda: default_network("default", folder=folder))
    with pytest.raises(fw.exceptions.StorageError, match=f"{part}.*delete the folder"):
        default_network("default", folder=folder, **changes)


def moved(values, row):
    """The same table with one number in the middle changed by the least there is."""
    values = values.copy()
    values[row] = np.nextafter(values[row], np.inf)
    return values


X_VAL, Y_VAL = table(30)
OTHER_FITS = {
    "training.learning_rate": {"training": {"learning_rate": 0.1}},
    "training.epochs": {"training": {"epochs": 7}},
    "training.schedule": {"training": {"schedule": CosineSchedule(last=0.02)}},
    "predictor.kl_weight": {"predictor": {"kl_weight": 0.011}},
    "predictor.hidden_sizes": {"predictor": {"hidden_sizes": (17,)}},
    "predictor.encoding": {"predictor": {"encoding": FourierFeatures(2)}},
    "random_state": {"predictor": {"random_state": 2}},
    "the training rows": {"rows": (moved(table()[0], 60), table()[1])},
    "the validation rows": {"validation": (X_VAL, Y_VAL + 0.01)},
}


def interrupted(monkeypatch, fit):
    """A fit that Ctrl-C ended after two epochs."""
    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        with pytest.raises(KeyboardInterrupt):
            fit()


def of_rows(rows=None, validation=(X_VAL, Y_VAL), predictor=None, training=None):
    settings = {"hidden_sizes": (16,), "n_scenarios": 4, "random_state": 1} | (predictor or {})
    training = fw.Training(**{"epochs": 6, "batch_size": 32} | (training or {}))
    return fw.predictors.MeanFieldPredictor(**settings, training=training).fit(
        *(rows or table()), *validation
    )


@pytest.mark.parametrize("part", OTHER_FITS)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, monkeypatch, part):
    """Whatever is different is named; nothing else is."""
    kept = {"checkpoint": tmp_path / "checkpoint"}
    interrupted(monkeypatch, lambda: of_rows(training=kept))
    other = OTHER_FITS[part]
    with pytest.raises(fw.exceptions.StorageError, match=f"{part}.*delete the folder") as caught:
        of_rows(**other | {"training": kept | other.get("training", {})})
    # A network of another size or seed starts from other weights, too.
    named = str(caught.value).split("differs in ")[1].split(":")[0].split(", ")
    assert set(named) - {"the weights that training starts from"} <= {part, "the validation rows"}


def test_what_changes_nothing_may_change_when_a_fit_resumes(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    interrupted(monkeypatch, lambda: of_rows(training={"checkpoint": folder}))
    moved_folder = folder.rename(tmp_path / "elsewhere")
    changed = {"checkpoint": moved_folder, "progress": True, "on_interrupt": "keep_best"}
    assert same(weights(of_rows(training=changed)), weights(of_rows()))


def test_a_checkpoint_knows_every_weight_and_not_what_is_printed_of_them(tmp_path, monkeypatch):
    """A tensor prints its first and last numbers; those between count as well."""
    settings = fw.Training(epochs=6, batch_size=32, checkpoint=tmp_path / "checkpoint")

    def go(shift):
        own = fw.GaussianPredictor((256,), training=settings, random_state=0)
        rows, validation = own.prepare(*table())
        with torch.no_grad():
            own.network_.weights.value[0, 500] += shift
        own.train(own.likelihood(rows, validation), rows, settings)

    interrupted(monkeypatch, lambda: go(0.0))
    with pytest.raises(fw.exceptions.StorageError, match="the weights that training starts from"):
        go(0.5)
    go(0.0)


def test_a_fit_without_a_seed_says_why_it_cannot_resume(tmp_path, monkeypatch):
    kept = {"predictor": {"random_state": None}, "training": {"checkpoint": tmp_path / "folder"}}
    interrupted(monkeypatch, lambda: of_rows(**kept))
    with pytest.raises(fw.exceptions.StorageError, match="it is None"):
        of_rows(**kept)


def test_what_has_no_digest_is_refused_before_training(tmp_path):
    class Own(Schedule):
        def factor(self, epoch, epochs):
            return 1.0

    settings = {"schedule": Own(), "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(fw.exceptions.StorageError, match=r"Own.*training\.schedule"):
        predictor(**settings).fit(*table())


def test_a_loss_that_is_not_finite_is_reported():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((fw.InvalidInputError, UserWarning), match=r"smaller learning_rate"):
            predictor(learning_rate=1e18, epochs=50, max_gradient_norm=1e30).fit(X, y)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epochs": 0},
        {"batch_size": 2.5},
        {"patience": 0},
        {"learning_rate": -1},
        {"learning_rate": math.nan},
        {"max_gradient_norm": 0},
        {"weight_decay": -0.1},
        {"validation_share": 1.0},
        {"schedule": 0.99},
        {"on_interrupt": "return"},
    ],
)
def test_bad_settings(arguments):
    with pytest.raises(fw.InvalidInputError, match=f"{next(iter(arguments))} must be"):
        fw.Training(**arguments)


def test_schedules():
    cosine = CosineSchedule(last=0.1, warm_up=0.1)
    factors = [cosine.factor(epoch, 100) for epoch in range(100)]
    assert max(factors) == pytest.approx(1.0)
    assert factors[-1] == pytest.approx(0.1)
    assert factors[0] < 0.2
    assert all(a >= b for a, b in itertools.pairwise(factors[10:]))
    assert ExponentialSchedule(0.5).factor(3, 10) == pytest.approx(0.125)
    with pytest.raises(fw.InvalidInputError, match="rate must be"):
        ExponentialSchedule(1.5)
    with pytest.raises(fw.InvalidInputError, match="warm_up must be"):
        CosineSchedule(warm_up=2)
