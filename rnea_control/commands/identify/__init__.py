"""`rnea_identify`: plan an exciting motion, record it, fit the parameters, check a model."""
