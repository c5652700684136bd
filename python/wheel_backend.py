# SPDX-License-Identifier: Apache-2.0
"""A build backend (PEP 517) for a package of pure Python, without dependencies.

The wheel is reproducible: equal sources give equal bytes.
"""
import base64
import hashlib
import re
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
TAG = "py3-none-any"


def field(name):
    """Returns a string of pyproject.toml: Python 3.9 and 3.10 have no parser for it."""
    return re.search(rf'^{name} = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M).group(1)


def metadata():
    return (f"Metadata-Version: 2.1\nName: {field('name')}\nVersion: {field('version')}\n"
            f"Summary: {field('description')}\nLicense: Apache-2.0\n"
            f"Requires-Python: {field('requires-python')}\n")


def record_line(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    name, version = field("name"), field("version")
    described = f"{name}-{version}.dist-info"
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes()
             for path in sorted((ROOT / name).rglob("*.py"))}
    files[f"{described}/METADATA"] = metadata().encode()
    files[f"{described}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: cachewarm\n"
                                   f"Root-Is-Purelib: true\nTag: {TAG}\n").encode()
    record = f"{described}/RECORD"
    files[record] = ("".join(record_line(*item) for item in files.items()) +
                     f"{record},,\n").encode()
    wheel = f"{name}-{version}-{TAG}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("build a wheel: the package has no source distribution")
