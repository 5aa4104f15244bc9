"""A MuJoCo arm with the ROS interface of ros2_control hardware."""
