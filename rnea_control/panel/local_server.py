"""The page's server: viser's, for pages of its own only.

A web page of any origin may open a WebSocket to this computer, and viser takes all of them: without
the check here, a page from the internet that is open in the operator's browser could move the arm.
"""

from __future__ import annotations

import contextlib
import http
import io
import ipaddress
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import viser
import websockets.asyncio.server as websockets_server
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from rnea_control.exceptions import RneaControlError, quoted
from rnea_control.panel.browser_messages import is_sound

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class PageError(RneaControlError, RuntimeError):
    """The page cannot be served."""


def open_server(host: str, port: int) -> viser.ViserServer:
    """Starts the server.

    Args:
        host: address or name of this computer at which browsers find the page.
        port: TCP port; 0 for any that is free.

    Raises:
        PageError: the port is taken, or the host is not of this computer.
    """
    _check(host, port)
    # It prints a table of its addresses, and "0.0.0.0" as localhost.
    with _guarded(host), contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label="rnea_panel", verbose=False)
    if port not in (0, server.get_port()):  # viser takes the next port that is free
        server.stop()
        raise PageError(_taken(host, port))
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def _check(host: str, port: int) -> None:
    """Raises PageError if a socket cannot be bound."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(address)
    except socket.gaierror as error:
        raise PageError(f"--host {quoted(host)} is not known: {error.strerror}") from None
    except PermissionError:
        raise PageError(f"--port {port} is reserved for the system; use one above 1023") from None
    except OSError as error:
        if error.errno == 98:  # EADDRINUSE
            raise PageError(_taken(host, port)) from None
        raise PageError(
            f"the page cannot be served at {host}:{port}: {error.strerror}. Give an address of "
            "this computer by --host"
        ) from None


def _taken(host: str, port: int) -> str:
    return (
        f"port {port} of {host} is taken: does another rnea_panel run? End it, or give another "
        f"port by --port {port + 1}"
    )


@contextlib.contextmanager
def _guarded(host: str) -> Iterator[None]:
    """Has servers of websockets that start meanwhile refuse pages of other origins, and messages
    that the page does not need."""
    serve = websockets_server.serve

    def guarded(handler: Any, *arguments: Any, process_request: Any, **options: Any) -> Any:
        async def handle(connection: ServerConnection) -> None:
            receive = connection.recv

            async def receive_sound() -> bytes:
                while not is_sound(raw := await receive()):
                    pass
                return raw

            connection.recv = receive_sound
            await handler(connection)

        def process(connection: ServerConnection, request: Request) -> Response | None:
            if words := refusal(request.headers, host):
                body = f"{words}\n".encode()
                headers = Headers({"Content-Type": "text/plain", "Content-Length": str(len(body))})
                return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, body)
            return process_request(connection, request)

        return serve(handle, *arguments, process_request=process, **options)

    websockets_server.serve = guarded
    try:
        yield
    finally:
        websockets_server.serve = serve


def refusal(headers: Headers, host: str) -> str:
    """Why a request is refused; empty if it is not.

    Args:
        headers: headers of the request.
        host: the address or name at which the page is served.
    """
    asked, origin = headers.get("Host", ""), headers.get("Origin")
    try:
        name = urlsplit(f"//{asked}").hostname or ""
    except ValueError:
        name = ""
    # Any other name may be of a foreign site that has its address changed to this computer's.
    if not (_is_address(name) or name in (*LOOPBACK, host.lower(), socket.gethostname().lower())):
        return f"rnea_panel is not served as {quoted(asked)}; open it by the address it has printed"
    if origin is not None and origin.partition("://")[2] != asked:
        return f"rnea_panel does not serve pages of {quoted(origin)}"
    return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
