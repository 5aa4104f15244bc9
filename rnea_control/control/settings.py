"""The settings of a controller and its supervisor: rows of the table of parameters, by the names
that programs use.

Meaning, unit and range of a field are documented with its row (docs/parameters.md). With a joint in
the row's name the field is an array of shape (nv,); infinity is no bound. The table checks the
fields when the controller takes them; only values that are not numbers are checked here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray, Matrix
from rnea_control.control import layout
from rnea_control.control.laws import JOINT_LAWS, OWN_LAWS, TASK_LAWS, ControlLaw
from rnea_control.control.motion import Tolerances, end_slack
from rnea_control.control.own_law import OwnLaw
from rnea_control.control.references import Reference
from rnea_control.dynamics import Workspace, crba, gravity, jacobian
from rnea_control.exceptions import ControllerError, ParameterError, listed, quoted
from rnea_control.model import RobotModel
from rnea_control.model.bodies import LINK_BODY, LINK_COLUMNS, LINK_ROTATION
from rnea_control.parameters.parameter import JOINT, Parameter
from rnea_control.parameters.settings import Settings, row
from rnea_control.parameters.table import OBSERVER, ROBOT, ROWS

WIDEST_MARGIN = 0.1  # margin of a soft limit, at most, as a part of the joint's range
DEFAULT_TORQUE_RISE = 0.02  # time to the effort limit at the default torque rate limit [s]
LEAST_HOLDING_STIFFNESS = 50.0, 2.0  # least stiffness of a tip that holds the arm [N/m], [Nm/rad]
DEFAULT_POSITION_ERROR = 0.3  # default of max_position_errors [rad]
DEFAULT_SLIDING_ERROR = 0.03  # default of max_position_errors of a prismatic joint [m]
SLIDING_ERROR_SHARE = 0.1  # that default is at most this part of the joint's range
DEFAULT_POWER_SHARE = 0.024  # default of motion_bounds.driving_power, as a part of all power
DEFAULT_DISTURBANCE_SHARE = 0.3  # default bound of a disturbance, as a part of the effort limit
DEFAULT_THRESHOLD_SHARE = 0.25  # default threshold of a collision, as a part of the effort limit
SLIDING_DISTANCE = 0.1  # stream.max_distance of a prismatic joint, per rad [m]
STREAM_SHARE = 0.9  # velocity limit of a stream, which the arm may overshoot, per limit of the URDF
RISE_TIME = 0.2  # shortest time in which a stream reaches the largest velocity [s]
EFFORT_SHARE = 0.9  # part of the effort limit for the default acceleration of a stream
LEAST_EFFORT_SHARE = 0.1  # the same, of a joint that needs it for gravity, at least
STREAM_POSTURES = 16  # random postures for which that default is computed
PAYLOAD_SHARE = 0.3  # default of motion_bounds.unmodeled_payload, as a part of an effort limit
PAYLOAD_POSTURES = 32  # random postures for which the torque of a payload is computed
LEAST_LEVER = 0.05  # lever of a joint that carries a payload, at least [m]
UNLIMITED_SPEED = 10.0  # default of a missing velocity limit [rad/s]
UNLIMITED_SLIDING_SPEED = 2.0  # default of a missing velocity limit of a prismatic joint [m/s]
# Stiffness and damping of a braced controller, [1/s^2] and [1/s], that hold an arm from 50 states
# per second on.
BRACING_GAINS = 100.0, 20.0


def reference_speed(model: RobotModel) -> FloatArray:
    """Velocity limits, with defaults for missing ones, shape (nv,), [rad/s] or [m/s]."""
    slides = np.array([kind == "prismatic" for kind in model.joint_types])
    fast = np.where(slides, UNLIMITED_SLIDING_SPEED, UNLIMITED_SPEED)
    limit = model.velocity_limit
    return np.where(np.isfinite(limit) & (limit > 0.0), limit, fast)


def allowed_acceleration(model: RobotModel, limit: FloatArray) -> FloatArray:
    """Accelerations of single joints at rest that effort limits allow in all postures, shape (nv,),
    [rad/s^2] or [m/s^2]; estimated from random postures.

    Args:
        limit: effort limits, shape (nv,), [Nm] or [N].
    """
    workspace, allowed = Workspace(model), np.full(model.nv, math.inf)
    for q in _postures(model, STREAM_POSTURES):
        inertia = np.diag(crba(model, workspace, q, workspace.matrix))
        left = EFFORT_SHARE * limit - np.abs(gravity(model, workspace, q, np.zeros(model.nv)))
        left = np.maximum(left, LEAST_EFFORT_SHARE * limit)
        allowed = np.minimum(allowed, left / np.maximum(inertia, np.finfo(float).tiny))
    return allowed


def _postures(model: RobotModel, count: int) -> Matrix:
    """Random positions within the limits, and within a turn, shape (count, nv)."""
    rng = np.random.default_rng(0)
    low, high = np.maximum(model.lower, -math.pi), np.minimum(model.upper, math.pi)
    beyond = low > high  # limits beyond a turn
    low[beyond], high[beyond] = model.lower[beyond], model.upper[beyond]
    return rng.uniform(low, high, (count, model.nv))


def weight_per_mass(model: RobotModel, link: str) -> FloatArray:
    """Largest torques by the weight of a mass of 1 kg at a link, shape (nv,), [Nm/kg] or [N/kg];
    estimated from random postures."""
    workspace, J, most = Workspace(model), np.zeros((6, model.nv)), np.zeros(model.nv)
    for q in _postures(model, PAYLOAD_POSTURES):
        most = np.maximum(most, np.abs(model.gravity @ jacobian(model, workspace, q, link, J)[:3]))
    return most


def outermost_link(model: RobotModel) -> str:
    """The link that is furthest from the last joint, of all that this joint moves as one."""
    last = model.link_names.index(model.child_links[-1])
    position = slice(LINK_ROTATION + 9, LINK_COLUMNS)  # after the nine of the rotation
    distance = np.linalg.norm(model.links[:, position], axis=1)
    fixed = model.links[:, LINK_BODY] == model.links[last, LINK_BODY]
    return model.link_names[int(np.argmax(np.where(fixed, distance, -1.0)))]


def usual_payload(model: RobotModel, weight: FloatArray, limit: FloatArray) -> float:
    """Mass whose weight takes a part of the effort limit of the turning joint with the longest
    lever, [kg], and no larger part of that of a prismatic joint; 0 where no joint carries weight,
    or without limits. For a Panda, a UR5 or a UR10 about the payload that its maker rates.

    Args:
        weight: torques by the weight of 1 kg, shape (nv,), [Nm/kg] or [N/kg].
        limit: effort limits, shape (nv,), [Nm] or [N].
    """
    slides = np.array([kind == "prismatic" for kind in model.joint_types])
    carries = weight > LEAST_LEVER * np.linalg.norm(model.gravity)
    longest = np.max(weight[carries & ~slides], initial=0.0)
    counts = carries & (slides | (weight == longest))
    masses = PAYLOAD_SHARE * limit[counts] / weight[counts]
    least = float(np.min(masses, initial=math.inf))
    return least if math.isfinite(least) else 0.0


@dataclass(frozen=True)
class Gains(Settings):
    """Feedback gains, one of each for every joint, shape (nv,).

    Units by control law: see `rnea_control.control.laws`. The clamps are the upper and lower bound
    of the integral term: rad/s^2 for computed_torque, Nm for the others.
    """

    p: FloatArray = row("gains.<joint>.p")
    d: FloatArray = row("gains.<joint>.d")
    i: FloatArray = row("gains.<joint>.i")
    i_clamp_max: FloatArray = row("gains.<joint>.i_clamp_max")
    i_clamp_min: FloatArray = row("gains.<joint>.i_clamp_min")

    @classmethod
    def uniform(cls, nv: int, p: float, d: float, i: float = 0.0, i_clamp: float = 10.0) -> Gains:
        """The same gains for every one of `nv` joints; the integral is clamped to +-`i_clamp`."""
        return cls(*(np.full(nv, value) for value in (p, d, i, i_clamp, -i_clamp)))


class ExcessiveEffort(Enum):
    """The treatment of a trajectory that needs more than the effort limits."""

    refuse = "refuse"
    warn = "warn"
    slow_down = "slow_down"


@dataclass(frozen=True)
class TrajectorySettings(Settings):
    """Rules for accepting, following and stopping trajectories."""

    tolerances: Tolerances  # tolerances of trajectories that bring no tolerances
    max_deceleration: FloatArray = row("constraints.<joint>.max_deceleration_on_cancel")
    allow_partial: bool = row("allow_partial_joints_goal", False)
    allow_moving_end: bool = row("allow_nonzero_velocity_at_trajectory_end", False)
    allow_integration: bool = row("allow_integration_in_goal_trajectories", False)
    start_from_desired_state: bool = row("interpolate_from_desired_state", True)
    upsample_positions: bool = row("positions_upsampling.enable", False)
    policy_frequency: float = row("positions_upsampling.policy_frequency", 0.0)
    excessive_effort: ExcessiveEffort = ExcessiveEffort.warn

    @classmethod
    def default(cls, nv: int) -> TrajectorySettings:
        """No tolerances, and stops that only the effort limits bound."""
        return cls(Tolerances.none(nv), np.full(nv, math.inf))

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> TrajectorySettings:
        """The settings in the controller's parameters."""
        none = np.full_like(values["constraints.<joint>.trajectory"], math.inf)
        goal_time = values["constraints.goal_time"]
        tolerances = Tolerances.of(
            values,
            path_velocity=none,
            goal_velocity=np.full(len(none), values["constraints.stopped_velocity_tolerance"]),
            goal_time=goal_time if goal_time < math.inf else values["cmd_timeout"],
        )
        excess = ExcessiveEffort(values["constraints.excessive_effort"])
        if not values["constraints.decelerate_on_cancel"]:
            given["max_deceleration"] = none
        if not values["positions_upsampling.enable"]:
            given["policy_frequency"] = 0.0
        return super().of(values, tolerances=tolerances, excessive_effort=excess, **given)


@dataclass(frozen=True)
class SafetySettings(Settings):
    """Limits of the output stage and of the checks around it. NaN is the default of the row: the
    model's effort limits, and fifty times the effort limit per second."""

    effort_limit: FloatArray = row("effort_limits.<joint>")
    torque_rate_limit: FloatArray = row("torque_rate_limits.<joint>")
    position_margin: FloatArray = row("soft_limits.<joint>.margin")
    max_position_error: FloatArray = row("max_position_errors.<joint>")
    limit_stiffness: float = row("soft_limits.stiffness", 900.0)
    velocity_limit_scale: float = row("velocity_limit_scale", math.inf)
    saturation_timeout: float = row("saturation_timeout", math.inf)
    blend_time: float = row("activation.blend_time", 0.0)
    guiding_damping: float = row("gravity_compensation.damping", 0.05)
    max_velocity: float = row("motion_bounds.velocity", math.inf)
    max_velocity_error: float = row("motion_bounds.velocity_error", math.inf)
    max_driving_torque: float = row("motion_bounds.driving_torque", math.inf)
    max_driving_power: float = row("motion_bounds.driving_power", math.inf)
    max_contact_torque: float = row("motion_bounds.contact_torque", math.inf)
    unmodeled_payload: float = row("motion_bounds.unmodeled_payload", 0.0)
    detects_collisions: bool = row("collision_detection.enable", False)
    observer_gain: float = row("collision_detection.gain", 25.0)
    collision_threshold: FloatArray | None = row("collision_detection.threshold.<joint>", None)
    check_jumps: bool = False  # True to refuse states that jump further than velocities allow

    @classmethod
    def none(cls, nv: int) -> SafetySettings:
        """Nothing but the model's effort limits."""
        rate, error = np.full((2, nv), math.inf)
        return cls(np.full(nv, math.nan), rate, np.zeros(nv), error)


@dataclass(frozen=True)
class ControllerSettings(Settings):
    """Settings of a `Controller`."""

    gains: Gains
    control_law: ControlLaw = ControlLaw.computed_torque  # see `rnea_control.control.laws`
    effort_limit_scale: float = row("effort_limit_scale", 1.0)
    hardware_compensates_gravity: bool = row("hardware_compensates_gravity", False)
    friction_compensation: bool = row("friction_compensation", False)
    trajectories: TrajectorySettings | None = None  # None for the default ones: see `rules`
    safety: SafetySettings | None = None  # None for only the model's effort limits
    feedback_inertia: FloatArray | None = row("feedback_inertia.<joint>", None)  # or the model's
    dead_time: float = row("dead_time", 0.0)
    task_law: ControlLaw = ControlLaw.cartesian_impedance  # law of references of poses
    tip: str = row("task.tip", "")
    own_law: OwnLaw | None = None  # the law of a user, for the control law `own`
    own_values: Mapping[str, Any] = field(default_factory=dict)  # values of its parameters
    # Values of `MORE`, by the names of their rows; missing values have the defaults of the table.
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> ControllerSettings:
        """The settings in parameters, with all limits of the torques; `given` takes precedence."""
        safety = SafetySettings.of(values, check_jumps=True)
        more = {name: values[name] for name in MORE if name in values}
        return super().of(values, **{"safety": safety, "more": more, **given})

    def __getitem__(self, name: str) -> Any:
        """Value in force of a row of `MORE`, by the row's name; shape (nv,) if that has a joint."""
        of_table = MORE[name]
        if name in self.more:
            return self.more[name]
        value = of_table.in_force(of_table.default)
        return np.full(len(self.gains.p), value) if JOINT in name else value

    @property
    def rules(self) -> TrajectorySettings:
        """Rules for accepting, following and stopping trajectories."""
        return self.trajectories or TrajectorySettings.default(len(self.gains.p))

    def law_of(self, reference: Reference) -> ControlLaw:
        """Law that follows a reference; see `law_in_force` in laws.py."""
        if reference in OWN_LAWS:
            return OWN_LAWS[reference]
        if reference.of_task:
            return self.task_law
        if reference is Reference.hand and self.control_law in TASK_LAWS:
            return ControlLaw.computed_torque
        return self.control_law

    def braced(self) -> ControllerSettings:
        """A copy with a law and gains that hold any arm."""
        return replace(
            self,
            gains=Gains.uniform(len(self.gains.p), *BRACING_GAINS),
            control_law=ControlLaw.computed_torque,
            friction_compensation=False,
            feedback_inertia=None,
            more={**self.more, OBSERVER: 0.0},
        )

    def numbers(self) -> Iterator[tuple[Parameter, Any]]:
        """Parameters and values of all fields, and of `more`.

        Raises:
            ControllerError: `more` has a name that is not in `MORE`.
        """
        yield from super().numbers()
        for name, value in self.more.items():
            if name not in MORE:
                raise ControllerError(f"`more` has {name!r}; it may have {listed(MORE)}")
            yield MORE[name], value

    def check(self, joint_names: Sequence[str]) -> None:
        """Refuses settings that do not fit these joints.

        Raises:
            ControllerError: a value that does not fit, or a control law that does not exist.
        """
        for name, law, allowed in (
            ("control_law", self.control_law, JOINT_LAWS),
            ("task.control_law", self.task_law, TASK_LAWS),
        ):
            if law not in allowed:
                names = ", ".join(each.name for each in allowed)
                raise ControllerError(f"{name} is {law!r}; it must be the ControlLaw {names}")
        if self.control_law is ControlLaw.own and self.own_law is None:
            raise ControllerError(
                "control_law is own; own_law.function must name the function when the node starts"
            )
        super().check(joint_names)

    def torque_rise(self, model: RobotModel) -> FloatArray:
        """Time from no torque to the effort limit at the torque rate limit, shape (nv,), [s]; 0
        without a limit of the rate."""
        rows = self.rows(model)
        bounded = np.isfinite(rows.torque_rate_limit)
        rise = np.zeros(model.nv)
        rise[bounded] = rows.effort_limit[bounded] / rows.torque_rate_limit[bounded]
        return rise

    def rows(self, model: RobotModel) -> layout.Settings:
        """The settings as rows for the control step."""
        rows = layout.Settings.zeros(model.nv)
        safety = self.safety or SafetySettings.none(model.nv)
        settings = replace(self, trajectories=self.rules, safety=safety)
        values = {each.name: value for each, value in settings.numbers()}

        def value_of(parameter: str) -> Any:
            default = ROWS[parameter].in_force(ROWS[parameter].default)
            return values.get(parameter, default)

        for name, parameter in layout.PARAMETERS.items():
            setattr(rows, name, value_of(parameter))
        rows.task_stiffness[:] = [value_of(parameter) for parameter in layout.STIFFNESSES]
        # The model decides the remaining rows.
        limit, rate = self._unscaled_effort_limit(model), rows.torque_rate_limit
        rate[:] = np.where(np.isnan(rate), limit / DEFAULT_TORQUE_RISE, rate)
        rows.effort_limit = self.effort_limit_scale * limit
        rows.velocity_limit *= model.velocity_limit
        lower, upper = model.lower, model.upper
        margin = np.minimum(rows.margin, WIDEST_MARGIN * (upper - lower))
        margin[~np.isfinite(margin)] = 0.0
        rows.margin = margin
        rows.lower_limit, rows.upper_limit = lower, upper
        rows.soft_lower, rows.soft_upper = lower + margin, upper - margin
        rows.state_velocity_limit = model.velocity_limit
        self._fill_bounds(rows, model, limit)
        self._fill_stream(rows, model, limit)
        rows.continuous = model.continuous
        rows.joint_law, rows.check_jumps = self.control_law, safety.check_jumps
        rows.task_law = self.task_law
        if self.own_law is not None:
            self.own_law.rows(self.own_values, rows.own)
        if self.control_law in TASK_LAWS:
            rows.i_gain[:] = 0.0  # they have no integral
            self._check_holding_stiffness(rows)
        tip = self.tip or model.child_links[-1]
        if tip not in model.link_names:
            links = listed(model.link_names)
            raise ControllerError(f"task.tip is {quoted(tip)}; the robot has the links {links}")
        rows.task_link = place = model.link_names.index(tip)
        if model.links[place, LINK_BODY] == 0.0:
            raise ControllerError(f"task.tip is {quoted(tip)}, which no joint of `joints` moves")
        if not (rows.task_box[:3] < rows.task_box[3:]).all():
            raise ControllerError(
                f"task.box is {rows.task_box.tolist()}; each of the three lower bounds must be "
                "below its upper bound"
            )
        link = outermost_link(model)
        rows.payload_link = model.link_names.index(link)
        per_kg = weight_per_mass(model, link)
        if math.isnan(rows.unmodeled_payload):
            rows.unmodeled_payload = usual_payload(model, per_kg, rows.effort_limit)
        weight = rows.unmodeled_payload * per_kg
        usual = np.maximum(DEFAULT_DISTURBANCE_SHARE * rows.effort_limit, weight)
        most = rows.max_disturbance
        most[:] = np.where(np.isnan(most), np.minimum(usual, rows.effort_limit), most)
        if self.friction_compensation:
            rows.friction = model.friction_parameters
        return rows

    def _check_holding_stiffness(self, rows: layout.Settings) -> None:
        """Refuses a stiffness that does not hold an arm whose model is not exact."""
        least = np.repeat(LEAST_HOLDING_STIFFNESS, 3)
        for name, value, bound in zip(layout.STIFFNESSES, rows.task_stiffness, least, strict=True):
            if value < bound:
                raise ControllerError(
                    f"{name} is {value:g}; it must be at least {bound:g} while control_law is "
                    f"{self.control_law.name}, as it holds the arm"
                )

    def _fill_bounds(self, rows: layout.Settings, model: RobotModel, limit: FloatArray) -> None:
        """Fills in the bounds of the motion that depend on the model; `limit`: effort limits, shape
        (nv,), [Nm] or [N]."""
        slides = np.array([kind == "prismatic" for kind in model.joint_types])
        least = np.minimum(DEFAULT_SLIDING_ERROR, SLIDING_ERROR_SHARE * (model.upper - model.lower))
        default = np.where(slides, least, DEFAULT_POSITION_ERROR)
        error = rows.max_position_error
        error[:] = np.where(np.isnan(error), default, error)
        rows.reference_speed = speed = reference_speed(model)
        rows.end_slack = end_slack(model)
        if math.isnan(rows.max_driving_power):
            rated = float(np.where(np.isfinite(limit), limit, 0.0) @ speed)
            rows.max_driving_power = DEFAULT_POWER_SHARE * rated or math.inf
        threshold = rows.max_external_torque
        default = DEFAULT_THRESHOLD_SHARE * self.effort_limit_scale * limit
        threshold[:] = np.where(np.isfinite(threshold), threshold, default)
        if not (self.safety and self.safety.detects_collisions):
            threshold[:] = math.inf

    def _fill_stream(self, rows: layout.Settings, model: RobotModel, limit: FloatArray) -> None:
        """Fills in the bounds of a stream that depend on the model; `limit`: effort limits, shape
        (nv,), [Nm] or [N]."""
        fastest, most = rows.stream_max_velocity, rows.stream_max_acceleration
        fastest[:] = np.where(np.isnan(fastest), STREAM_SHARE * rows.reference_speed, fastest)
        if np.isnan(most).any():
            allowed = allowed_acceleration(model, self.effort_limit_scale * limit)
            most[:] = np.where(np.isnan(most), np.minimum(allowed, fastest / RISE_TIME), most)
        slides = np.array([kind == "prismatic" for kind in model.joint_types])
        rows.stream_max_distance *= np.where(slides, SLIDING_DISTANCE, 1.0)

    def effort_limit(self, model: RobotModel) -> FloatArray:
        """The bound of the torques, shape (nv,), [Nm] or [N]."""
        return self.effort_limit_scale * self._unscaled_effort_limit(model)

    def _unscaled_effort_limit(self, model: RobotModel) -> FloatArray:
        limit = model.effort_limit if self.safety is None else self.safety.effort_limit
        return np.where(np.isnan(limit), model.effort_limit, limit)


_KINDS = Gains, Tolerances, TrajectorySettings, SafetySettings, ControllerSettings
_WITH_A_FIELD = [each.metadata.get("row") for kind in _KINDS for each in fields(kind)]
# Rows of `ControllerSettings.more`: parameters that may change while the arm is active, or that the
# control step reads, except for those of a field or of the model.
MORE = {
    name: each
    for name, each in ROWS.items()
    if (each.live or each.in_tick) and each not in (*_WITH_A_FIELD, *ROBOT)
}


@dataclass(frozen=True)
class SupervisionSettings(Settings):
    """Settings of a `Supervisor`."""

    state_gap: float = row("joint_state_gap", 0.02)
    state_timeout: float = row("joint_state_timeout", 0.1)
    max_bad_states: int = row("max_bad_states", 10)
    start_velocity: float = row("activation.max_velocity", 0.2)
    start_tolerance: float = row("activation.position_tolerance", 0.02)
    activation_check: str = row("activation.check", "off")
    power_down: str = row("power_down", "zero")
    simulated: bool = False  # True if the world may be reset: jumps that last are accepted

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> SupervisionSettings:
        """The settings in the controller's parameters.

        Raises:
            ParameterError: a gap that is longer than the timeout, or damping without a check.
        """
        settings = super().of(values, **given)
        if settings.power_down == "damp" and settings.activation_check == "off":
            raise ParameterError(
                "parameter 'power_down' is 'damp'; that needs activation.check, which tells the "
                "joints whose torques have the right direction"
            )
        if settings.state_gap > settings.state_timeout:
            raise ParameterError(
                f"parameter 'joint_state_gap' is {settings.state_gap} s; it must be at most "
                f"joint_state_timeout, {settings.state_timeout} s"
            )
        return settings
