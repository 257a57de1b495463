"""SQL of whether anybody leads, for those who ask. `worker.leadership` has the SQL of the dispatchers."""

from sqlalchemy import Connection, and_, func, select

from warpfold.app.tables.lead import lead

_LASTS = func.make_interval(0, 0, 0, 0, 0, 0, lead.c.lasts_s)

# A renewal in the future tells that the server's clock was set back: it is no sign of life. A leader that lives renews
# its lead within a second or two, so after any step of the clock the answer is true again.
_FRESH = and_(
    lead.c.holder.is_not(None),
    lead.c.renewed_at > func.now() - _LASTS,
    lead.c.renewed_at < func.now() + _LASTS,
)
_SOMEBODY_LEADS = select(select(lead.c.name).where(_FRESH).exists())


def somebody_leads(connection: Connection) -> bool:
    """Whether some dispatcher has renewed its lead in time."""
    return bool(connection.execute(_SOMEBODY_LEADS).scalar_one())
