"""`rnea_demo`: the controller and a simulated arm over ROS 2, measured and drawn."""
