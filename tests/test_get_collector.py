"""`collector-config/get-collector.sh`: takes a collector, or builds one once, or says what to do.

A scripted `go` stands in for the compiler here, so that no test waits for a build.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "collector-config" / "get-collector.sh"
TOOLS = (
    "bash",
    "cat",
    "chmod",
    "cut",
    "dirname",
    "flock",
    "head",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "sed",
    "sha256sum",
    "shasum",
    "sleep",
    "sort",
    "tail",
)

GO_THAT_BUILDS = """
echo "$*" >>"$GO_CALLS"
case "$1 $2" in
  'env GOVERSION') echo go1.26.0 ;;
  'env GOTOOLCHAIN') echo local ;;
  'env GOFLAGS') echo ;;
  'run '*) sleep 0.3; mkdir otelcol-evals; echo built >otelcol-evals/otelcol-evals; chmod +x otelcol-evals/otelcol-evals ;;
esac
"""


class Machine:
    """A machine with the basic tools and whatever a test installs."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.cache = folder / "cache"
        self.go_calls = folder / "go-calls"
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)

    def install(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!{self.bin / 'bash'}\n{script}\n")
        path.chmod(0o755)
        return path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT, *arguments],
            env={"PATH": str(self.bin), "XDG_CACHE_HOME": str(self.cache), "GO_CALLS": str(self.go_calls)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def get(self, *arguments: str) -> tuple[int, str, str]:
        started = self.start(*arguments)
        out, err = started.communicate(timeout=30)
        return started.returncode, out, err

    def builds(self) -> int:
        calls = self.go_calls.read_text().splitlines() if self.go_calls.exists() else []
        return len([call for call in calls if call.startswith("run ")])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_recent_otelcol_contrib_on_path_is_taken(machine: Machine) -> None:
    installed = machine.install("otelcol-contrib", "echo 'otelcol-contrib version 0.160.1'")

    code, out, _ = machine.get()

    assert (code, out) == (0, f"{installed}\n")


@pytest.mark.parametrize("answer", ["otelcol-contrib version 0.99.0", "no idea"])
def test_an_old_or_unknown_otelcol_contrib_is_refused_with_the_version_that_is_needed(
    machine: Machine, answer: str
) -> None:
    machine.install("otelcol-contrib", f"echo '{answer}'")

    code, out, err = machine.get()

    assert (code, out) == (1, "")
    assert "at least 0.144.0 is needed" in err


def test_without_go_the_error_names_the_remedy(machine: Machine) -> None:
    code, out, err = machine.get()

    assert (code, out) == (1, "")
    assert "install Go 1.25 or newer" in err
    assert "or otelcol-contrib 0.144.0 or newer" in err


def test_a_go_that_is_too_old_and_may_not_fetch_a_newer_one_is_refused(machine: Machine) -> None:
    machine.install("go", 'case "$2" in GOVERSION) echo go1.22.1 ;; GOTOOLCHAIN) echo local ;; esac')

    code, _, err = machine.get()

    assert code == 1
    assert "Go 1.22.1 is too old" in err


def test_only_the_path_of_the_built_collector_is_printed(machine: Machine) -> None:
    machine.install("go", GO_THAT_BUILDS)

    code, out, err = machine.get()

    assert code == 0
    assert os.access(out.removesuffix("\n"), os.X_OK)
    assert "this takes a few minutes" in err


def test_the_second_call_does_not_build(machine: Machine) -> None:
    machine.install("go", GO_THAT_BUILDS)

    assert machine.get()[1] == machine.get()[1]
    assert machine.builds() == 1


def test_after_a_build_that_was_killed_the_next_call_builds_anew(machine: Machine) -> None:
    machine.install(
        "go",
        'case "$1" in env) echo go1.26.0 ;; run) mkdir otelcol-evals; echo half >"$GO_CALLS"; sleep 60 ;; esac',
    )
    os.mkfifo(machine.go_calls)
    killed = machine.start()
    with machine.go_calls.open():  # opens when the build has begun
        pass
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=30)
    machine.go_calls.unlink()
    machine.install("go", GO_THAT_BUILDS)

    code, out, _ = machine.get()

    assert (code, Path(out.strip()).read_text()) == (0, "built\n")
    assert not list((machine.cache / "otel-evals").glob("build.*"))


@pytest.mark.skipif(shutil.which("flock") is None, reason="without flock concurrent callers each build")
def test_concurrent_callers_build_once(machine: Machine) -> None:
    machine.install("go", GO_THAT_BUILDS)

    callers = [machine.start() for _ in range(3)]
    paths = {caller.communicate(timeout=30)[0] for caller in callers}

    assert len(paths) == 1
    assert machine.builds() == 1


def test_where_the_builder_fails_the_sources_it_left_are_compiled(machine: Machine) -> None:
    machine.install(
        "go",
        """case "$1 $2" in
          'env GOVERSION') echo go1.26.0 ;;
          'env GOFLAGS') echo -buildvcs=false ;;
          'run '*) mkdir otelcol-evals; echo >otelcol-evals/main.go; exit 1 ;;
          'build '*) echo "$GOFLAGS" >otelcol-evals; chmod +x otelcol-evals ;;
        esac""",
    )

    code, out, _ = machine.get()

    assert code == 0
    assert Path(out.strip()).read_text() == "-buildvcs=false -mod=mod\n"


def test_a_failed_build_shows_why_and_leaves_nothing_behind(machine: Machine) -> None:
    machine.install(
        "go",
        """case "$1 $2" in 'env GOVERSION') echo go1.26.0 ;; 'run '*) echo no such module; exit 1 ;; esac""",
    )

    code, out, err = machine.get()

    assert (code, out) == (1, "")
    assert "no such module" in err
    assert [path.name for path in (machine.cache / "otel-evals").iterdir()] in ([], ["collector.lock"])


def test_no_build_fails_at_once_and_names_the_command_that_builds(machine: Machine) -> None:
    machine.install("go", GO_THAT_BUILDS)

    code, _, err = machine.get("--no-build")

    assert code == 1
    assert "make components" in err
    assert machine.builds() == 0
