"""The settings of the programs: one table of parameters, and what is made of it; no ROS."""
