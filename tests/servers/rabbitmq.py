"""A private RabbitMQ broker, with a name daemon (epmd) of its own."""

import json

import kombu

from tests.servers import programs
from tests.servers.certificates import Certificate
from tests.servers.private import LOOPBACK, START_SECONDS, PrivateServer, unique_name

PROGRAMS = (programs.RABBITMQ_SERVER, programs.RABBITMQCTL)

_USER = "guest"
_PASSWORD = "guest"
_VHOSTS_AT_ONCE = 24


class RabbitMQ(PrivateServer):
    """One broker node; a virtual host per test keeps tests apart."""

    name = "rabbitmq"
    stopped_code = 143  # its start script reports the signal the way shells do

    def __init__(self, certificate: Certificate | None = None) -> None:
        """Where there is a *certificate*, it listens to TLS as well."""
        super().__init__()
        self._certificate = certificate
        self._unused_vhosts: list[str] = []
        self.tls_port = self.reserve_port()
        self.port = self.reserve_port()
        self._distribution_port = self.reserve_port()
        self._name_daemon_port = self.reserve_port()

    def set_up(self) -> None:
        for room in ("home", "mnesia", "log"):
            (self.folder / room).mkdir()
        (self.folder / "enabled_plugins").write_text("[].\n", encoding="utf-8")
        lines = ["log.file.level = info"]
        if self._certificate is not None:
            chain, key = self._certificate.write(self.folder)
            lines += [
                f"listeners.ssl.1 = {LOOPBACK}:{self.tls_port}",
                f"ssl_options.certfile = {chain}",
                f"ssl_options.keyfile = {key}",
            ]
        (self.folder / "rabbitmq.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def command(self) -> list[str]:
        return [str(programs.find(programs.RABBITMQ_SERVER))]

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder / "home"),  # the Erlang cookie is written there
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self._name_daemon_port),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_NODENAME": f"test{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def answers(self) -> bool:
        with self.connect() as connection:
            try:
                connection.connect()
            except (*connection.connection_errors, *connection.channel_errors):
                return False
            return True

    def connect(self, vhost: str = "/") -> kombu.Connection:
        """A client's connection, which opens itself when first used."""
        url = self.url(vhost).replace("rabbit:", "amqp:", 1)
        return kombu.Connection(url, connect_timeout=START_SECONDS)

    def url(self, vhost: str = "/") -> str:
        path = "%2F" if vhost == "/" else vhost
        return f"rabbit://{_USER}:{_PASSWORD}@{LOOPBACK}:{self.port}/{path}"

    def tls_url(self, vhost: str, host: str) -> str:
        """The transport URL of a virtual host by TLS, under the name or address *host*."""
        return f"rabbit://{_USER}:{_PASSWORD}@{host}:{self.tls_port}/{vhost}"

    def create_vhost(self) -> str:
        """An empty virtual host, open to the tests' user; returns its name.

        It goes with the broker.  Several are made at once: a call of the tool takes most of 1 s.
        """
        if not self._unused_vhosts:
            self._unused_vhosts = self._made_vhosts(_VHOSTS_AT_ONCE)
        return self._unused_vhosts.pop()

    def _made_vhosts(self, count: int) -> list[str]:
        names = [unique_name("vhost") for _number in range(count)]
        everything = {"user": _USER, "configure": ".*", "write": ".*", "read": ".*"}
        definitions = {
            "vhosts": [{"name": name} for name in names],
            "permissions": [{"vhost": name, **everything} for name in names],
        }
        self.control("import_definitions", "--format", "json", text_input=json.dumps(definitions))
        return names

    def control(self, *arguments: str, text_input: str | None = None) -> str:
        """Run ``rabbitmqctl`` against this broker and return what it prints."""
        program = str(programs.find(programs.RABBITMQCTL))
        return self.run_tool([program, "-q", *arguments], text_input)

    def close(self) -> None:
        """End it at once: an orderly end takes seconds, and nothing is kept."""
        self.kill()
        super().close()
