"""What a wheel holds, and that imports point downwards."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import scalify

ROOT = Path(__file__).parent.parent
PACKAGES = {"scalify", "scalify_neuron", "scalify_xla", "scalify_rules"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    info = f"scalify_verify-{scalify.__version__}.dist-info"
    assert {name.split("/")[0] for name in wheel.namelist()} == {*PACKAGES, info}
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel.namelist())
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_every_module_of_the_source_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    folders = (ROOT, ROOT / "adapters" / "neuron", ROOT / "adapters" / "xla", ROOT / "rules")
    source = {str(path.relative_to(folder)) for folder in folders for package in PACKAGES for path in (folder / package).rglob("*.py")}
    assert source == {name for name in wheel.namelist() if name.endswith(".py")}


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="scalify")
    assert command.value == "scalify.cli:command"


def test_imports_point_downwards() -> None:
    script = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([script, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
