"""A proxy to the service that breaks connections."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

from tests.support.service import Service


@contextmanager
def cutting(service: Service, *after: int) -> Iterator[str]:
    """The address of a proxy that breaks each connection that carried so many bytes of a body, one after the other."""
    left = list(after)
    target = urlsplit(service.url)
    with ExitStack() as ending:
        server = ending.enter_context(socket.create_server(("127.0.0.1", 0)))

        def pump(source: socket.socket, sink: socket.socket, *, upwards: bool) -> None:
            carried = 0
            with suppress(OSError):
                while data := source.recv(65536):
                    carried += len(data)
                    if upwards and left and carried > left[0]:
                        left.pop(0)
                        break
                    sink.sendall(data)
            ended(source, sink)
            # Closing with unread bytes resets the connection, so that the writer notices at once, and not after its
            # time limit.
            source.close()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    wire = ending.enter_context(server.accept()[0])
                    onward = ending.enter_context(socket.create_connection((target.hostname, target.port)))
                    ending.callback(ended, wire, onward)
                    started(pump, wire, onward, upwards=True)
                    started(pump, onward, wire, upwards=False)

        def started(work: Callable[..., None], *args: socket.socket, **options: bool) -> None:
            thread = threading.Thread(target=work, args=args, kwargs=options)
            thread.start()
            threads.append(thread)

        threads: list[threading.Thread] = []
        started(accept)
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended(server)
            threads[0].join()
    for thread in threads:
        thread.join()


def ended(*wires: socket.socket) -> None:
    for wire in wires:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)
