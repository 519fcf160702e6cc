"""What `check` and `--full-refresh` refuse: definitions and wishes that could lose or double rows."""

from pathlib import Path

import pytest

from millstream.spark.errors import PipelineError, UnsafePipeline
from millstream.spark.pipelines.checks import check_definitions, check_full_refresh
from millstream.spark.pipelines.graph import Flow, Graph, Sink, Table


def table(name: str, kind: str = "parquet", *, streaming: bool = True, location: str | None = None) -> Table:
    return Table(name=name, is_streaming=streaming, format=kind, location=location, where=f"{name}.py:1")


def sink(name: str, kind: str, **options: str) -> Sink:
    return Sink(name=name, format=kind, options=options, where=f"{name}.py:1")


def graph(*outputs: Table | Sink, flows: dict[str, str]) -> Graph:
    return Graph(
        flows=tuple(Flow(name=name, target=target, where=f"{name}.py:2") for name, target in flows.items()),
        tables=tuple(each for each in outputs if isinstance(each, Table)),
        sinks=tuple(each for each in outputs if isinstance(each, Sink)),
    )


def test_one_flow_for_each_output_is_fine() -> None:
    own = sink("own", "millstream-table", path="/t/own")
    view = table("view", streaming=False)
    topic = sink("topic", "millstream", topic="x")
    flows = {"a": "plain", "b": "own", "c": "view", "d": "topic"}
    assert check_definitions(graph(table("plain"), own, view, topic, flows=flows)) == []


def test_several_flows_into_a_plain_streaming_table_are_refused() -> None:
    [problem] = check_definitions(graph(table("t"), flows={"a": "t", "b": "t"}))
    assert isinstance(problem, UnsafePipeline)
    assert str(problem) == (
        "a.py:2: the flows a and b write parquet files to one table t, where Spark would lose rows, because it takes "
        "the batches of one for those of the other; end each in a sink of format millstream-table, which keeps them "
        "apart"
    )


@pytest.mark.parametrize("kind", ["csv", "json", "orc", "parquet", "text"])
def test_the_same_directory_by_two_names_is_refused(kind: str) -> None:
    one, other = sink("one", kind, path="/t/x/"), sink("other", kind, path="file:///t/x")
    [problem] = check_definitions(graph(one, other, flows={"a": "one", "b": "other"}))
    assert "a and b write" in str(problem)
    assert "directory /t/x" in str(problem)


def test_several_flows_into_our_own_sinks_are_fine() -> None:
    one, topic = sink("one", "millstream-table", path="/t"), sink("topic", "millstream", topic="x")
    flows = {"a": "one", "b": "one", "c": "topic", "d": "topic"}
    assert check_definitions(graph(one, topic, flows=flows)) == []


def test_a_table_that_recomputes_may_have_several_flows_into_it() -> None:
    assert check_definitions(graph(table("v", streaming=False), flows={"a": "v", "b": "v"})) == []


@pytest.mark.parametrize("kind", ["millstream", "millstream-table"])
def test_one_application_id_for_several_flows_is_refused(kind: str) -> None:
    shared = sink("s", kind, path="/t", applicationid="app")
    [problem] = check_definitions(graph(shared, flows={"a": "s", "b": "s"}))
    assert isinstance(problem, UnsafePipeline)
    assert "a and b write under one applicationId 'app'" in str(problem)


def test_one_application_id_in_two_tables_is_fine_but_not_with_one_broker() -> None:
    def both(kind: str) -> Graph:
        one, other = (
            sink("one", kind, path="/1", applicationid="app"),
            sink("other", kind, path="/2", applicationid="app"),
        )
        return graph(one, other, flows={"a": "one", "b": "other"})

    assert check_definitions(both("millstream-table")) == []
    assert len(check_definitions(both("millstream"))) == 1


def test_nothing_to_run_is_said() -> None:
    [problem] = check_definitions(graph(flows={}))
    assert "there are no flows" in str(problem)


def refused(outputs: Graph, *names: str) -> list[str]:
    return [str(each) for each in check_full_refresh(outputs, names, everything=not names)]


def test_a_full_refresh_of_what_is_recomputed_is_fine() -> None:
    assert refused(graph(table("v", streaming=False), flows={"a": "v"})) == []


def test_a_full_refresh_of_a_plain_streaming_table_is_refused() -> None:
    outputs = graph(table("spark_catalog.default.t"), table("u", "delta"), flows={"a": "t", "b": "u"})
    [by_everything], [by_name] = refused(outputs), refused(outputs, "t")
    assert by_everything == by_name
    assert "a full refresh of the parquet table spark_catalog.default.t would lose rows" in by_name
    assert refused(outputs, "u") == []


def test_a_full_refresh_of_what_is_not_there_is_refused() -> None:
    [problem] = check_full_refresh(graph(table("t"), flows={}), ["other"], everything=False)
    assert type(problem) is PipelineError
    assert str(problem) == "there is no table or sink 'other' to refresh; there are: t"


def test_a_full_refresh_under_an_application_id_is_refused() -> None:
    one = sink("s", "millstream-table", path="/t", applicationid="app")
    [problem] = refused(graph(one, flows={"a": "s"}))
    assert "would write nothing: under the applicationId 'app' its batches are done" in problem


def test_a_full_refresh_of_a_sink_is_refused_where_rows_would_be_doubled(tmp_path: Path) -> None:
    path = tmp_path / "table"
    outputs = graph(sink("s", "millstream-table", path=str(path)), flows={"a": "s"})
    assert refused(outputs) == []
    path.mkdir()
    assert refused(outputs) == []
    (path / "part").touch()
    [problem] = refused(outputs)
    assert f"append all rows to {path} a second time; remove that table first" in problem


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("millstream", {"topic": "x"}, "all rows to the topic x a second time"),
        ("kafka", {}, "all rows to its target a second time"),
        ("parquet", {"path": "/t"}, "would lose rows"),
        ("millstream-table", {"path": "s3a://bucket/t"}, "to s3a://bucket/t a second time"),
        ("console", {}, None),
    ],
)
def test_a_full_refresh_of_other_sinks(kind: str, options: dict[str, str], said: str | None) -> None:
    problems = refused(graph(sink("s", kind, **options), flows={"a": "s"}), "s")
    assert [said in problem for problem in problems if said] == ([True] if said else [])
    assert bool(problems) is bool(said)
