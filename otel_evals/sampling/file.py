"""Takes sampling settings from the YAML file while the program runs: edit the file, and the rates follow.

Only what concerns sampling is taken: `rate`, `rates`, `rules`, `judge_experiments`, `paused`. All else in the file
needs a restart. A file that is refused changes nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from otel_evals.sampling.rate import Rate
from otel_evals.sampling.rules import Rule
from otel_evals.sampling.sampler import Sampler
from otel_evals.settings import Settings

__all__ = ["RatesFile"]

logger = logging.getLogger(__name__)


class _Section(BaseModel):
    """The part of the settings file that may change while the program runs."""

    model_config = ConfigDict(extra="ignore")

    rate: Rate = 0.0
    rates: dict[str, Rate] = {}
    rules: tuple[Rule, ...] = ()
    judge_experiments: bool = False
    paused: bool = False


class RatesFile:
    """One settings file and what was last taken from it."""

    def __init__(self, path: str, sampler: Sampler, settings: Settings) -> None:
        """Changes from now on are taken; what the file says now is part of the settings already.

        Args:
            path: the file in `OTEL_EVALS_CONFIG`.
            sampler: is changed.
            settings: as at the start; what the file no longer says falls back to them.
        """
        self._path = path
        self._sampler = sampler
        self._settings = settings
        self._seen = self._signature()
        self._taken = self._sampling_part_or_none()

    def poll(self) -> bool:
        """Look whether the file changed, and take it if so. Never raises. Returns whether sampling changed."""
        signature = self._signature()
        if signature == self._seen:
            return False
        self._seen = signature
        return self.reload()

    def reload(self) -> bool:
        """Read the file whether it changed or not (SIGHUP). Never raises. Returns whether sampling changed."""
        try:
            section = self._sampling_part()
            if section == self._taken:
                return False
            self._take(section)
        except (OSError, ValueError, yaml.YAMLError) as error:
            logger.warning("otel-evals: %s refused, sampling stays as it is: %s", self._path, _reason(error))
            return False
        self._taken = section
        return True

    def _take(self, section: _Section) -> None:
        given = {name: getattr(section, name) for name in section.model_fields_set if name != "paused"}
        before = self._taken.model_copy(update={"paused": False}) if self._taken else None
        if before is None or section.model_copy(update={"paused": False}) != before:
            self._sampler.reconfigure(self._settings.model_copy(update=given), source=self._path)
        if self._taken is None or section.paused != self._taken.paused:
            change = self._sampler.pause if section.paused else self._sampler.resume
            change(source=self._path)

    def _sampling_part(self) -> _Section:
        with open(self._path, encoding="utf-8") as file:
            content = yaml.safe_load(file)
        if not isinstance(content, Mapping):
            raise ValueError("the file holds no settings (perhaps half written); write `name: value` lines")
        return _Section.model_validate(dict(content))

    def _sampling_part_or_none(self) -> _Section | None:
        try:
            return self._sampling_part()
        except (OSError, ValueError, yaml.YAMLError):
            return None

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        # The inode too: editors and Kubernetes replace files, within the same second and of the same size.
        return status.st_ino, status.st_mtime_ns, status.st_size


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error).replace("\n", " ")
    return "; ".join(_line(item) for item in error.errors(include_url=False))


def _line(item: Any) -> str:
    name = ".".join(map(str, item["loc"]))
    return f"{name}={repr(item.get('input'))[:80]}: {item['msg'].removeprefix('Value error, ')}"
