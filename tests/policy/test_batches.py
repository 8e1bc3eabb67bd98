"""Tables decided one after the other, and by engines, are decided as `decide` does."""

from __future__ import annotations

import os
import pickle
import sys
import tracemalloc

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import forewise as fw
from forewise.exceptions import InvalidInputError
from forewise.policy.batches import ROWS

RNG = np.random.default_rng(0)
ROWS_TO_DECIDE = pd.DataFrame(RNG.normal(size=(300, 3)), columns=list("abc")).assign(
    id=np.arange(300, dtype=np.int16), shop=[f"s{i % 7}" for i in range(300)]
)


def fitted(problem=None, **options):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    y = pd.DataFrame({"demand": rng.gamma(4.0, np.exp(0.3 * X["a"]))})
    learner = fw.DecoupledLearner(
        problem or fw.Newsvendor(3, 1), fw.ForestPredictor(5, random_state=0)
    )
    return learner.fit(X, y, **options).policy_


@pytest.fixture(scope="module")
def policy():
    return fitted()


def expected(policy):
    return policy.decide(ROWS_TO_DECIDE[list("abc")])["demand"].to_numpy()


@pytest.mark.parametrize("kind", ["tables", "batches", "pandas", "polars", "one table"])
def test_pieces_of_any_kind_are_decided_as_the_whole(policy, kind):
    whole = pa.Table.from_pandas(ROWS_TO_DECIDE)
    pieces = {
        "tables": [whole[:100], whole[100:100], whole[100:]],
        "batches": whole.to_batches(max_chunksize=64),
        "pandas": [ROWS_TO_DECIDE[:7], ROWS_TO_DECIDE[7:]],
        "polars": [pl.from_pandas(ROWS_TO_DECIDE)],
        "one table": whole,
    }[kind]
    found = pa.concat_tables(list(policy.decide_batches(pieces)))
    assert found.column_names == ["id", "shop", "demand"]
    assert found["id"].type == pa.int16()
    assert found["shop"].to_pylist() == ROWS_TO_DECIDE["shop"].tolist()
    np.testing.assert_array_equal(found["demand"].to_numpy(), expected(policy))


def test_it_is_lazy_and_in_bounded_memory(policy):
    taken = []

    def endless():
        while True:
            taken.append(len(taken))
            yield pa.Table.from_pandas(ROWS_TO_DECIDE)

    found = policy.decide_batches(endless())
    tracemalloc.start()
    sizes = [next(found).num_rows for _ in range(5)]
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert sizes == [300] * 5
    assert len(taken) == 5


def test_large_tables_are_cut(policy):
    column = np.zeros(ROWS + 1)
    table = pa.table({"a": column, "b": column, "c": column})
    assert [t.num_rows for t in policy.decide_batches([table])] == [ROWS, 1]


def test_what_is_given_is_a_column():
    z, y = cp.Variable(name="order", nonneg=True), cp.Parameter(name="demand")
    room = cp.Parameter(name="room", nonneg=True)
    cost = 3 * cp.pos(y - z) + cp.pos(z - y)
    problem = fw.CvxpyProblem(cp.Minimize(cost), [z <= room], decision=z, outcome=y, given=room)
    policy = fitted(problem, given=np.full(150, 9.0))
    rooms = RNG.uniform(0.5, 5.0, 300)
    (found,) = policy.decide_batches(ROWS_TO_DECIDE.assign(room=rooms), 8)
    wanted = policy.decide(ROWS_TO_DECIDE[list("abc")], 8, given=rooms)
    assert found.column_names[:2] == ["id", "shop"]
    np.testing.assert_array_equal(found[policy.decision_names[0]], wanted.to_numpy()[:, 0])
    with pytest.raises(InvalidInputError, match="no column 'room'"):
        list(policy.decide_batches([ROWS_TO_DECIDE]))


def test_what_is_kept_is_chosen_and_checked(policy):
    (found,) = policy.decide_batches([ROWS_TO_DECIDE], keep=["shop", "a"])
    assert found.column_names == ["shop", "a", "demand"]
    with pytest.raises(InvalidInputError, match=r"\['colour'\] are not among"):
        list(policy.decide_batches([ROWS_TO_DECIDE], keep=["colour"]))
    with pytest.raises(InvalidInputError, match=r"keep must not have \['demand'\]"):
        list(policy.decide_batches([ROWS_TO_DECIDE.assign(demand=1.0)]))
    with pytest.raises(InvalidInputError, match="random_state must be an integer"):
        policy.decide_batches([ROWS_TO_DECIDE], random_state=None)
    with pytest.raises(InvalidInputError, match="must be an iterable of Arrow tables"):
        list(policy.decide_batches([3]))


def test_the_function_takes_a_frame_or_frames_and_is_picklable(policy):
    udf = pickle.loads(pickle.dumps(policy.as_udf()))
    whole = udf(ROWS_TO_DECIDE)
    np.testing.assert_array_equal(whole["demand"], expected(policy))
    parts = pd.concat(udf(iter([ROWS_TO_DECIDE[:11], ROWS_TO_DECIDE[11:]])))
    pd.testing.assert_frame_equal(parts, whole)
    assert udf(ROWS_TO_DECIDE[:0]).dtypes.to_dict() == whole.dtypes.to_dict()


def test_a_planner_decides_batches_by_its_past():
    table = fw.datasets.shop_demand(45)
    days = sorted(table["date"].unique())
    past, future = (table[table["date"].isin(part)] for part in (days[:-2], days[-2:]))
    future = future.drop(columns=["sales", "sold_out"])
    planner = fw.Planner(
        fw.Newsvendor(3, 1), outcome="sales", date="date", series=["store", "product"],
        known=["price"], learner=fw.NeighborPredictor(),
    )  # fmt: skip
    stored = planner.fit(past).policy_
    wanted = stored.decide(past, future)
    pieces = [part for _, part in future.groupby(["store", "product"])]
    found = pa.concat_tables(list(stored.decide_batches(pieces, past))).to_pandas()
    keys = ["date", "store", "product"]
    found, wanted = (f.sort_values(keys, ignore_index=True) for f in (found, wanted))
    pd.testing.assert_frame_equal(found[keys], wanted[keys], check_dtype=False)
    np.testing.assert_array_equal(found["decision"], wanted["decision"])
    udf = pickle.loads(pickle.dumps(stored.as_udf(past)))
    np.testing.assert_array_equal(udf(future).sort_values(keys)["decision"], wanted["decision"])


@pytest.mark.slow
def test_dask_takes_it(policy):
    dd = pytest.importorskip("dask.dataframe", reason="pip install 'forewise[dask]'")
    frame = dd.from_pandas(ROWS_TO_DECIDE, npartitions=4)
    meta = {"id": "int16", "shop": "str"} | policy.as_udf().meta
    found = frame.map_partitions(policy.as_udf(), meta=meta).compute()
    np.testing.assert_array_equal(found["demand"], expected(policy))
    np.testing.assert_array_equal(found["id"], ROWS_TO_DECIDE["id"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_takes_it(policy, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="Spark needs pyspark and Java")
    monkeypatch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # whatever Java says
        pytest.skip(f"Spark does not start: {error}")
    try:
        frame = spark.createDataFrame(ROWS_TO_DECIDE.astype({"id": "int64"})).repartition(3)
        schema = "id long, shop string, demand double"
        found = frame.mapInPandas(policy.as_udf(), schema).toPandas().sort_values("id")
    finally:
        spark.stop()
    np.testing.assert_array_equal(found["demand"], expected(policy))
