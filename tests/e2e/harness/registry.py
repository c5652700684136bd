# SPDX-License-Identifier: Apache-2.0
"""The registry's HTTP API, as far as tests push and read by themselves. No authentication."""

import json
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _ask(method: str, url: str, body: bytes | None = None, kind: str = ""):
    headers = {"Content-Type": kind} if kind else {"Accept": _MANIFEST}
    request = urllib.request.Request(url, data=body, method=method, headers=headers)
    return urllib.request.urlopen(request, timeout=60)


def push(archive: Path, base: str, repository: str, tag: str) -> str:
    """Pushes the one image of an OCI layout tar; returns its digest."""
    with tarfile.open(archive) as layout:

        def read(name: str) -> bytes:
            return layout.extractfile(name).read()

        entry = json.loads(read("index.json"))["manifests"][0]
        content = read("blobs/" + entry["digest"].replace(":", "/"))
        described = json.loads(content)
        for blob in [described["config"], *described["layers"]]:
            _push_blob(f"{base}/v2/{repository}/blobs", blob["digest"], read)
    _ask("PUT", f"{base}/v2/{repository}/manifests/{tag}", content, entry["mediaType"])
    return entry["digest"]


def manifest(base: str, repository: str, reference: str) -> dict:
    return json.loads(_ask("GET", f"{base}/v2/{repository}/manifests/{reference}").read())


def blob(base: str, repository: str, digest: str) -> bytes:
    return _ask("GET", f"{base}/v2/{repository}/blobs/{digest}").read()


def tags(base: str, repository: str) -> list[str]:
    """The tags of a repository; none when there is no such repository."""
    try:
        return (
            json.loads(_ask("GET", f"{base}/v2/{repository}/tags/list").read()).get("tags") or []
        )
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return []
        raise


def check(base: str) -> None:
    """Raises OSError when the registry does not answer."""
    _ask("GET", f"{base}/v2/").read()


def repositories(base: str) -> list[str]:
    return json.loads(_ask("GET", f"{base}/v2/_catalog?n=1000").read())["repositories"]


def _push_blob(blobs: str, digest: str, read) -> None:
    try:
        _ask("HEAD", f"{blobs}/{digest}")
        return
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
    upload = _ask("POST", f"{blobs}/uploads/", b"").headers["Location"]
    mark = "&" if "?" in upload else "?"
    content = read("blobs/" + digest.replace(":", "/"))
    _ask("PUT", f"{upload}{mark}digest={digest}", content, "application/octet-stream")
