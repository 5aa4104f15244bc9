"""`rnea_doctor`: looks at a running system, changes nothing, and says what is wrong with it."""
