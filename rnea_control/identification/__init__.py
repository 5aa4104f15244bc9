"""Identification: exciting motions, and the parameters of a robot from recordings of motions."""
