"""A MuJoCo arm that looks like ros2_control hardware from outside."""
