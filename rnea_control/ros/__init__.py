"""Shared by several executables: parameter tables, console, signals, and rclpy's internals."""
