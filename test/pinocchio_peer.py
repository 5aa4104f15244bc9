"""The same robot in Pinocchio, with joint vectors in the order of a `RobotModel`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from rnea_control.model import Joint, Mimic, RobotModel
from rnea_control.model.robot_description import description_from_joints
from rnea_control.model.rotations import rotation_to_z


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
        self.mimics = mimics or {}
        self.joints = [peer.joints[peer.getJointId(name)] for name in model.joint_names]
        self.G = np.zeros((peer.nv, model.nv))
        for name, joint in zip(model.joint_names, self.joints, strict=True):
            self.G[joint.idx_v : joint.idx_v + joint.nv, model.v_slices[name]] = np.eye(joint.nv)
        for name, mimic in self.mimics.items():
            row = peer.joints[peer.getJointId(name)].idx_v
            self.G[row, model.v_slices[mimic.joint]] = mimic.multiplier

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
        for joint in description_from_joints("mechanism", joints, inertias).joints:
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
        made = cls(model, peer)
        peer.armature = made.v(model.armature)
        made.data = peer.createData()
        return made

    def q(self, q: np.ndarray) -> np.ndarray:
        result = pin.neutral(self.model)
        for name, joint in zip(self.ours.joint_names, self.joints, strict=True):
            self._set(result, joint, q[self.ours.q_slices[name]])
        for name, mimic in self.mimics.items():
            leader = q[self.ours.q_slices[mimic.joint]]
            joint = self.model.joints[self.model.getJointId(name)]
            self._set(result, joint, mimic.multiplier * leader + mimic.offset)
        return result

    @staticmethod
    def _set(q: np.ndarray, joint: pin.JointModel, values: np.ndarray) -> None:
        if joint.nq == 2 and len(values) == 1:  # continuous: cosine and sine
            values = np.array([np.cos(values[0]), np.sin(values[0])])
        q[joint.idx_q : joint.idx_q + joint.nq] = values

    def v(self, v: np.ndarray) -> np.ndarray:
        return self.G @ v

    def rnea(self, q, v, a, forces=None) -> np.ndarray:
        arguments = [self.model, self.data, self.q(q), self.v(v), self.v(a)]
        if forces is not None:
            arguments.append(self.joint_forces(forces))
        return self.G.T @ pin.rnea(*arguments)

    def joint_forces(self, forces: np.ndarray) -> list[pin.Force]:
        """Of forces on links, in their frames."""
        result = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, force in zip(self.ours.link_names, forces, strict=True):
            if self.model.existFrame(link, pin.FrameType.BODY):
                frame = self.model.frames[self.model.getFrameId(link, pin.FrameType.BODY)]
                result[frame.parentJoint] += frame.placement * pin.Force(force)
        return result

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        M = pin.crba(self.model, self.data, self.q(q))
        return self.matrix(np.triu(M) + np.triu(M, 1).T)

    def matrix(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix of joint space in our order."""
        return self.G.T @ matrix @ self.G


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
