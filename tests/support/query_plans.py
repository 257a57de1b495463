"""What the statements of a unit of work read, by the plans that Postgres keeps for them: EXPLAIN ANALYZE of each."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import ClientCursor
from sqlalchemy import Connection, create_engine, event

from warpfold.app.db import KEPT_PLANS, PLAN_EACH, conninfo, database_url

_PARAMETER = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True, slots=True)
class Read:
    """Rows that one statement read from the tables, and the nodes of its plan that read them."""

    statement: str
    rows: int
    nodes: tuple[str, ...]


class Explained:
    """A connection as the processes have it. Each statement is planned once, for any values, and is run again by that
    plan even if the tables have changed since. With `searches` it is one of the api's for filters: each statement is
    planned for its values."""

    def __init__(self, url: str, *, searches: bool = False) -> None:
        options = f"{KEPT_PLANS} {PLAN_EACH}" if searches else KEPT_PLANS
        self._engine = create_engine(database_url(url), connect_args={"options": options})
        self._connection = psycopg.connect(conninfo(url), autocommit=True, options=options)
        self._names: dict[str, str] = {}

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()

    def reads(self, work: Callable[..., object], *args: object) -> list[Read]:
        """What each statement of `work` reads. Nothing of it stays."""
        seen: list[tuple[str, Mapping[str, Any]]] = []

        def note(_c: object, _cursor: object, statement: str, parameters: Mapping[str, Any], *_more: object) -> None:
            seen.append((statement, parameters))

        with self._engine.connect() as connection:
            event.listen(connection, "before_cursor_execute", note)
            self._work(connection, work, args)
            connection.rollback()
        return [self._explain(*statement) for statement in seen if not statement[0].lower().startswith("set ")]

    @staticmethod
    def _work(connection: Connection, work: Callable[..., object], args: tuple[object, ...]) -> None:
        work(connection, *args)

    def _explain(self, statement: str, parameters: Mapping[str, Any]) -> Read:
        names = list(dict.fromkeys(_PARAMETER.findall(statement)))
        if statement not in self._names:
            self._names[statement] = f"kept_{len(self._names)}"
            places = {name: f"${place}" for place, name in enumerate(names, 1)}
            text = _PARAMETER.sub(lambda match: places[match[1]], statement).replace("%%", "%")
            types = ["interval" if isinstance(parameters[name], timedelta) else "unknown" for name in names]
            types_given = f"({', '.join(types)})" if types else ""
            self._connection.execute(f"prepare {self._names[statement]} {types_given} as {text}".encode())
        name = self._names[statement]
        values = ", ".join(["%s"] * len(names))
        types_given = ClientCursor(self._connection).mogrify(
            f"({values})" if names else "", [parameters[name] for name in names]
        )
        with self._connection.transaction(force_rollback=True), ClientCursor(self._connection) as cursor:
            cursor.execute(f"explain (analyze, format json) execute {name}{types_given}".encode())
            row = cursor.fetchone()
        assert row is not None
        [plan] = row[0] if isinstance(row[0], list) else json.loads(row[0])
        scans = list(_scans(plan["Plan"]))
        return Read(
            " ".join(statement.split()), sum(rows for rows, _ in scans), tuple(dict.fromkeys(node for _, node in scans))
        )


def _scans(plan: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Rows that each node read from a table or an index, those included that a filter dropped."""
    if "Relation Name" in plan or "Index Name" in plan:
        loops = plan["Actual Loops"]
        rows = (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        )
        words = (plan["Node Type"], plan.get("Relation Name"), plan.get("Index Name"))
        yield round(rows * loops), " ".join(word for word in words if word)
    for part in plan.get("Plans", ()):
        yield from _scans(part)
