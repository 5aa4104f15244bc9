"""Publishers of a topic, identified by their GIDs.

A node's name is for people: two nodes may have the same one. A GID is unique. Its first bytes are
the GID of the DDS participant, of which a process has one for each context. So messages of one
process on two topics can be recognized as from the same process.
"""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

from rnea_control.ros.rcl_calls import GID_SIZE, PARTICIPANT_SIZE

# Name that rmw gives to a node of which only the publisher has been discovered so far.
UNKNOWN = "_NODE_NAME_UNKNOWN_"


def participant(gid: bytes) -> bytes:
    """The participant of a publisher with this GID; valid only where messages have the GIDs of the
    graph (`Proof.BY_GID`)."""
    return gid[:PARTICIPANT_SIZE]


def gid_of(endpoint: Any) -> bytes:
    """The GID of a publisher that the graph has listed."""
    return bytes(endpoint.endpoint_gid[:GID_SIZE])


def publishers_of(node: Node, topic: str) -> dict[bytes, str]:
    """The full names of the nodes that publish on a topic, by the GIDs of their publishers; empty
    for a name that is not known yet."""
    return {
        gid_of(info): ""
        if info.node_name == UNKNOWN
        else f"{info.node_namespace.rstrip('/')}/{info.node_name}"
        for info in node.get_publishers_info_by_topic(topic)
    }


def publisher_names(node: Node, topic: str) -> list[str]:
    """The full names of the nodes that publish on a topic, as far as they are known."""
    return [name for name in publishers_of(node, topic).values() if name]


def described(name: str, gid: bytes) -> str:
    """Name and GID of a publisher, for a message to users."""
    return f"{name or 'a node of unknown name'} (GID {gid.hex()})"
