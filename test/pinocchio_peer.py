"""The same robot in Pinocchio, with joint vectors in the order of a `RobotModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from rnea_control.model import Joint, Mimic, RobotModel
from rnea_control.model.rigid_body import rotation_to_z
from rnea_control.model.robot_description import description_from_joints

WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

# Theirs and ours, by index, and how: theirs is a multiple of ours plus an offset.
Row = tuple[int, int, float, float]


class Peer:
    """Maps q and v to Pinocchio's, and torques and matrices back.

    There a joint that mimics another one is one like any other: with G the matrix that makes its
    velocities of ours, torques are G^T tau and mass matrices G^T M G.
    """

    def __init__(
        self, model: RobotModel, peer: pin.Model, mimics: Mapping[str, Mimic] | None = None
    ) -> None:
        self.ours, self.model = model, peer
        self.data = peer.createData()
        self.G = np.zeros((peer.nv, model.nv))
        numbers: list[Row] = []
        angles: list[Row] = []
        for name in model.joint_names:
            joint = peer.joints[peer.getJointId(name)]
            self.G[joint.idx_v : joint.idx_v + joint.nv, model.v_slices[name]] = np.eye(joint.nv)
            _map_joint(joint, model.q_slices[name], Mimic(name), numbers, angles)
        for name in mimics or {}:
            joint, mimic = peer.joints[peer.getJointId(name)], _followed(mimics, name)
            self.G[joint.idx_v, model.v_slices[mimic.joint]] = mimic.multiplier
            _map_joint(joint, model.q_slices[mimic.joint], mimic, numbers, angles)
        self._numbers, self._angles = _columns(numbers), _columns(angles)
        assert np.abs(self.G).sum(axis=1).all()  # each of their velocities is one of ours
        links = [link for link in model.link_names if peer.existFrame(link, pin.FrameType.BODY)]
        self.frames = {link: peer.getFrameId(link, pin.FrameType.BODY) for link in links}
        assert set(model.link_names) - set(self.frames) <= {model.root_link}

    @classmethod
    def from_urdf(cls, path: Path, model: RobotModel, floating_base: bool = False) -> Peer:
        mimics = {}
        tags = {tag.get("name"): tag for tag in ElementTree.parse(path).findall("joint")}
        for name in model.mimic_joints:
            tag = tags[name].find("mimic")
            multiplier, offset = float(tag.get("multiplier", 1)), float(tag.get("offset", 0))
            mimics[name] = Mimic(tag.get("joint"), multiplier, offset)
        if not floating_base:
            return cls(model, pin.buildModelFromUrdf(str(path)), mimics)
        root, name = pin.JointModelFreeFlyer(), model.joint_names[0]
        return cls(model, pin.buildModelFromUrdf(str(path), root, name), mimics)

    @classmethod
    def from_joints(
        cls, model: RobotModel, joints: Sequence[Joint], inertias: Mapping[str, np.ndarray]
    ) -> Peer:
        peer = pin.Model()
        peer.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
        places = {model.root_link: (0, pin.SE3.Identity())}
        # depth first, as Pinocchio's crba needs it
        description = description_from_joints("mechanism", joints, inertias)
        for joint in description.joints:
            parent, place = places[joint.parent]
            place = place * pin.SE3(joint.rotation, joint.translation)
            if joint.type == "fixed":
                places[joint.child] = parent, place
            else:
                number = peer.addJoint(parent, joint_model(joint), place, joint.name)
                places[joint.child] = number, pin.SE3.Identity()
        for link, (number, place) in places.items():
            matrix = inertias[link]
            peer.appendBodyToJoint(number, inertia_of(matrix), place)
            peer.addFrame(pin.Frame(link, number, 0, place, pin.FrameType.BODY))
        rotors = [np.full(joint.nv, joint.armature) for joint in description.joints if joint.nv]
        peer.armature = np.concatenate([np.zeros(0), *rotors])
        return cls(model, peer, {joint.name: joint.mimic for joint in joints if joint.mimic})

    def q(self, q: np.ndarray) -> np.ndarray:
        result = pin.neutral(self.model)
        theirs, ours, ratio, offset = self._numbers
        result[theirs] = ratio * q[ours] + offset
        theirs, ours, ratio, offset = self._angles
        angles = ratio * q[ours] + offset
        result[theirs], result[theirs + 1] = np.cos(angles), np.sin(angles)
        return result

    def v(self, v: np.ndarray) -> np.ndarray:
        return self.G @ v

    def rnea(self, q, v, a, forces=None) -> np.ndarray:
        arguments = [self.model, self.data, self.q(q), self.v(v), self.v(a)]
        if forces is not None:
            arguments.append(self.joint_forces(forces))
        return self.G.T @ pin.rnea(*arguments)

    def joint_forces(self, forces: np.ndarray) -> list[pin.Force]:
        result = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, force in zip(self.ours.link_names, forces, strict=True):
            if link in self.frames:
                frame = self.model.frames[self.frames[link]]
                result[frame.parentJoint] += frame.placement * pin.Force(force)
        return result

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        M = pin.crba(self.model, self.data, self.q(q))
        return self.matrix(np.triu(M) + np.triu(M, 1).T)

    def matrix(self, matrix: np.ndarray) -> np.ndarray:
        return self.G.T @ matrix @ self.G

    def root_link(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, center of mass, and the force that holds it up: their algorithms leave it out."""
        root = self.model.inertias[0]
        return root.mass, root.lever, -root.mass * self.ours.gravity

    def place_links(self, q: np.ndarray) -> dict[str, pin.SE3]:
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return {link: self.data.oMf[frame] for link, frame in self.frames.items()}


def _map_joint(
    joint: pin.JointModel, ours: slice, mimic: Mimic, numbers: list[Row], angles: list[Row]
) -> None:
    """Adds a row for each of a joint's positions; an angle may be a cosine and a sine there."""
    of_circle = joint.nq == 2 and ours.stop - ours.start == 1
    rows, count = (angles, 1) if of_circle else (numbers, joint.nq)
    for k in range(count):
        rows.append((joint.idx_q + k, ours.start + k, mimic.multiplier, mimic.offset))


def _columns(rows: list[Row]) -> tuple[np.ndarray, ...]:
    theirs, ours, ratio, offset = np.reshape(rows, (-1, 4)).T
    return theirs.astype(int), ours.astype(int), ratio, offset


def _followed(mimics: Mapping[str, Mimic], name: str) -> Mimic:
    """What a joint does by the one at the end of a chain of mimicking joints."""
    mimic = mimics[name]
    while mimic.joint in mimics:
        leader = mimics[mimic.joint]
        offset = mimic.multiplier * leader.offset + mimic.offset
        mimic = Mimic(leader.joint, mimic.multiplier * leader.multiplier, offset)
    return mimic


def inertia_of(matrix: np.ndarray) -> pin.Inertia:
    mass, second_moment = matrix[3, 3], matrix[:3, :3]
    center = matrix[:3, 3] / mass
    about_center = second_moment - mass * np.outer(center, center)
    return pin.Inertia(mass, center, np.trace(about_center) * np.eye(3) - about_center)


def joint_model(joint: Joint) -> pin.JointModel:
    axis, second = joint.axis, joint.second_axis
    if joint.type in ("revolute", "continuous"):
        return pin.JointModelRevoluteUnaligned(axis)
    if joint.type == "prismatic":
        return pin.JointModelPrismaticUnaligned(axis)
    if joint.type == "helical":
        return pin.JointModelHelicalUnaligned(axis, joint.pitch)
    if joint.type == "universal":
        turns = [pin.JointModelRevoluteUnaligned(direction) for direction in (axis, second)]
        return _chain(*turns)
    if joint.type == "planar":
        x, y, normal = rotation_to_z(axis).T
        slides = [pin.JointModelPrismaticUnaligned(direction) for direction in (x, y)]
        return _chain(*slides, pin.JointModelRevoluteUnaligned(normal))
    if joint.type == "cylindrical":
        return _chain(pin.JointModelPrismaticUnaligned(axis), pin.JointModelRevoluteUnaligned(axis))
    if joint.type == "spherical":
        return pin.JointModelSpherical()
    if joint.type == "floating":
        return pin.JointModelFreeFlyer()
    raise AssertionError(joint.type)


def _chain(*models: pin.JointModel) -> pin.JointModel:
    composite = pin.JointModelComposite(models[0])
    for model in models[1:]:
        composite.addJoint(model)
    return composite
