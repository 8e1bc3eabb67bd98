"""Policies as MLflow models: save, log and load them, and serve them as any other model.

A model is a folder of MLflow with forewise's own folder in it: JSON and arrays, no pickle. MLflow
reads it as a Python function whose `predict` takes a data frame of rows to decide. MLflow is
imported when a function is called (``pip install "forewise[mlflow]"``, or ``mlflow-skinny``).
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from forewise import tables
from forewise.exceptions import InputTypeError, InvalidInputError, MissingDependencyError
from forewise.planner.policy import PlannerPolicy, load_policy
from forewise.policy import Policy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load_model", "log_model", "save_model"]

#: What MLflow calls these models.
FLAVOR_NAME = "forewise"
_DATA, _POLICY, _PAST = f"data/{FLAVOR_NAME}", "policy", "past.csv"


def save_model(
    policy: Policy | PlannerPolicy,
    path: str | os.PathLike[str],
    *,
    past: pd.DataFrame | None = None,
    input_example: Any = None,
    signature: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Save a policy as an MLflow model, in a new folder.

    The model's `predict` takes the rows to decide, and gives what `policy.decide` gives; the
    parameters ``n_scenarios`` and ``random_state`` may be passed as ``params``.

    Parameters
    ----------
    policy : Policy or PlannerPolicy
        Fitted: ``learner.policy_``, or ``planner.policy_``.
    path : path
    past : data frame, optional
        For a `PlannerPolicy`: past days, kept in the model, so that rows to decide are all that
        `predict` needs. Without it `predict` takes one table of past days and rows to decide.
    input_example : data frame or array, optional
        Some rows as `predict` will get them. They are decided once, for the signature.
    signature : ModelSignature, optional
        By default that of the example. Without either, policies fitted to arrays have a signature;
        for others the columns' kinds are not known.
    pip_requirements : list of str, optional
        By default this version of forewise and the installed versions of what it needs.
    metadata : dict, optional
        Kept with the model.
    mlflow_model : mlflow.models.Model, optional
        Passed by MLflow when a model is logged.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.NeighborPredictor(3)).fit(X, y)
    >>> fw.mlflow.save_model(learner.policy_, "model", input_example=X[:2])
    >>> mlflow.pyfunc.load_model("model").predict(X[10:11])
    array([[11.]])
    """
    model = _as_model(policy, past)
    mlflow = _mlflow()
    made = mlflow.models.Model() if mlflow_model is None else mlflow_model
    if signature is None:
        signature = _signature(mlflow, model, input_example)
    made.add_flavor(FLAVOR_NAME, forewise_version=version("forewise"), data=_DATA)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, FLAVOR_NAME)
        folder.mkdir()
        policy.save(folder / _POLICY)
        if past is not None:
            tables.write(past, folder / _PAST)
        mlflow.pyfunc.save_model(
            path=os.fspath(path),
            loader_module=__name__,
            data_path=os.fspath(folder),
            mlflow_model=made,
            signature=signature,
            input_example=input_example,
            pip_requirements=_pinned() if pip_requirements is None else pip_requirements,
            metadata=metadata,
        )


def log_model(policy: Policy | PlannerPolicy, name: str, **options: Any) -> Any:
    """Log a policy to the active run, or to a new one; returns MLflow's `ModelInfo`.

    Parameters
    ----------
    policy : Policy or PlannerPolicy
    name : str
        What the run calls the model.
    **options
        As for `save_model`, and those of `mlflow.models.Model.log`, such as
        ``registered_model_name``.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.NeighborPredictor(3)).fit(X, y)
    >>> mlflow.set_tracking_uri("runs")
    >>> with mlflow.start_run():
    ...     info = fw.mlflow.log_model(learner.policy_, "orders", input_example=X[:2])
    >>> fw.mlflow.load_model(info.model_uri).decide([[10.0]])
    array([[11.]])
    """
    mlflow = _mlflow()
    return mlflow.models.Model.log(
        artifact_path=None, name=name, flavor=sys.modules[__name__], policy=policy, **options
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Read a policy back from an MLflow model, as the class that was saved.

    Parameters
    ----------
    model_uri : str
        A path, ``runs:/...`` or ``models:/...``.
    dst_path : str, optional
        Folder to download to.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> import forewise as fw
    >>> X, y = np.arange(20.0)[:, None], np.arange(20.0)
    >>> learner = fw.DecoupledLearner(fw.Newsvendor(3.0, 1.0), fw.NeighborPredictor(3)).fit(X, y)
    >>> fw.mlflow.save_model(learner.policy_, "model_to_load")
    >>> fw.mlflow.load_model("model_to_load").decide([[10.0]])
    array([[11.]])
    """
    mlflow = _mlflow()
    folder = mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri), dst_path=dst_path)
    flavor = mlflow.models.Model.load(folder).flavors.get(FLAVOR_NAME)
    if flavor is None:
        raise InvalidInputError(
            f"model_uri must be a model of forewise, but {model_uri!r} has no flavour "
            f"{FLAVOR_NAME!r}: mlflow.pyfunc.load_model reads others"
        )
    return load_policy(Path(folder, flavor["data"], _POLICY))


def _load_pyfunc(data_path: str) -> _Model:
    """Called by `mlflow.pyfunc.load_model`."""
    past = Path(data_path, _PAST)
    return _as_model(
        load_policy(Path(data_path, _POLICY)), tables.read(past) if past.exists() else None
    )


class _Decider:
    """What MLflow asks: the rows of a frame, decided by a policy of contexts."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        names = getattr(policy.fitted, "feature_names_in_", None)
        self.columns = None if names is None else list(names)
        if policy.problem.needs_given and self.columns is None:
            raise InvalidInputError(
                "policy must have been fitted to a data frame, because its problem has given "
                "parameters: they and the contexts are told apart by their columns"
            )

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Decisions, in the kind of container that rows came in."""
        if not self.policy.problem.needs_given:
            return self.policy.decide(model_input, **_options(params))
        known = model_input.columns.isin(self.columns)
        given = model_input.loc[:, ~known]
        return self.policy.decide(model_input.loc[:, known], given=given, **_options(params))


class _Planned:
    """What MLflow asks: the rows of a frame, decided by a planner's policy."""

    def __init__(self, policy: PlannerPolicy, past: pd.DataFrame | None) -> None:
        self.policy, self.past = policy, past

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Decisions with their certificates."""
        if self.past is None:
            return self.policy.decide(model_input, **_options(params))
        return self.policy.decide(self.past, future=model_input, **_options(params))


_Model = _Decider | _Planned


def _as_model(policy: Any, past: pd.DataFrame | None) -> _Model:
    if isinstance(policy, PlannerPolicy):
        return _Planned(policy, past)
    if not isinstance(policy, Policy):
        raise InputTypeError(
            f"policy must be a fitted policy, but is a {type(policy).__name__}: pass "
            "learner.policy_ or planner.policy_"
        )
    if past is not None:
        raise InvalidInputError(
            f"past must be None for a {type(policy).__name__}, which decides from contexts alone"
        )
    return _Decider(policy)


def _options(params: dict[str, Any] | None) -> dict[str, Any]:
    return {name: int(value) for name, value in (params or {}).items() if value is not None}


def _signature(mlflow: Any, model: _Model, example: Any) -> Any:
    """Of the example, or of an array of as many columns as the policy was fitted to."""
    schema = mlflow.types.schema
    n_scenarios = model.policy.n_scenarios if isinstance(model, _Planned) else 64
    defaults = {"n_scenarios": n_scenarios, "random_state": 0}
    params = schema.ParamSchema([schema.ParamSpec(k, "long", v) for k, v in defaults.items()])
    if example is not None:
        found = mlflow.models.infer_signature(example, model.predict(example))
        return mlflow.models.ModelSignature(found.inputs, found.outputs, params)
    if isinstance(model, _Planned) or model.columns is not None:
        return None  # the kinds of columns are not known
    widths = (model.policy.fitted.n_features_in_, model.policy.n_decisions)
    inputs, outputs = (
        schema.Schema([schema.TensorSpec(np.dtype(np.float64), (-1, width))]) for width in widths
    )
    return mlflow.models.ModelSignature(inputs, outputs, params)


def _pinned() -> list[str]:
    """This version of forewise and the installed versions of what it needs, without extras."""
    lines = [line for line in requires("forewise") or [] if "extra ==" not in line]
    found = []
    for name in ["forewise", *(re.split(r"[^\w.-]", line)[0] for line in lines)]:
        try:
            found.append(f"{name}=={version(name).partition('+')[0]}")  # 2.13.0+cpu has no index
        except PackageNotFoundError:  # of another platform
            continue
    return found


def _mlflow() -> Any:
    try:
        import_module("mlflow.pyfunc")
        import_module("mlflow.models")
        return import_module("mlflow")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mlflow":
            raise
        raise MissingDependencyError(
            "MLflow models need mlflow: pip install 'forewise[mlflow]', or mlflow-skinny"
        ) from error
