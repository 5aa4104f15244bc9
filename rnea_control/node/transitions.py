"""Logs what lifecycle transitions raise, which rclpy does not."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import wraps

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

Transition = Callable[[LifecycleNode, LifecycleState], TransitionCallbackReturn]


def logged(transition: Transition) -> Transition:
    """Decorator: logs what a transition raises; rclpy enters its error state without a log line."""

    @wraps(transition)
    def logging_transition(node: LifecycleNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().fatal(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return logging_transition
