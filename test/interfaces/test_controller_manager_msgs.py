"""controller_manager_msgs as these tests have it: as on the wire of the distribution."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from build_interfaces import distribution, missing_tools
from type_hash import type_hash

if find_spec("controller_manager_msgs") is None and missing_tools():
    pytest.skip(
        f"controller_manager_msgs: no {', '.join(missing_tools())}", allow_module_level=True
    )

# What the definitions of ros2_control 5.16 hash to; Jazzy's are the same.
HASHES = {
    "msg/ControllerManagerActivity": (
        "35b7de5d611b6780e89732de325f2f765eacdb8a7adfe5821a27af4a03a7c244"
    ),
    "msg/NamedLifecycleState": "b7947b6f8df8f7e93d1cb8d115842fb0eeddfa6fb5c7b86cc0f3cafd55be4c1f",
    "msg/ControllerState": "9a8780ab9814b6032978a07c6c7033cf1a7894ac8d948a6fb72afea07b04cc83",
    "msg/ChainConnection": "2daecd1da4b171f48b291c79747657a651eb1ab8821b68e38b1c88c736bba91c",
    "srv/ListControllers": "4f8e36bb1fa5afdeba45c2d56ae6a2097b1493a253f961dd6290c085033bd189",
    "srv/SwitchController": "d4ad10aa5da7808bc522d55d4123d8ef79de73d049d165639d7663ac37cc9895",
}


@pytest.mark.skipif(distribution() == "humble", reason="humble knows no type hashes")
@pytest.mark.parametrize("name", HASHES)
def test_type_hashes_are_those_of_the_package(name: str) -> None:
    assert type_hash("controller_manager_msgs", name) == (1, HASHES[name])
