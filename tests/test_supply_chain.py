"""What may run by itself in the environment that `make install` creates.

litellm 1.82.7 and 1.82.8 were malicious releases that planted a `.pth` file: Python executes its `import` lines at
every start of the interpreter.
"""

from __future__ import annotations

import base64
import hashlib
import os
import site
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

LOWEST_LITELLM = Version("1.100")
EXPECTED = {
    "_editable_impl_otel_evals.pth": "otel-evals",
    "distutils-precedence.pth": "setuptools",
}
"""Every `.pth` file that may exist, and the distribution that brings it."""


def startup_files() -> list[Path]:
    folders = [*site.getsitepackages(), site.getusersitepackages()] if site.ENABLE_USER_SITE else site.getsitepackages()
    return [path for folder in folders for path in Path(folder).glob("*.pth")]


def test_no_unexpected_startup_file_is_installed() -> None:
    assert {path.name for path in startup_files()} <= set(EXPECTED)


def test_every_startup_file_is_as_its_distribution_recorded_it() -> None:
    for path in startup_files():
        recorded = {
            file.name: file.hash.value for file in metadata.files(EXPECTED[path.name]) or [] if file.hash is not None
        }
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        assert recorded.get(path.name) == digest, path.name


def test_no_startup_module_is_planted() -> None:
    planted = [
        path for folder in site.getsitepackages() for path in Path(folder).glob("*customize.py") if path.is_file()
    ]

    assert planted == []


def test_the_installed_litellm_is_none_of_the_malicious_releases() -> None:
    try:
        installed = Version(metadata.version("litellm"))
    except metadata.PackageNotFoundError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("litellm is not installed: pip install 'otel-evals[litellm]'")

    assert installed >= LOWEST_LITELLM


def test_the_litellm_extra_cannot_resolve_to_a_malicious_release() -> None:
    declared = [
        requirement
        for requirement in map(Requirement, metadata.requires("otel-evals") or [])
        if requirement.name == "litellm"
    ]

    assert declared
    for requirement in declared:
        assert not any(requirement.specifier.contains(bad) for bad in ("1.82.7", "1.82.8", "1.99.9"))
