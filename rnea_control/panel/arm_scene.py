"""The arm in three dimensions: measured, desired and previewed, and the force at its tool."""

from __future__ import annotations

import numpy as np
import trimesh
import viser

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, forward_kinematics, jacobian
from rnea_control.model import RobotModel
from rnea_control.model.robot_description import description_from_urdf
from rnea_control.panel.moment import Moment
from rnea_control.panel.robot_shapes import LinkShape, link_shapes

Color = tuple[int, int, int]
MEASURED: Color = (150, 156, 166)
DESIRED: Color = (40, 120, 220)
GHOST: Color = (250, 160, 30)
# Colors of a joint by the share of its effort limit.
TORQUE_COLORS: tuple[Color, ...] = (MEASURED, (245, 215, 90), (225, 40, 40))
COLOR_STEPS = 32  # a change by less is not sent
SHOWN_DIFFERENCE = 2e-3  # distance of a joint below which the second robot is hidden [rad] or [m]
MOVED = 1e-5  # change of a pose below which it is not sent
FORCE_SCALE = 0.01  # length of the arrow [m/N]
# The camera, in reaches of the arm. Arm and handle are in view on a page of 800 pixels too.
CENTER = np.array([0.2, 0.0, 0.25])  # point that it looks at
VIEW = np.array([1.1, 0.87, 0.4])  # its place, from there on
SMALLEST_REACH = 0.3  # [m]
LEAST_FORCE = 3.0  # [N]
LONGEST_ARROW = 1.0  # [m]
DAMPING = 0.05  # of the Jacobian's inverse, about the singular values of an arm that is near one


class RobotDrawing:
    """A robot in the scene, placed by forward kinematics.

    Args:
        scene: scene of the page.
        name: name of the node in the scene.
        model: model of the robot.
        shapes: shapes of its links.
        color: color of all links.
        opacity: 0 to 1.
    """

    def __init__(
        self,
        scene: viser.SceneApi,
        name: str,
        model: RobotModel,
        shapes: dict[str, LinkShape],
        color: Color,
        opacity: float = 1.0,
    ) -> None:
        self._model, self._workspace = model, Workspace(model)
        self._poses = np.zeros((len(model.link_names), 4, 4))
        self._sent = np.full_like(self._poses, np.nan)
        self._root = scene.add_frame(f"/{name}", show_axes=False, visible=False)
        self._links: dict[int, viser.MeshHandle] = {}
        for k, link in enumerate(model.link_names):
            if link in shapes:
                self._links[k] = scene.add_mesh_simple(
                    f"/{name}/{k}",
                    shapes[link].vertices,
                    shapes[link].faces,
                    color=color,
                    opacity=None if opacity == 1.0 else opacity,
                    side="double",
                    cast_shadow=False,
                    receive_shadow=False,
                )
        self._colors = dict.fromkeys(self._links, color)

    def hide(self) -> None:
        """Hides the robot."""
        self._root.visible = False

    def place(self, positions: FloatArray) -> None:
        """Shows the robot at joint positions, shape (nv,), [rad] or [m]; hides it if one is not
        known."""
        if not np.isfinite(positions).all():
            self.hide()
            return
        forward_kinematics(self._model, self._workspace, positions, self._poses)
        for k, mesh in self._links.items():
            if not np.abs(self._poses[k] - self._sent[k]).max() <= MOVED:
                mesh.wxyz = trimesh.transformations.quaternion_from_matrix(self._poses[k])
                mesh.position = self._poses[k, :3, 3]
                self._sent[k] = self._poses[k]
        self._root.visible = True

    def tint(self, link: int, color: Color) -> None:
        """Gives a link a color."""
        if link in self._links and self._colors[link] != color:
            self._links[link].color = self._colors[link] = color


class ArmScene:
    """The scene of a page.

    Args:
        server: server of the page.
        model: model of the arm.
        description: URDF of the arm.
        tip: link at which an external force is shown.
        simple: True if collision shapes are drawn where there are any.

    Attributes:
        remarks: what is not drawn as the URDF says, in words; empty if all is.
        force: external force at the tip, shape (3,), [N]; NaN while it is not known.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: RobotModel,
        description: str,
        tip: str,
        simple: bool = False,
    ) -> None:
        scene = server.scene
        self.model, self.tip = model, tip
        self._workspace, self._jacobian = Workspace(model), np.zeros((6, model.nv))
        self._poses = np.zeros((len(model.link_names), 4, 4))
        self._tip = model.link_names.index(tip)
        # Simpler shapes are enough for transparent robots.
        simple_shapes, remarks = link_shapes(description, ("collision", "visual"))
        shapes, self.remarks = (simple_shapes, remarks) if simple else link_shapes(description)
        scene.set_up_direction("+z")
        reach = self._reach()
        server.initial_camera.look_at = reach * CENTER
        server.initial_camera.position = reach * (CENTER + VIEW)
        scene.world_axes.visible = False
        # Shadows draw all triangles four times, too much for a browser without a graphics card.
        scene.configure_default_lights(cast_shadow=False)
        scene.add_grid("/floor", 4.0, 4.0, cell_size=0.1, section_size=0.5)
        self._measured = RobotDrawing(scene, "measured", model, shapes, MEASURED)
        self._desired = RobotDrawing(scene, "desired", model, simple_shapes, DESIRED, 0.35)
        self._ghost = RobotDrawing(scene, "ghost", model, simple_shapes, GHOST, 0.5)
        self._arrow = scene.add_arrows(
            "/force", np.zeros((1, 2, 3)), (225, 40, 160), shaft_radius=0.01, head_radius=0.025,
            head_length=0.05, visible=False,
        )  # fmt: skip
        self.force = np.full(3, np.nan)
        joints = {each.name: each for each in description_from_urdf(
            description.encode(), "robot_description").joints}  # fmt: skip
        self._moved = [model.link_names.index(joints[name].child) for name in model.joint_names]

    def _reach(self) -> float:
        """Length of the chain from the root link to the tip [m]."""
        forward_kinematics(self.model, self._workspace, np.zeros(self.model.nq), self._poses)
        return max(float(np.linalg.norm(self._poses[:, :3, 3], axis=1).max()), SMALLEST_REACH)

    def tip_pose(self, positions: FloatArray) -> FloatArray:
        """Pose of the tip in the root link's frame at joint positions, shape (4, 4)."""
        forward_kinematics(self.model, self._workspace, positions, self._poses)
        return self._poses[self._tip].copy()

    def show(self, moment: Moment, ghost: FloatArray | None = None) -> None:
        """Shows a moment; `ghost` are positions of a preview, shape (nv,), [rad] or [m]."""
        self._measured.place(moment.positions)
        for link, share in zip(self._moved, np.abs(effort_shares(self.model, moment)), strict=True):
            self._measured.tint(link, torque_color(share))
        self._place_if_elsewhere(self._desired, moment.desired, moment.positions)
        self._place_if_elsewhere(self._ghost, ghost, moment.positions)
        self._show_force(moment)

    def _place_if_elsewhere(
        self, drawing: RobotDrawing, positions: FloatArray | None, measured: FloatArray
    ) -> None:
        if positions is not None and np.abs(positions - measured).max() > SHOWN_DIFFERENCE:
            drawing.place(positions)
        else:
            drawing.hide()

    def _show_force(self, moment: Moment) -> None:
        self.force[:] = np.nan
        if not np.isfinite([moment.positions, moment.external_torques]).all():
            self._arrow.visible = False
            return
        J = jacobian(self.model, self._workspace, moment.positions, self.tip, self._jacobian)
        self.force[:] = wrench_at_tip(J, moment.external_torques)[:3]
        size = float(np.linalg.norm(self.force))
        if size < LEAST_FORCE:
            self._arrow.visible = False
            return
        start = self.tip_pose(moment.positions)[:3, 3]
        length = min(FORCE_SCALE * size, LONGEST_ARROW)
        self._arrow.points = np.array([[start, start + length / size * self.force]])
        self._arrow.visible = True


def wrench_at_tip(J: FloatArray, external_torques: FloatArray) -> FloatArray:
    """Force and moment on the tip, shape (6,), [N] and [Nm], that explain external torques of the
    joints, J^T F: the damped least-squares solution.

    Args:
        J: Jacobian of the tip, shape (6, nv).
        external_torques: shape (nv,), [Nm] or [N].
    """
    return np.linalg.solve(J @ J.T + DAMPING**2 * np.eye(6), J @ external_torques)


def torques(moment: Moment) -> FloatArray:
    """Torque of each joint, shape (nv,), [Nm] or [N]: the sum of the controller's terms, or the
    measured one where they are not known."""
    commanded = moment.torque_terms.sum(axis=0)
    return np.where(np.isfinite(commanded), commanded, moment.efforts)


def effort_shares(model: RobotModel, moment: Moment) -> FloatArray:
    """Torque of each joint over its effort limit, shape (nv,); NaN where it is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return torques(moment) / np.where(model.effort_limit > 0.0, model.effort_limit, np.nan)


def torque_color(share: float) -> Color:
    """Color of a joint that uses a share of its effort limit."""
    if not np.isfinite(share):
        return MEASURED
    at = min(round(share * COLOR_STEPS) / COLOR_STEPS, 1.0) * (len(TORQUE_COLORS) - 1)
    k = min(int(at), len(TORQUE_COLORS) - 2)
    red, green, blue = (
        round(a + (at - k) * (b - a))
        for a, b in zip(TORQUE_COLORS[k], TORQUE_COLORS[k + 1], strict=True)
    )
    return red, green, blue
