"""What several executables share: parameter tables, console, signals, and rclpy's internals."""
