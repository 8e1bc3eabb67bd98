"""Endpoints, limits, token, malformed requests, new editions."""

from __future__ import annotations

import threading
import time

import pytest

from forewise.exceptions import InvalidInputError
from forewise.serving.server import require_safe, tables_of
from forewise.serving.telemetry import warnings_heard
from tests.serving.conftest import TOKEN, plain_policy, sent, serving, weather

ROW = {"heat": 20.0, "day": "sun"}


def test_every_example_of_openapi_works(both):
    paths = both.get("/openapi.json").json()["paths"]
    tried = 0
    for path in ("/decide", "/explain", "/policies/{name}/whatif"):
        content = paths[path]["post"]["requestBody"]["content"]["application/json"]
        for name, example in content["examples"].items():
            answer = both.post(path.format(name=name), example["value"])
            assert answer.status_code == 200, answer.text
            tried += 1
    assert tried == 6
    asked = {"name": "ice"}, {"day": "2023-02-01"}
    for path in paths:
        if "get" in paths[path]:
            options = {"/policy": asked[0], "/policies/{name}/rows": asked[1]}.get(path)
            assert both.get(path.format(name="shops"), params=options).status_code == 200, path


def test_the_model_card(both):
    card = both.get("/policy", params={"name": "shops"}).json()
    assert card["roles"]["outcome"] == ["sales"]
    assert card["learned_from"]["rows"] == 94
    assert "promotion" in card["columns"]["column"]
    assert card["calibration"]["level"] == 0.9
    assert both.get("/policy", params={"name": "ice"}).json()["columns"]["column"] == list(ROW)
    assert both.get("/policy").status_code == 422
    assert both.get("/policy", params={"name": "../etc"}).status_code == 404
    assert {p["policy"] for p in both.get("/policies").json()["policies"]} == {"ice", "shops"}


MALFORMED = {
    "empty": b"",
    "no JSON": b"{rows",
    "a list": b"[]",
    "null": b"null",
    "NaN": b'{"rows": [{"heat": NaN, "day": "sun"}]}',
    "infinity": b'{"rows": [{"heat": -Infinity, "day": "sun"}]}',
    "too large a number": b'{"rows": [{"heat": 1e999, "day": "sun"}]}',
    "too large an integer": b'{"rows": [{"heat": ' + b"9" * 5000 + b', "day": "sun"}]}',
    "a key twice": b'{"rows": [{"heat": 1, "heat": 2, "day": "sun"}]}',
    "rows twice": b'{"rows": [], "rows": [{"heat": 1, "day": "sun"}]}',
    "deep": b'{"rows": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "deep, unclosed": b'{"a":' * 50_000,
    "a cell with a list": b'{"rows": [{"heat": [1], "day": "sun"}]}',
    "latin-1": '{"rows": [{"heat": 1, "day": "Südtag"}]}'.encode("latin-1"),
    "UTF-16": '{"rows": [{"heat": 1, "day": "sun"}]}'.encode("utf-16"),
    "a byte order mark": '\ufeff{"rows": [{"heat": 1, "day": "sun"}]}'.encode(),
    "half a pair": b'{"rows": [{"heat": 1, "day": "\\ud800"}]}',
    "half a pair as a name": b'{"rows": [{"\\udfff": 1}]}',
    "half a pair as a policy": b'{"policy": "\\udfff", "rows": [{"heat": 1, "day": "sun"}]}',
    "NUL outside of text": b'{"rows": [{"heat": 1, "day": "sun"}]}\x00',
    "more behind": b'{"rows": [{"heat": 1, "day": "sun"}]} {}',
    "no rows": b'{"rows": []}',
    "rows that are text": b'{"rows": "sales.csv"}',
    "a row without columns": b'{"rows": [{}]}',
    "a column is missing": b'{"rows": [{"heat": 1}]}',
    "another column": b'{"rows": [{"heat": 1, "day": "sun", "file": "/etc/passwd"}]}',
    "a field too many": b'{"rows": [{"heat": 1, "day": "sun"}], "folder": "/tmp"}',
    "text for a number": b'{"rows": [{"heat": "warm", "day": "sun"}]}',
    "no scenarios": b'{"rows": [{"heat": 1, "day": "sun"}], "n_scenarios": 0}',
    "too many scenarios": b'{"rows": [{"heat": 1, "day": "sun"}], "n_scenarios": 99999999}',
    "scenarios as text": b'{"rows": [{"heat": 1, "day": "sun"}], "n_scenarios": "8"}',
    "a negative seed": b'{"rows": [{"heat": 1, "day": "sun"}], "random_state": -1}',
    "given": b'{"rows": [{"heat": 1, "day": "sun"}], "given": {"price": [1]}}',
    "given text": b'{"rows": [{"heat": 1, "day": "sun"}], "given": {"price": ["x"]}}',
    "given of other lengths": b'{"rows": [{"heat": 1, "day": "sun"}], "given": {"p": [[1], 2]}}',
    "a past": b'{"rows": [{"heat": 1, "day": "sun"}], "past": [{"heat": 1}]}',
    "no such policy": b'{"rows": [{"heat": 1, "day": "sun"}], "policy": "other"}',
}


@pytest.mark.parametrize("path", ["/decide", "/explain"])
def test_malformed_requests_are_told_what_is_wrong(client, path):
    answers = client.all(lambda c: [c.post(path, **sent(body)) for body in MALFORMED.values()])
    for name, answer in zip(MALFORMED, answers, strict=True):
        assert 400 <= answer.status_code < 500, (name, answer.status_code, answer.text)
        assert len(answer.json()["error"]) > 10, name
    assert client.decided([ROW])[0]["status"] == "optimal"


@pytest.mark.parametrize("column", ["heat", "day"])
@pytest.mark.parametrize(
    "cell", [None, True, -(2**63), 1e308, 5e-324, "", "1,5", "\x00", "ß" * 5000, "2024-01-01"]
)
def test_strange_cells_are_decided_or_refused(client, column, cell):
    with warnings_heard():
        answer = client.post("/decide", {"rows": [ROW | {column: cell}, ROW]})
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 200:
        assert answer.json()["rows"][1] == client.decided([ROW])[0]


def test_who_asks_hears_of_what_training_has_not_seen(client):
    bodies = [{"rows": [ROW | {"day": day}]} for day in ("holiday", "sun", "eve")]
    with warnings_heard():
        answers = client.all(lambda c: [c.post("/decide", **sent(body)) for body in bodies])
    notes = [answer.json()["notes"] for answer in answers]
    assert "holiday" in notes[0][0]
    assert "eve" in notes[2][0]
    assert notes[1] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Encoding": "gzip"},
    ],
)
def test_other_kinds_of_bodies_are_refused(client, headers):
    assert client.post("/decide", {"rows": [ROW]}, headers=headers).status_code == 415


def test_limits_of_body_and_rows(plain):
    async def chunks():
        for _ in range(100):
            yield b" " * 1000

    with serving({"ice": plain}, body_bytes=2000, rows=3) as client:
        large = client.post("/decide", " " * 3000)
        streamed = client.all(
            lambda c: [
                c.post("/decide", content=chunks(), headers={"Content-Type": "application/json"})
            ]
        )[0]
        assert large.status_code == streamed.status_code == 413
        many = client.post("/decide", {"rows": [ROW] * 4})
        assert many.status_code == 413
        assert "at most 3" in many.json()["error"]
        assert len(client.decided([ROW] * 3)) == 3


def test_a_full_queue_and_a_late_answer(plain):
    """Who comes too late is told so at once, and is not computed for; the others are answered."""
    with serving({"ice": plain}, waiting=2, seconds=0.3, batch_rows=1) as client:
        served = client.shelf.find("ice")
        go, original = threading.Event(), served.deciding._handle

        def slow(questions):
            go.wait(5)
            return original(questions)

        served.deciding._handle = slow
        start = time.perf_counter()
        answers = client.all(
            lambda c: (
                [c.post("/decide", **sent({"rows": [ROW]}))] * 1
                + [c.post("/decide", **sent({"rows": [ROW]})) for _ in range(9)]
            )
        )
        assert time.perf_counter() - start < 4
        codes = sorted(answer.status_code for answer in answers)
        assert set(codes) == {429, 503}
        assert codes.count(429) >= 7
        assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
        go.set()
        served.deciding._handle = original
        while served.deciding.waiting:
            time.sleep(0.01)
        assert client.decided([ROW])[0]["status"] == "optimal"


def test_the_token(plain, caplog):
    with serving({"ice": plain}, token=TOKEN) as client:
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert client.post("/decide", {"rows": [ROW]}, headers=right).status_code == 200
        for wrong in (
            {},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer {TOKEN}x"},
        ):
            for path in ("/decide", "/nothing"):
                assert client.post(path, {"rows": [ROW]}, headers=wrong).status_code == 401
            assert client.get("/policy", headers=wrong).status_code == 401
            assert client.get("/metrics", headers=wrong).status_code == 401
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(("host", "token"), [("0.0.0.0", None), ("::", None), ("shop", None)])
def test_other_hosts_need_a_token(host, token):
    require_safe("127.0.0.1", None)
    require_safe("::1", None)
    require_safe(host, TOKEN)
    with pytest.raises(InvalidInputError, match="token"):
        require_safe(host, token)
    with pytest.raises(InvalidInputError, match="at least 16"):
        require_safe(host, "short")


def test_tables_belong_to_policies():
    assert str(tables_of(["a=b.csv"], ["shops"])["shops"]) == "a=b.csv"
    assert str(tables_of(["two=b.csv"], ["one", "two"])["two"]) == "b.csv"
    with pytest.raises(InvalidInputError, match="name=file"):
        tables_of(["b.csv"], ["one", "two"])


def test_a_new_edition_is_taken_over_under_load(tmp_path):
    """Every answer is that of the version it names; none is lost; damage changes nothing."""
    folder = tmp_path / "ice"
    X, _ = weather()
    policies = [plain_policy(shortage) for shortage in (3.0, 9.0)]
    expected = [policy.decide(X.head(1))["sales"].iloc[0] for policy in policies]
    policies[0].save(folder)
    rows = X.head(1).to_dict("records")
    with serving({"ice": folder}) as client:
        versions = [client.post("/decide", {"rows": rows}).json()["version"]]
        seen, until = set(), time.monotonic() + 20
        policies[1].save(folder)
        while time.monotonic() < until and len(seen) < 2:
            answers = client.all(
                lambda c: [c.post("/decide", **sent({"rows": rows})) for _ in range(8)]
            )
            for answer in answers:
                assert answer.status_code == 200
                body = answer.json()
                place = int(body["version"] != versions[0])
                assert body["rows"][0]["decision"]["sales"] == expected[place]
                seen |= {0, place}
        assert seen == {0, 1}
        (folder / "header.json").write_text("{}")
        time.sleep(0.3)
        assert client.decided(rows)[0]["decision"]["sales"] == expected[1]
        assert 'loads_total{policy="ice",result="refused"}' in client.get("/metrics").text


def test_metrics_count_what_was_asked(plain):
    with serving({"ice": plain}) as client:
        client.decided([ROW] * 5)
        client.post("/decide", {"rows": []})
        client.get("/some/where")
        text = client.get("/metrics").text
    assert 'forewise_rows_total{policy="ice",status="optimal"} 5.0' in text
    assert 'forewise_requests_total{path="/decide",status="200"} 1.0' in text
    assert 'forewise_requests_total{path="/decide",status="422"} 1.0' in text
    assert 'forewise_requests_total{path="other",status="404"} 1.0' in text
    assert "forewise_batch_seconds_count" in text
