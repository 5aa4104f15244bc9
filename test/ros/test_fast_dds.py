"""Whether Fast DDS shares memory, by the environment, and whether it then does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from loopback import PROFILE

from rnea_control.ros.middleware import (
    BUILTIN,
    LOCAL_ONLY,
    PROFILES,
    longest_discovery,
    transports,
    use_loopback,
)

CONFIG = Path(__file__).parents[2] / "config"
# Says what is expected, and what the process has mapped.
PROBE = """
import sys
import rclpy
from rnea_control.ros.middleware import transports
from rnea_control.ros.process import build
rclpy.init()
def node():
    return rclpy.create_node("probe")
probe = build(node) if "build" in sys.argv else node()
print("/dev/shm/fast" in open("/proc/self/maps").read(), bool(transports().shared_memory))
"""
SHARED_MEMORY = """<dds xmlns="http://www.eprosima.com"><profiles>
<transport_descriptors><transport_descriptor>
<transport_id>shm</transport_id><type>SHM</type></transport_descriptor></transport_descriptors>
<participant profile_name="p" is_default_profile="true"><rtps>
<userTransports><transport_id>shm</transport_id></userTransports>
<useBuiltinTransports>false</useBuiltinTransports></rtps></participant>
</profiles></dds>"""
NAME_ONLY = """<dds xmlns="http://www.eprosima.com"><profiles>
<participant profile_name="p" is_default_profile="true"><rtps>
<name>p</name></rtps></participant>
</profiles></dds>"""
pytestmark = pytest.mark.skipif(transports() is None, reason="the middleware is not Fast DDS")
NOWHERE = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}


def environment(profile: object = "", **others: str) -> dict[str, str]:
    return {**dict.fromkeys(PROFILES, str(profile)), **others}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROFILES, *LOCAL_ONLY, BUILTIN):
        monkeypatch.delenv(name, raising=False)


def test_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, words in (
        ({}, "no profile is set"),
        ({BUILTIN: "UDPv4"}, ""),
        ({BUILTIN: "LARGE_DATA"}, "no profile is set"),
        (environment(PROFILE), ""),
        (environment(PROFILE, ROS_LOCALHOST_ONLY="1"), "ROS_LOCALHOST_ONLY=1 adds it"),
        (environment(PROFILE, ROS_LOCALHOST_ONLY="0"), ""),
        (environment(CONFIG / "fastdds_real_time.xml"), ""),
        (environment("/nowhere.xml"), "/nowhere.xml does not turn it off"),
    ):
        with monkeypatch.context() as patch:
            for name, value in given.items():
                patch.setenv(name, value)
            reason = transports().shared_memory
        assert reason.startswith(words) and bool(reason) == bool(words)


@pytest.mark.parametrize(
    ("shares", "discovery", "shared"),
    [(False, "SYSTEM_DEFAULT", False), (False, "LOCALHOST", True), (True, "SYSTEM_DEFAULT", True)],
)
def test_process_maps_shared_memory_as_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: bool, discovery: str, shared: bool
) -> None:
    path = tmp_path / "profile.xml"
    path.write_text(SHARED_MEMORY if shares else Path(PROFILE).read_text())
    for name, value in environment(path, ROS_AUTOMATIC_DISCOVERY_RANGE=discovery).items():
        monkeypatch.setenv(name, value)
    assert probed() == [str(shared)] * 2


@pytest.mark.parametrize(
    ("given", "shared"),
    [({}, False), ({BUILTIN: "DEFAULT"}, True), (environment("profile.xml"), False)],
)
def test_our_executables_share_none_unless_told_to(tmp_path, monkeypatch, given, shared) -> None:
    monkeypatch.chdir(tmp_path)
    Path("profile.xml").write_text(NAME_ONLY)
    for name, value in {**given, **NOWHERE}.items():
        monkeypatch.setenv(name, value)
    assert probed() == ["True"] * 2
    assert probed("build") == [str(shared)] * 2


def probed(*arguments: str) -> list[str]:
    """Whether a process shares memory, and whether we say so."""
    command = [sys.executable, "-c", PROBE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("", 3.5),
        ("fastdds_localhost.xml", 1.5),
        ("fastdds_real_time.xml", 1.5),
    ],
)
def test_discovery_is_waited_for_as_long_as_the_profile_says(
    monkeypatch: pytest.MonkeyPatch, profile: str, expected: float
) -> None:
    for name in PROFILES:
        monkeypatch.delenv(name, raising=False)
        if profile:
            monkeypatch.setenv(name, str(Path(__file__).parents[2] / "config" / profile))
    assert longest_discovery() == expected


@pytest.mark.parametrize("local_only", sorted(LOCAL_ONLY))
def test_loopback_by_a_profile_shares_no_memory_and_discovers_sooner(
    local_only: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*PROFILES, BUILTIN, *LOCAL_ONLY):
        monkeypatch.setenv(name, "")  # restored afterwards, also where the function sets it
        monkeypatch.delenv(name)
    monkeypatch.setenv(local_only, LOCAL_ONLY[local_only])
    before = longest_discovery()
    assert transports().shared_memory
    use_loopback(CONFIG / "fastdds_localhost.xml")
    assert not transports().shared_memory
    assert longest_discovery() < before
    use_loopback(CONFIG / "fastdds_real_time.xml")
    assert transports().profile.endswith("fastdds_localhost.xml")
