"""The settings of the programs: one table of parameters, and the settings and robot made from it;
no ROS."""
