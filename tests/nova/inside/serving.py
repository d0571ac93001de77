"""Nova's compute API on a loopback port; ``PORT`` says which, ``OS_NOVA_CONFIG_DIR`` its files."""

import os
import socketserver
from wsgiref import simple_server

from nova.wsgi.osapi_compute import application


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """Answers each call in a thread of its own."""

    daemon_threads = True


class Quiet(simple_server.WSGIRequestHandler):
    """Nova logs the calls by itself."""

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    port = int(os.environ["PORT"])
    simple_server.make_server("127.0.0.1", port, application, Server, Quiet).serve_forever()
