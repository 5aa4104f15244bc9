"""The process `rnea_controller`: parameters, topics, lifecycle, and the control loop."""
