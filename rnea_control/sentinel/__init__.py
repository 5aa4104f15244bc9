"""The process `rnea_sentinel`: guards the controller's commands, and holds the arm without them."""
