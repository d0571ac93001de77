"""Looking at a daemon over HTTP, as Prometheus and load balancers do."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.world.process import Daemon

SETTINGS = {"metrics_endpoint": {"enabled": True, "port": 0}}
ANNOUNCED = re.compile(r"Metrics and health are served at (http://\S+)/")
SECONDS = 20


@dataclass(frozen=True)
class Endpoint:
    url: str

    @classmethod
    def of(cls, daemon: Daemon) -> Endpoint:
        """The one that *daemon* has named in its log."""
        found = ANNOUNCED.search(daemon.log)
        assert found, daemon.log
        return cls(found[1])

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Every value by the name of the series, without prefix, and the values of its labels."""
        status, text = self.get("/metrics")
        assert status == 200, text
        return {
            (sample.name.removeprefix("nova_scheduler_"), *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def checks(self, path: str) -> tuple[int, dict[str, str]]:
        """Status, and by name of the check the worst that any worker says."""
        status, text = self.get(path)
        document: dict[str, Any] = json.loads(text)
        order = ("pass", "warn", "fail")
        worst: dict[str, str] = {}
        for check in document["checks"]:
            name = check["name"]
            worst[name] = max(worst.get(name, "pass"), check["status"], key=order.index)
        assert document["status"] == max(worst.values(), key=order.index)
        return status, worst

    def failing(self, path: str) -> tuple[int, list[str]]:
        """Status, and the names of the checks that fail."""
        status, worst = self.checks(path)
        return status, [name for name, state in worst.items() if state == "fail"]
