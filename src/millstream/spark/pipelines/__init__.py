"""Pipelines from topics to tables and topics: declared ones, and plain streaming queries run together.

pipeline      a declared pipeline in a program: `Pipeline`
spec          the file that describes a pipeline
project       a new project that works at once
engine        Spark, set up to run declared pipelines in this process
graph         what definitions come to
sources       which topics the flows read
checks        what would lose or double rows
running       a run, until drained or until stopped
stopping      SIGTERM and SIGINT as wishes
progress      what Spark reports, and how it is shown
run_log       what is kept of runs
checkpoints   how far flows have come
latest        where topics end
status        all that without starting Spark
queries       plain queries: `run_queries`
messages      one line out of what Spark has to say
"""
