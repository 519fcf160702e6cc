"""The metrics that Iggy's own server has, under its names, so that dashboards made for it go on working."""

from prometheus_client.core import GaugeMetricFamily, Metric

from millstream.server.http.site import Site

__all__ = ["iggy_metrics"]


def iggy_metrics(site: Site) -> list[Metric]:
    """Counts of what there is; none if the server does not speak Iggy. Requests over HTTP are not counted."""
    if site.iggy is None:
        return []
    shared = site.iggy()
    topics = list(site.broker.topics)
    logs = [partition.log for topic in topics for partition in topic.partitions]
    counts = {
        "streams": len(shared.streams),
        "topics": len(topics),
        "partitions": len(logs),
        "segments": sum(log.segment_count for log in logs),
        "messages": sum(log.end_offset - log.start_offset for log in logs),
        "users": sum(1 for _ in shared.users),
        "clients": len(shared.clients),
    }
    return [GaugeMetricFamily(name, f"Number of {name}.", value=count) for name, count in counts.items()]
