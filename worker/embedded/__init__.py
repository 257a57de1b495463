"""Runs real servers for one machine: Postgres and Redis from wheels, which listen on unix sockets only."""

from warpfold.worker.embedded.postgres import EmbeddedPostgres
from warpfold.worker.embedded.redis import EmbeddedRedis
from warpfold.worker.embedded.server import EmbeddedServer, ServerMissing

__all__ = ["EmbeddedPostgres", "EmbeddedRedis", "EmbeddedServer", "ServerMissing"]
