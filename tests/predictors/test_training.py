"""The training loop: repeatable, resumable, stoppable."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch

import forewise as fw
from forewise.predictors.networks import training as loop
from tests.predictors.interruption import interrupting


def table(n=120):
    random = np.random.default_rng(0)
    X = random.uniform(-2, 2, size=(n, 1))
    return X, np.sin(2 * X) + 0.1 * random.normal(size=(n, 1))


def predictor(**training):
    settings = {"epochs": 6, "batch_size": 32} | training
    return fw.BayesianPredictor(
        (16,), n_scenarios=4, training=fw.Training(**settings), random_state=1
    )


def weights(fitted):
    return fitted.network_.state_dict()


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_training_learns():
    X, y = table(400)
    fitted = predictor(epochs=150).fit(X, y)
    means, _ = fitted._moments(X, 64)
    assert np.mean((means.mean(0) - y) ** 2) < 0.1 * y.var()
    history = fitted.history_
    assert len(history) == 150
    assert history[-1]["loss"] < history[0]["loss"]


def test_the_best_epoch_is_kept(monkeypatch):
    figures = iter([9.0, 3.0, 1.0, 2.0, 5.0, 4.0, 6.0])  # the first before training
    kept = []

    def validate(self, network, epoch, generator):
        kept.append({name: value.clone() for name, value in network.state_dict().items()})
        return {"validation": next(figures)}

    monkeypatch.setattr("forewise.predictors.networks.base.Likelihood.validate", validate)
    fitted = predictor().fit(*table())
    assert same(weights(fitted), kept[2])
    assert not same(kept[2], kept[-1])


def test_doubt_counts_in_what_is_kept(monkeypatch):
    figures = iter([(3.0, 0.0), (2.0, 1.5), (2.5, 0.1), (2.4, 0.3)])  # the first before training
    kept = []

    def validate(self, network, epoch, generator):
        kept.append({name: value.clone() for name, value in network.state_dict().items()})
        return dict(zip(("validation", "penalty"), next(figures), strict=True))

    monkeypatch.setattr("forewise.predictors.networks.base.Likelihood.validate", validate)
    assert same(weights(predictor(epochs=3).fit(*table())), kept[2])


def test_training_that_makes_it_worse_changes_nothing(monkeypatch):
    """What another training left behind is a candidate too."""
    figures = iter([1.0, *[2.0] * 6])
    monkeypatch.setattr(
        "forewise.predictors.networks.base.Likelihood.validate",
        lambda self, network, epoch, generator: {"validation": next(figures)},
    )
    unfitted = predictor()
    rows, validation = unfitted.prepare(*table())
    before = {name: value.clone() for name, value in weights(unfitted).items()}
    unfitted.train(unfitted.likelihood(rows, validation), rows, fw.Training(epochs=6))
    assert same(weights(unfitted), before)


def test_patience_stops(monkeypatch):
    figures = iter([9.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    monkeypatch.setattr(
        "forewise.predictors.networks.base.Likelihood.validate",
        lambda self, network, epoch, generator: {"validation": next(figures)},
    )
    assert len(predictor(patience=3).fit(*table()).history_) == 4


def test_given_validation_rows_are_used_and_none_are_split_off():
    X, y = table()
    fitted = predictor().fit(X, y, X_val=X[:5], y_val=y[:5])
    assert fitted.outcome_mean_ == pytest.approx(y.mean(0))
    assert "validation" in fitted.history_[0]
    assert "validation" not in predictor(validation_share=0).fit(X, y).history_[0]


def test_ctrl_c_ends_the_fit_and_the_next_one_goes_on(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    undisturbed = predictor().fit(*table())
    with monkeypatch.context() as patch:
        interrupting(patch, after=3)
        with pytest.raises(KeyboardInterrupt):
            predictor(checkpoint=folder).fit(*table())
    assert (folder / "header.json").exists()
    resumed = predictor(checkpoint=folder).fit(*table())
    assert same(weights(resumed), weights(undisturbed))
    assert resumed.history_ == undisturbed.history_


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
import sys
import numpy as np, forewise as fw
checkpoint, policy = sys.argv[1:]
X = np.linspace(-2, 2, 400)[:, None]; y = np.sin(3 * X) + 3
training = fw.Training(epochs=60, batch_size=16, checkpoint=checkpoint)
predictor = fw.BayesianPredictor((16,), n_scenarios=4, training=training, random_state=5)
fw.DecoupledLearner(fw.Newsvendor(1.0, 9.0), predictor).fit(X, y).policy_.save(policy)
"""


def test_ctrl_c_ends_a_script_which_goes_on_to_the_same_bits(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(checkpoint, policy):
        command = [sys.executable, "-c", SCRIPT, tmp_path / checkpoint, tmp_path / policy]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    interrupted = start("checkpoint", "policy")
    header = tmp_path / "checkpoint" / "header.json"
    while not header.exists():
        assert interrupted.poll() is None, interrupted.stderr.read()
        time.sleep(0.005)
    interrupted.send_signal(signal.SIGINT)
    _, told = interrupted.communicate(timeout=60)
    assert interrupted.returncode in (-signal.SIGINT, 130)
    assert "KeyboardInterrupt" in told
    assert header.exists()
    assert not (tmp_path / "policy").exists()

    for checkpoint, policy in (("checkpoint", "policy"), ("another", "undisturbed")):
        running = start(checkpoint, policy)
        _, told = running.communicate(timeout=60)
        assert running.returncode == 0, told
        assert not (tmp_path / checkpoint).exists()
    policies = [fw.load_policy(tmp_path / name) for name in ("policy", "undisturbed")]
    assert same(*(weights(policy.predictor) for policy in policies))
    assert policies[0].predictor.history_ == policies[1].predictor.history_
    assert len(policies[0].predictor.history_) == 60


@pytest.mark.parametrize("killed_after", [1, 4])
def test_a_killed_fit_resumes_to_the_same_bits(tmp_path, monkeypatch, killed_after):
    undisturbed = predictor().fit(*table())
    original, calls = loop._epoch, []

    class Killed(BaseException):
        """Nobody catches it, as nobody catches kill -9."""

    def dying(*arguments):
        calls.append(1)
        if len(calls) > killed_after:
            raise Killed
        return original(*arguments)

    folder = tmp_path / "checkpoint"
    monkeypatch.setattr(loop, "_epoch", dying)
    with pytest.raises(Killed):
        predictor(checkpoint=folder).fit(*table())
    assert (folder / "header.json").exists()
    monkeypatch.setattr(loop, "_epoch", original)
    resumed = predictor(checkpoint=folder).fit(*table())
    assert same(weights(resumed), weights(undisturbed))
    assert resumed.history_ == undisturbed.history_
    assert not folder.exists()


def moved(values, row):
    """The same table with one number in the middle changed by the least there is."""
    values = values.copy()
    values[row] = np.nextafter(values[row], np.inf)
    return values


X_VAL, Y_VAL = table(30)
OTHER_FITS = {
    "training.learning_rate": {"training": {"learning_rate": 0.1}},
    "training.epochs": {"training": {"epochs": 7}},
    "training.schedule": {"training": {"schedule": fw.predictors.CosineSchedule(last=0.02)}},
    "predictor.kl_weight": {"predictor": {"kl_weight": 0.011}},
    "predictor.hidden_sizes": {"predictor": {"hidden_sizes": (17,)}},
    "predictor.encoding": {"predictor": {"encoding": fw.predictors.FourierFeatures(2)}},
    "random_state": {"predictor": {"random_state": 2}},
    "the training rows": {"rows": (moved(table()[0], 60), table()[1])},
    "the validation rows": {"validation": (X_VAL, Y_VAL + 0.01)},
}


def of_rows(rows=None, validation=(X_VAL, Y_VAL), predictor=None, training=None):
    settings = {"hidden_sizes": (16,), "n_scenarios": 4, "random_state": 1} | (predictor or {})
    training = fw.Training(**{"epochs": 6, "batch_size": 32} | (training or {}))
    return fw.BayesianPredictor(**settings, training=training).fit(*(rows or table()), *validation)


@pytest.mark.parametrize("part", OTHER_FITS)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, monkeypatch, part):
    """Whatever is different is named; nothing else is."""
    kept = {"checkpoint": tmp_path / "checkpoint"}
    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        with pytest.raises(KeyboardInterrupt):
            of_rows(training=kept)
    other = OTHER_FITS[part]
    with pytest.raises(fw.exceptions.StorageError, match=f"{part}.*delete the folder") as caught:
        of_rows(**other | {"training": kept | other.get("training", {})})
    # A network of another size or seed starts from other weights, too.
    named = str(caught.value).split("differs in ")[1].split(":")[0].split(", ")
    assert set(named) - {"the weights that training starts from"} <= {part, "the validation rows"}


def test_what_changes_nothing_may_change_when_a_fit_resumes(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        with pytest.raises(KeyboardInterrupt):
            of_rows(training={"checkpoint": folder})
    moved_folder = folder.rename(tmp_path / "elsewhere")
    changed = {"checkpoint": moved_folder, "progress": True, "on_interrupt": "keep_best"}
    assert same(weights(of_rows(training=changed)), weights(of_rows()))


def test_a_checkpoint_marks_every_weight_and_not_what_is_printed_of_them(tmp_path, monkeypatch):
    """A tensor prints its first and last numbers; those between count as well."""
    settings = fw.Training(epochs=6, batch_size=32, checkpoint=tmp_path / "checkpoint")

    def go(shift):
        own = fw.GaussianPredictor((256,), training=settings, random_state=0)
        rows, validation = own.prepare(*table())
        with torch.no_grad():
            own.network_.weights.value[0, 500] += shift
        own.train(own.likelihood(rows, validation), rows, settings)

    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        with pytest.raises(KeyboardInterrupt):
            go(0.0)
    with pytest.raises(fw.exceptions.StorageError, match="the weights that training starts from"):
        go(0.5)
    go(0.0)


def test_a_fit_without_a_seed_says_why_it_cannot_resume(tmp_path, monkeypatch):
    kept = {"predictor": {"random_state": None}, "training": {"checkpoint": tmp_path / "folder"}}
    with monkeypatch.context() as patch:
        interrupting(patch, after=2)
        with pytest.raises(KeyboardInterrupt):
            of_rows(**kept)
    with pytest.raises(fw.exceptions.StorageError, match="it is None"):
        of_rows(**kept)


def test_what_has_no_mark_is_refused_before_training(tmp_path):
    class Own(fw.predictors.Schedule):
        def factor(self, epoch, epochs):
            return 1.0

    settings = {"schedule": Own(), "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(fw.exceptions.StorageError, match=r"Own.*training\.schedule"):
        predictor(**settings).fit(*table())


def test_a_loss_that_is_not_finite_is_told():
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((fw.InvalidInputError, UserWarning), match=r"smaller learning_rate"):
            predictor(learning_rate=1e18, epochs=50, max_gradient_norm=1e30).fit(X, y)


def test_same_seed_in_two_fresh_processes_gives_the_same_bits():
    code = (
        "import hashlib, numpy as np, forewise as fw\n"
        "X = np.linspace(-2, 2, 90)[:, None]; y = np.sin(3 * X)\n"
        "learner = fw.CombinedLearner(fw.Newsvendor(1.0, 9.0), fw.BayesianPredictor((16,),"
        " training=fw.Training(epochs=3), random_state=5)).fit(X, y)\n"
        "state = learner.policy_.predictor.network_.state_dict()\n"
        "digest = hashlib.sha256(b''.join(v.numpy().tobytes() for v in state.values()))\n"
        "digest.update(learner.decide(X).tobytes()); print(digest.hexdigest())\n"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env=environment,
        ).stdout
        for _ in range(2)
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        ({"patience": 0}, "patience must be"),
        ({"learning_rate": -1}, "learning_rate must be positive"),
        ({"learning_rate": math.nan}, "learning_rate must be positive"),
        ({"max_gradient_norm": 0}, "max_gradient_norm must be positive"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0"),
        ({"validation_share": 1.0}, "validation_share must be"),
        ({"schedule": 0.99}, "schedule must be a Schedule"),
        ({"on_interrupt": "return"}, "on_interrupt must be"),
    ],
)
def test_bad_settings(arguments, told):
    with pytest.raises(fw.InvalidInputError, match=told):
        fw.Training(**arguments)


def test_schedules():
    cosine = fw.predictors.CosineSchedule(last=0.1, warm_up=0.1)
    factors = [cosine.factor(epoch, 100) for epoch in range(100)]
    assert max(factors) == pytest.approx(1.0)
    assert factors[-1] == pytest.approx(0.1)
    assert factors[0] < 0.2
    assert all(a >= b for a, b in itertools.pairwise(factors[10:]))
    assert fw.predictors.ExponentialSchedule(0.5).factor(3, 10) == pytest.approx(0.125)
    with pytest.raises(fw.InvalidInputError, match="rate must be"):
        fw.predictors.ExponentialSchedule(1.5)
    with pytest.raises(fw.InvalidInputError, match="warm_up must be"):
        fw.predictors.CosineSchedule(warm_up=2)
