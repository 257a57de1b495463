"""Connections of one api process: those open, and those that were ended or refused."""

from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge


class Ending(Enum):
    """Why a connection was ended or refused."""

    BAD_REQUEST = "bad_request"
    HEAD_TOO_LARGE = "head_too_large"
    HEAD_TOO_SLOW = "head_too_slow"
    BODY_TOO_SLOW = "body_too_slow"
    NOT_READ = "answer_not_read"
    REPLACED = "replaced_by_another"
    ADDRESS_FULL = "too_many_of_one_address"
    ALL_FULL = "too_many_in_all"


class ConnectionCounts:
    """`warpfold_http_connections` and `warpfold_http_connections_ended_total`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.open = Gauge("warpfold_http_connections", "Open connections of clients", registry=registry)
        self._ended = Counter(
            "warpfold_http_connections_ended", "Connections ended or refused", ("reason",), registry=registry
        )
        for why in Ending:
            self._ended.labels(why.value)

    def ended(self, why: Ending) -> None:
        """Count one."""
        self._ended.labels(why.value).inc()
