"""The compose file, the Kubernetes manifests and Grafana's provisioning hold together and name what exists."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.components.collector import CONFIG_FOLDER

COMPOSE = yaml.safe_load((CONFIG_FOLDER / "docker-compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
KUBERNETES = sorted((CONFIG_FOLDER / "kubernetes").glob("*.yaml"))


def manifests() -> list[dict[str, Any]]:
    return [document for path in KUBERNETES for document in yaml.safe_load_all(path.read_text())]


def images() -> list[str]:
    containers = [
        container
        for manifest in manifests()
        if manifest["kind"] == "Deployment"
        for container in manifest["spec"]["template"]["spec"]["containers"]
    ]
    collectors = [m["spec"] for m in manifests() if m["kind"] == "OpenTelemetryCollector"]
    return [holder["image"] for holder in [*SERVICES.values(), *containers, *collectors]]


@pytest.mark.parametrize("image", images())
def test_every_image_is_pinned_to_a_release(image: str) -> None:
    _, _, tag = image.rpartition(":")

    assert len(tag.removeprefix("v").split(".")) == 3, image


@pytest.mark.parametrize("service", SERVICES)
def test_every_published_port_is_bound_to_loopback(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", []))


@pytest.mark.parametrize("service", SERVICES)
def test_everything_that_is_mounted_exists(service: str) -> None:
    for volume in SERVICES[service].get("volumes", []):
        source, _, _ = volume.partition(":")
        if source.startswith("."):
            assert (CONFIG_FOLDER / source).exists(), source
        else:
            assert source in COMPOSE["volumes"]


def test_the_health_check_asks_every_other_service() -> None:
    [check] = [service["healthcheck"]["test"][1] for service in SERVICES.values() if "healthcheck" in service]

    assert all(f"{name}:" in check for name in SERVICES if name != "health")


def test_data_sources_refer_to_each_other_and_to_services_of_the_stack() -> None:
    sources = yaml.safe_load((CONFIG_FOLDER / "grafana/provisioning/datasources/datasources.yaml").read_text())
    by_uid = {source["uid"]: source for source in sources["datasources"]}

    assert {source["url"].removeprefix("http://").partition(":")[0] for source in by_uid.values()} <= set(SERVICES)
    linked = [
        *by_uid["prometheus"]["jsonData"]["exemplarTraceIdDestinations"],
        by_uid["jaeger"]["jsonData"]["tracesToLogsV2"],
        *by_uid["loki"]["jsonData"]["derivedFields"],
    ]
    assert [link["datasourceUid"] for link in linked] == ["jaeger", "loki", "jaeger"]


@pytest.mark.components
def test_the_collector_accepts_the_configuration_of_the_operator_resource(
    collector_binary: Path, tmp_path: Path
) -> None:
    [resource] = [manifest for manifest in manifests() if manifest["kind"] == "OpenTelemetryCollector"]
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(resource["spec"]["config"]))

    checked = subprocess.run(
        [collector_binary, "validate", f"--config={config}"], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stderr


def test_kubernetes_manifests_follow_the_api_schemas() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate")

    for manifest in manifests():
        if not manifest["apiVersion"].startswith("opentelemetry.io/"):
            kubernetes_validate.validate(manifest, "1.35", strict=True)


def test_no_manifest_contains_a_key() -> None:
    [deployment] = [manifest for manifest in manifests() if manifest["kind"] == "Deployment"]
    environment = deployment["spec"]["template"]["spec"]["containers"][0]["env"]

    [key] = [variable for variable in environment if "KEY" in variable["name"]]
    assert set(key["valueFrom"]) == {"secretKeyRef"}
