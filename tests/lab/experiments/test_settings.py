"""Settings files: what they say, what they may not say, and how they are put together."""

from __future__ import annotations

import pytest

from forewise.exceptions import InvalidInputError
from forewise_lab.experiments.configuration import load_settings
from forewise_lab.experiments.fits import all_fits
from forewise_lab.experiments.methods import paper_kl_weight
from tests.lab.experiments.tiny import TEXT, tiny_settings, write

PAPER_METHODS = {"d-ann", "d-gp", "d-bnn", "c-ann", "c-bnn"}
TABLE1 = ("nv1", "nv2", "nvqp", "pop", "pop2", "pop2-strict")


@pytest.fixture(scope="module")
def shipped():
    return load_settings()


def test_table_1_is_complete(shipped):
    assert shipped.files["table1"] == TABLE1
    for name in TABLE1:
        assert set(shipped.experiments[name].methods) >= PAPER_METHODS
    assert "equal-weights" in shipped.experiments["pop2-strict"].methods
    fits = all_fits(shipped, ["table1"], PAPER_METHODS, range(5))
    assert len(fits) == 6 * 5 * 5
    assert len({tuple(fit.columns().values()) for fit in fits}) == len(fits)


def test_table_2_has_the_papers_six_pairs(shipped):
    fits = all_fits(shipped, ["table2"], ["c-bnn"], [0])
    pairs = [(fit.m_train, m) for fit in fits for m in fit.ms]
    assert pairs == [(4, 8), (8, 8), (8, 16), (16, 16), (16, 32), (16, 64)]
    figures = shipped.experiments["table2"].paper
    assert {(f.m_train, f.m) for f in figures} == set(pairs)


@pytest.mark.parametrize(
    ("experiment", "method", "epochs", "batch_size", "learning_rate", "keep"),
    [
        ("nv1", "d-bnn", 350, 32, 0.0015, "best"),
        ("nvqp", "c-bnn", 350, 256, 0.002, "best"),
        ("pop", "d-bnn", 150, 128, 0.0007, "best"),
        ("pop", "c-bnn", 150, 128, 0.0004, "best"),
        ("pop", "c-ann", 100, 128, 0.001, "best"),
        ("pop2", "d-ann", 100, 128, 0.00005, "best"),
        ("pop2-strict", "c-bnn", 150, 128, 0.0001, "best"),
    ],
)
def test_the_papers_settings(shipped, experiment, method, epochs, batch_size, learning_rate, keep):
    found = shipped.method(experiment, method)
    assert found.training["epochs"] == epochs
    assert found.training["batch_size"] == batch_size
    assert found.training["learning_rate"] == learning_rate
    assert found.training["schedule"] == {"kind": "exponential", "rate": 0.99}
    assert found.keep == keep


def test_later_settings_win(tmp_path):
    settings = tiny_settings(tmp_path)
    plain, cosine = settings.method("all", "bnn"), settings.method("all", "bnn-cosine")
    assert plain.training["epochs"] == 2  # the experiment's
    assert plain.training["schedule"] == {"kind": "exponential", "rate": 0.99}  # the method's
    assert cosine.training["epochs"] == 1  # this experiment's for this method
    assert cosine.training["schedule"] == {"kind": "cosine"}  # of another kind: replaced whole
    assert cosine.training["learning_rate"] == 0.003
    assert cosine.predictor == plain.predictor  # taken over
    assert cosine.title == "bnn-cosine"


def test_headline_of_a_method_with_its_own_m(tmp_path):
    settings = tiny_settings(tmp_path)
    assert settings.headline("small", "bnn") == (30, 2, 8)
    assert settings.headline("small", "knn") == (30, 2, 16)


def test_the_hash_is_of_what_matters(tmp_path):
    def hash_of(text, method="bnn"):
        settings = tiny_settings(tmp_path, text)
        return all_fits(settings, ["all"], [method], [0])[0].config_hash

    before = hash_of(TEXT)
    assert hash_of(TEXT.replace("scale = 0.1", "scale = 2.0")) == before
    assert hash_of(TEXT.replace('title = "All"', 'title = "Else"')) == before
    assert hash_of(TEXT.replace("epochs = 2,", "epochs = 3,")) != before
    assert hash_of(TEXT.replace("draws = 50", "draws = 60")) != before
    # A method without a network does not care for how networks are trained.
    assert hash_of(TEXT, "saa") == hash_of(TEXT.replace("epochs = 2,", "epochs = 3,"), "saa")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("headline = [2, 8]", "headlines = [2, 8]", r"tiny.toml: \[experiments.small\] headlines"),
        ("headline = [2, 8]", "headline = [2, 9]", r"\[experiments.small\] headline: must be one"),
        ("n_train = [30]", "n_train = [0]", r"\[experiments.small.n_train\] 0: .* greater than"),
        ('name = "nv"', 'name = "nvv"', r"\[experiments.small.problem\] name: must be one of nv,"),
        ('name = "nv1"', 'name = "nv9"', r"\[experiments.small.dataset\] name: must be one of"),
        ('"CRPS"', '"CRPZ"', r"\[experiments.small.metrics\] 5: must be one of R, FR"),
        ("epochs = 2,", "epoch = 2,", r"\[experiments.small\] .* training: epoch is .* epochs\?"),
        ("epochs = 2,", "epochs = 0,", r"epochs must be"),
        ('kind = "neighbor"', 'kind = "neighbour"', r"predictor: kind must be one of"),
        ("n_neighbors", "n_neighbours", r"n_neighbours is not a setting .* mean n_neighbors\?"),
        ('kind = "neighbor", n_neighbors = 5', 'kind = "ensemble", member = { kind = "forest" }',
         r"predictor.member: kind must be one of bayesian, gaussian, mixture, point"),
        ('kind = "neighbor", n_neighbors = 5',
         'kind = "ensemble", member = { kind = "gaussian", n_factor = 1 }',
         r"predictor.member: n_factor is not a setting .* mean n_factors\?"),
        ('kind = "neighbor", n_neighbors = 5', 'kind = "point", encoding = { kind = "waves" }',
         r"predictor.encoding: kind must be one of periodic"),
        ('kind = "neighbor", n_neighbors = 5',
         'kind = "point", encoding = { kind = "periodic", high = 3 }',
         r"predictor.encoding: high is not a setting .* mean highest\?"),
        ('kind = "neighbor", n_neighbors = 5', 'kind = "gaussian", off_support = { reech = 3 }',
         r"predictor.off_support: reech is not a setting .* mean reach\?"),
        ('kind = "exponential"', 'kind = "exp"', r"training.schedule: kind must be one of cosine"),
        ('kind = "direct"', 'kind = "directly"', r"learner: kind must be one of decoupled"),
        ("{ paper = 1.0 }, prior", "{ papers = 1.0 }, prior", r"predictor.kl_weight: papers"),
        ('"five"]\n\n[experiments.small.n', '"fiv"]\n\n[experiments.small.n', r"mean five\?"),
        ('like = "bnn"', 'like = "bnnn"', r"\[methods.bnn-cosine\] like: must be another .* bnn"),
        ('like = "small"', 'like = "smal"', r"\[experiments.all\] like: .* did you mean small"),
        ('like = "small"', 'like = "all"', r"\[experiments.all\] like: must be another"),
        ("oracle = { draws = 50, few_draws = 8 }", "", r"oracle: is missing, but needed for EFR"),
        ("[methods.saa]", "[method.saa]", r"\[method\] must be one of \[methods.NAME\]"),
        ("[methods.saa]", "[methods]\nsaa = 3\n[methods.x]", r"'saa' is none"),
        ("[methods.saa]", "[methods.saa", r"tiny.toml: cannot be read as TOML"),
        (", decision = [5.0]", "", r"decision is missing"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_file_table_and_key(tmp_path, old, new, message):
    assert old in TEXT
    with pytest.raises(InvalidInputError, match=message):
        tiny_settings(tmp_path, TEXT.replace(old, new))


def test_two_files_must_not_define_the_same(tmp_path):
    first, second = write(tmp_path, TEXT), write(tmp_path, TEXT, "other.toml")
    with pytest.raises(InvalidInputError, match=r"other.toml: \[methods.saa\] is defined in"):
        load_settings(first, second)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InvalidInputError, match="there is no such settings file"):
        load_settings(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("batch_size", "n_rows", "n_outcomes", "n_weights", "known"),
    [(32, 1800, 1, 3330, 0.005), (256, 4000, 6, 86284, 0.009), (128, 1500, 15, 88094, 0.011)],
)
def test_paper_kl_weight_agrees_with_what_was_measured(
    batch_size, n_rows, n_outcomes, n_weights, known
):
    """The weights that the authors' own networks were found to have, NV, NVQP and POP."""
    weight = paper_kl_weight(
        1.0, n_rows=n_rows, batch_size=batch_size, n_outcomes=n_outcomes, n_weights=n_weights
    )
    assert weight == pytest.approx(known, abs=0.0005)
