"""The table of topics and services is what the node has in the graph, and what it is made from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from dds import ros, wait_for
from node_bench import GOOD, Bench
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState

from rnea_control.control import ControllerState
from rnea_control.control.references import FIRST_TARGET, TargetKind
from rnea_control.node import interfaces
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.interfaces import CONTROL_MSGS, INTERFACES, LoopInput, StateTopic
from rnea_control.node.state_topics import Filled

POLICY = Path(__file__).parents[2] / "config" / "sros2_policy.xml"
NAME = "rnea_controller"
FOUND = {"out": "publisher", "in": "subscriber", "service": "service", "client": "client"}
Endpoints = set[tuple[str, str, str]]  # direction, name within the namespace, type


def endpoints(bench: Bench, node: str) -> Endpoints:
    """What the nodes of a process whose names begin with `node` have in the graph."""
    of_process = re.compile(f"_?{node}(_|$)")
    return {
        (direction, topic.replace(f"/{node}/", "~/"), kind)
        for name, namespace in bench.peer.get_node_names_and_namespaces()
        if of_process.match(name)
        for direction, what in FOUND.items()
        for topic, kinds in getattr(bench.peer, f"get_{what}_names_and_types_by_node")(
            name, namespace
        )
        for kind in kinds
    }


def of_table() -> Endpoints:
    """The rows whose packages are installed, but for the action, which another process serves."""
    return {
        (row.direction, row.name if row.name[0] in "~/" else f"/{row.name}", row.type)
        for row in ROWS
        if row.direction != "action" and (row.needs is None or row.needs.is_installed)
    }


def tilt(message: JointState, loop: ControlLoop) -> Filled:
    """A state topic that the node does not know."""
    message.name = ["sum"]

    def filled(stamp: int, state: ControllerState) -> JointState:
        message.position = [float(state.measured[0].sum())]
        return message

    return filled


TILT = StateTopic("~/tilt", "sensor_msgs/msg/JointState", "sum of the positions", fill=tilt)
ROWS = (*INTERFACES, TILT)
# With and without control_msgs: a domain each, as the graph lists ended nodes of the same name.
DOMAINS = {"with control_msgs": 73, "without": 76}


def test_each_kind_of_targets_has_one_topic() -> None:
    kinds = [row.kind for row in INTERFACES if isinstance(row, LoopInput)]
    assert sorted(kind for kind in kinds if kind >= FIRST_TARGET) == list(TargetKind)


@pytest.fixture(scope="module", params=DOMAINS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A node whose table has one more row."""
    with pytest.MonkeyPatch.context() as patch, ros(DOMAINS[request.param]):
        if request.param == "without":
            for package in ("control_msgs", "control_msgs.msg", "control_msgs.srv"):
                patch.setitem(sys.modules, package, None)
        elif not CONTROL_MSGS.is_installed:
            pytest.skip("the ROS 2 wheels lack control_msgs")
        patch.setattr(interfaces, "INTERFACES", ROWS)
        # The node subscribes to robot_description while no parameter has it.
        bench = Bench(**GOOD | {"robot_description": "", "state_publish_rate": 500.0}, start=False)
        bench.node.receive_description(GOOD["robot_description"])
        bench.await_matches()
        yield bench
        bench.destroy()


def test_table_is_the_graph_and_the_policy_allows_it(bench: Bench) -> None:
    bare = LifecycleNode("bare")

    def own() -> Endpoints:
        return endpoints(bench, NAME) - endpoints(bench, "bare")

    expected = of_table()
    wait_for(lambda: own() >= expected and endpoints(bench, "bare"), bench.spin)
    served = {each for each in own() if each[0] != "client" and "controller_manager" not in each[1]}
    assert served == expected
    allowed = ElementTree.parse(POLICY)
    topics, services = ({each.text for each in allowed.iter(tag)} for tag in ("topic", "service"))
    for direction, name, _ in endpoints(bench, NAME) - {("out", TILT.name, TILT.type)}:
        if direction == "service":
            assert name in services
        else:
            granted = services if direction == "client" else topics
            assert name.replace("~", f"/{NAME}").removeprefix("/") in granted, name
    bare.destroy_node()


def test_qos_of_the_table_is_that_of_the_graph(bench: Bench) -> None:
    for row in ROWS:
        available = row.needs is None or row.needs.is_installed
        if not isinstance(row.qos, QoSProfile) or row.direction == "action" or not available:
            continue
        kind = "publishers" if row.direction == "out" else "subscriptions"
        infos = getattr(bench.node, f"get_{kind}_info_by_topic")
        found = [
            info.qos_profile
            for info in infos(bench.node.resolve_topic_name(row.name))
            if info.node_name.startswith((NAME, f"_{NAME}"))
        ]
        assert found, row.name
        for qos in found:
            latched = row.qos.durability is DurabilityPolicy.TRANSIENT_LOCAL
            assert qos.reliability is row.qos.reliability, row.name
            assert (qos.durability is DurabilityPolicy.TRANSIENT_LOCAL) is latched, row.name


def test_a_row_is_all_that_a_new_state_topic_needs(bench: Bench) -> None:
    """Also where control_msgs is missing, which torque_terms does not need either."""
    sums: list[JointState] = []
    terms: list[JointState] = []
    for topic, received in (("tilt", sums), ("torque_terms", terms)):
        bench.peer.create_subscription(JointState, f"{NAME}/{topic}", received.append, 1)
    bench.answer(q=np.array([0.3, -0.1]))
    wait_for(lambda: sums and terms, bench.spin)
    assert sums[-1].name == ["sum"]
    np.testing.assert_allclose(sums[-1].position, [0.2], atol=1e-9)
    line = "| out | `~/tilt` | sensor_msgs/JointState | sum of the positions |"
    assert line in "\n".join(interfaces.markdown())
