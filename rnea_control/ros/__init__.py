"""What both ROS nodes share: parameters that are declared once, and a process that ends cleanly."""
