"""Serialized ROS messages to numbers and back. No rclpy, no message classes."""
