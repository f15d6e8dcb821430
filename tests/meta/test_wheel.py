"""What is in the wheel: the package, its type marker, its data and its licence, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (TOP / "pregel").is_dir(), reason="needs the source that a wheel is built from"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", out, TOP], check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def content(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_every_tracked_kind_of_file_of_the_package(content: set[str]) -> None:
    files = [path for path in (TOP / "pregel").rglob("*") if path.is_file() and "__pycache__" not in path.parts]

    expected = {path.relative_to(TOP).as_posix() for path in files}

    expected |= {f"pregel/guide/bundled/{path.relative_to(TOP)}" for path in [TOP / "README.md", *TOP.glob("docs/*")]}

    assert {"pregel/py.typed"} <= expected
    assert expected == {name for name in content if name.startswith("pregel/")}


def test_the_wheel_installs_one_top_level_package(content: set[str]) -> None:
    tops = {name.split("/")[0] for name in content}

    assert {"pregel", "pregel-0.1.0.dist-info"} == tops


def test_the_wheel_carries_licence_entry_point_and_version(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = {Path(name).name: archive.read(name) for name in archive.namelist() if ".dist-info/" in name}

    metadata = message_from_bytes(info["METADATA"])

    assert "MIT" == metadata["License-Expression"]
    assert "0.1.0" == metadata["Version"]
    assert b"MIT License" in info["LICENSE"]
    assert b"pregel = pregel.cli:main" in info["entry_points.txt"]


def test_the_core_needs_three_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = message_from_bytes(archive.read("pregel-0.1.0.dist-info/METADATA"))

    needed = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]

    assert ["msgpack", "orjson", "typing-extensions"] == sorted(need.split(">")[0] for need in needed)
