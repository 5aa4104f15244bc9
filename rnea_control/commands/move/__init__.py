"""`rnea_move`: a motion of the arm from the shell."""
