"""Spark, set up to run declared pipelines, in this process.

Spark's own `spark-pipelines` starts a Connect server on a fixed port, with a catalog that forgets its tables. Here
the session is started by us: its server takes a free port of the loopback interface and lets in only who knows a
token that this process made up; the catalog (Hive's, on Derby) is kept beside the checkpoints; static settings may
stand in the pipeline's description. Definitions then go through Spark's own registration, and runs through its own
execution. What is private to Spark 4.3 is touched here and in `graph`, nowhere else.
"""

import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from millstream.spark.errors import PipelineError
from millstream.spark.java import use_java
from millstream.spark.pipelines.graph import Graph, read_graph
from millstream.spark.pipelines.messages import one_line, place_of
from millstream.spark.pipelines.sources import SourceNotes
from millstream.spark.pipelines.spec import Spec
from millstream.spark.worker_python import worker_python

__all__ = ["Engine"]

_CONNECT_PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_CONNECT_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService$"
_TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
_MASTER: Final = "spark.master"
_SETTLE_TIMEOUT_MS: Final = 60_000
_CONCURRENT_FLOWS: Final = "spark.sql.pipelines.execution.maxConcurrentFlows"
_FAULTS_OF_DEFINITIONS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What a user's own code may raise while it is loaded."""


class Engine:
    """Runs one pipeline's definitions; a context. There is one in a process, and no other Spark session.

    Args:
        spec: the pipeline.
        master: where Spark runs; None for what the description says, or else all cores of this machine.
    """

    def __init__(self, spec: Spec, master: str | None = None) -> None:
        self._spec = spec
        self._master = master or spec.configuration.get(_MASTER, "local[*]")
        self._stack = contextlib.ExitStack()
        self._graph_id = ""
        self._listener: _Listener | None = None
        self.sources = SourceNotes()

    def __enter__(self) -> Self:
        """Start Spark. Raises JavaMissing, PipelineError."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        try:
            self._session = self._start()
            service = _object(self._session._jvm, _CONNECT_SERVICE)
            # From here on functions such as F.col make columns for Connect, as they do in Spark's own pipelines.
            os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
            self._connect = ConnectSession.builder.remote(f"sc://localhost:{service.localPort()}").create()
            self._stack.callback(self._connect.stop)
            _ = self._connect.version  # the server knows of a session from its first request on
            self._holder = self._find_holder(service)
            if self._spec.database is not None and self._spec.catalog in (None, "spark_catalog"):
                self._session.sql(f"CREATE DATABASE IF NOT EXISTS `{self._spec.database}`")
        except (PySparkException, Py4JError) as error:
            self._stack.close()
            raise PipelineError(f"Spark did not start: {one_line(str(error))}", f"see {self.log_path}") from None
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def log_path(self) -> str:
        """The file that takes what Spark, its Java and its Python workers have to say."""
        return os.path.join(self._spec.state_dir, "spark.log")

    @property
    def session(self) -> Any:
        """The session of Spark Connect that definitions are loaded with."""
        return self._connect

    def define(self) -> Graph:
        """Load all definitions.

        Returns:
            What they come to.

        Raises:
            PipelineError: a file cannot be loaded.
        """
        from pathlib import Path

        from pyspark.errors import PySparkException
        from pyspark.pipelines.cli import LibrariesGlob, PipelineSpec, register_definitions
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph

        spec = self._spec
        if not spec.files():
            raise PipelineError(
                f"{spec.path}: no file matches {', '.join(spec.libraries)}", "write definitions, or change libraries"
            )
        try:
            configuration = {key: value for key, value in spec.configuration.items() if self._is_runtime(key)}
            self._graph_id = create_dataflow_graph(self._connect, spec.catalog, spec.database, configuration)
            theirs = PipelineSpec(
                name=spec.name,
                storage=spec.storage,
                catalog=spec.catalog,
                database=spec.database,
                configuration=configuration,
                libraries=[LibrariesGlob(include) for include in spec.libraries],
            )
            registry = self.sources.registry(self._connect, self._graph_id)
            # What Spark and the definitions print is no result of this command.
            with open(self.log_path, "a", encoding="utf-8") as log, contextlib.redirect_stdout(log):
                register_definitions(Path(spec.path), registry, theirs, self._connect, self._graph_id)
        except PySparkException as error:
            raise PipelineError(f"the definitions do not load: {one_line(str(error))}", "mend them") from None
        except _FAULTS_OF_DEFINITIONS as error:
            raise PipelineError(f"the definitions do not load: {place_of(error, spec.root)}", "mend them") from None
        context = self._holder.dataflowGraphRegistry().getDataflowGraphOrThrow(self._graph_id)
        return read_graph(context.toDataflowGraph(), os.path.realpath(spec.root))

    def run(
        self,
        tell: Callable[[str], None],
        *,
        dry: bool = False,
        full_refresh: Sequence[str] = (),
        full_refresh_all: bool = False,
    ) -> None:
        """Run all flows over what there is now, and wait for their end.

        Args:
            tell: is told what happens, a line each.
            dry: only look whether the flows fit together.
            full_refresh: tables and sinks that are begun anew.
            full_refresh_all: whether all are.

        Raises:
            PipelineError: a flow failed.
        """
        from pyspark.errors import PySparkException
        from pyspark.pipelines.spark_connect_pipeline import start_run

        last_error = ""
        # Spark refuses a second run of a graph until the first has been put away.
        self._holder.removeAllPipelineExecutions()
        try:
            for answer in start_run(
                self._connect,
                self._graph_id,
                full_refresh=list(full_refresh),
                full_refresh_all=full_refresh_all,
                refresh=[],
                dry=dry,
                storage=self._spec.storage,
            ):
                if "pipeline_event_result" in answer:
                    message = answer["pipeline_event_result"].event.message
                    if "Error:" in message:
                        last_error = one_line(message)
                    tell(message)
        except PySparkException as error:
            # The event says which flow it was; the exception of a failed run only that it failed.
            raise PipelineError(last_error or one_line(str(error)), f"see {self.log_path}") from None

    def stop_flows(self) -> str:
        """End the run that goes on; flows that have not begun do not begin.

        Returns:
            Why Spark has not done so, in one line; empty if it has. A flow that is just beginning or ending may be in
            its way for a moment: it is to be asked again until the run has ended.
        """
        from py4j.protocol import Py4JJavaError

        context = self._holder.getPipelineExecution(self._graph_id)
        # Spark's own way to stop a run waits for its end first, so that its flows are told directly.
        flows = context.get().pipelineExecution().graphExecution() if context.isDefined() else context
        try:
            if flows.isDefined():
                flows.get().stop()
        except Py4JJavaError as error:
            return one_line(str(error.java_exception.toString()))
        return ""

    def settle(self) -> None:
        """Wait until all reports of what has happened are handed on."""
        from py4j.protocol import Py4JError

        # After a minute a report is given up; it is then missing in the log of the run, and nowhere else.
        with contextlib.suppress(Py4JError):
            self._session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_SETTLE_TIMEOUT_MS)

    def active_queries(self) -> dict[str, Any]:
        """Spark's streaming queries that run now, by their run id; they can be stopped."""
        return {query.runId().toString(): query for query in self._holder.session().streams().active()}

    def listen(self, take: Callable[[str], None]) -> None:
        """Have every progress report of a flow, as Spark's JSON, handed to a function; on a thread of its own.

        Another function takes the place of the one before.
        """
        if self._listener is not None:
            self._listener.take = take
            return
        from pyspark.java_gateway import ensure_callback_server_started

        context = self._session.sparkContext
        ensure_callback_server_started(context._gateway)
        self._listener = _Listener(take)  # py4j holds its objects weakly
        java = context._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self._listener)
        self._holder.session().streams().addListener(java)

    def _start(self) -> Any:
        """Start the session that has the Connect server."""
        use_java()
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        os.makedirs(self._spec.state_dir, exist_ok=True)
        is_local = self._master.startswith("local")
        os.environ.setdefault("PYSPARK_PYTHON", worker_python(self._spec.state_dir) if is_local else sys.executable)
        os.environ[_TOKEN] = secrets.token_hex(16)
        self._stack.callback(os.environ.pop, "SPARK_CONNECT_MODE_ENABLED", None)
        self._stack.callback(os.environ.pop, _TOKEN, None)
        if is_local:
            # Spark would look up the machine's name, and warn where that leads nowhere.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(self._settings().items()))
        with open(self.log_path, "ab") as log:
            # A process group of its own: Ctrl-C and SIGTERM are for this process, which then stops Spark in order.
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log, "process_group": 0})
        derby_log = os.path.join(self._spec.state_dir, "derby.log")
        gateway.jvm.java.lang.System.setProperty("derby.stream.error.file", derby_log)
        context = SparkContext(conf=conf, gateway=gateway)
        self._stack.callback(gateway.shutdown)
        self._stack.callback(context.stop)
        return SparkSession(context)

    def _settings(self) -> dict[str, str]:
        spec = self._spec
        metastore = os.path.join(spec.state_dir, "metastore")
        settings = {
            "spark.app.name": spec.name,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={metastore};create=true",
            "spark.sql.warehouse.dir": f"{spec.storage}/warehouse",
            **spec.configuration,
            _MASTER: self._master,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            # A pipeline may wait for records for longer than the hour after which a session is given up.
            "spark.connect.session.manager.defaultSessionTimeout": "3650d",
        }
        if self._master.startswith("local"):
            # Each flow starts several Python processes, and Spark gives each ten seconds to begin: too many at once
            # on few cores would not make it.
            settings.setdefault(_CONCURRENT_FLOWS, str(max(2, os.cpu_count() or 2)))
        plugins = [*filter(None, settings.get("spark.plugins", "").split(",")), _CONNECT_PLUGIN]
        return {**settings, "spark.plugins": ",".join(plugins)}

    def _is_runtime(self, key: str) -> bool:
        """Whether a setting may differ between sessions; others were given when Spark was started."""
        static = self._session._jvm.org.apache.spark.sql.internal.SQLConf.isStaticConfigKey(key)
        return key.startswith("spark.sql.") and not static

    def _find_holder(self, service: Any) -> Any:
        """The server's side of the Connect session."""
        jvm = self._session._jvm
        client = self._connect.client
        key = jvm.org.apache.spark.sql.connect.service.SessionKey(client._user_id or "", self._connect.session_id)
        return service.sessionManager().getIsolatedSession(key, _object(jvm, "scala.None$"))


class _Listener:
    """Takes progress reports from Spark as JSON. PySpark's own listener fails on the tags that Connect sets."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self.take = take

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing is shown of it."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Hand on the report of a batch."""
        self.take(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing is shown of it."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """The end of a flow is told by the run."""

    class Java:
        """What py4j makes of it."""

        implements: Final = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


def _object(jvm: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(jvm, name), "MODULE$")
