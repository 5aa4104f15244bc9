"""`rnea_tune`: measures what the URDF does not say, and proposes parameters of the controller."""
