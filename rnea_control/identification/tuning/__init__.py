"""Noise, friction, inertia and dead time of joints from motions of less than 3 degrees, and the
parameters of the controller that follow. No ROS."""
