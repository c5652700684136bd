# SPDX-License-Identifier: Apache-2.0
"""The API server without kubectl: for what must be fast, or must not miss an event."""

import http.client
import json
import ssl
from pathlib import Path
from urllib.parse import urlparse

import yaml

_SILENCE_SECONDS = 90


class Api:
    """Plain requests of the API server that a kubeconfig with a client certificate names."""

    def __init__(self, kubeconfig: Path):
        config = yaml.safe_load(kubeconfig.read_text())
        self._server = urlparse(config["clusters"][0]["cluster"]["server"])
        user = config["users"][0]["user"]
        authority = config["clusters"][0]["cluster"]["certificate-authority"]
        self._trust = ssl.create_default_context(cafile=authority)
        self._trust.load_cert_chain(user["client-certificate"], user["client-key"])

    def connect(self) -> http.client.HTTPSConnection:
        """Connects with its first request."""
        return http.client.HTTPSConnection(
            self._server.hostname, self._server.port, timeout=_SILENCE_SECONDS, context=self._trust
        )

    def ask(self, path: str) -> http.client.HTTPResponse:
        """Raises OSError or http.client.HTTPException; the answer's connection is the caller's."""
        return self._send("GET", path)

    def create(self, path: str, thing: dict) -> dict:
        return json.loads(self._send("POST", path, json.dumps(thing)).read())

    def _send(self, method: str, path: str, body: str | None = None) -> http.client.HTTPResponse:
        connection = self.connect()
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        if answer.status not in (200, 201):
            raise http.client.HTTPException(f"{path}: {answer.status} {answer.read(300)!r}")
        return answer
