"""How uvicorn serves an api process."""

from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from warpfold.app.http.context import Context
from warpfold.app.server.connections import Connections
from warpfold.app.server.descriptors import raise_limit
from warpfold.app.server.protocol import Guarded

_PATIENCE_S = 1
"""How long held requests and streams may go on when the process is asked to stop: clients come back by themselves."""

_IDLE_S = 150
"""How long an idle connection stays open: longer than proxies keep theirs (Caddy two minutes, nginx and balancers
one). A request may be on its way while its connection is closed, and a submission that meets that is a 502."""


def server_config(
    app: FastAPI, *, host: str = "127.0.0.1", port: int = 0, forwarded_allow_ips: str = "127.0.0.1"
) -> uvicorn.Config:
    """How to serve `app`: on `host` and `port` (0: a free one), behind the proxies that `forwarded_allow_ips` names.

    Raises this process's limit of open files as far as it may.
    """
    context: Context = app.state.context
    gate = Connections(context.settings, context.metrics.connections, raise_limit(), _IDLE_S)
    proxies = ProxyHeadersMiddleware(app, forwarded_allow_ips).trusted_hosts  # type: ignore[arg-type]
    http: Any = partial(Guarded, gate=gate, proxies=proxies)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=http,
        ws="none",
        log_config=None,  # ours
        access_log=False,
        forwarded_allow_ips=forwarded_allow_ips,
        timeout_graceful_shutdown=_PATIENCE_S,
        timeout_keep_alive=_IDLE_S,
    )
