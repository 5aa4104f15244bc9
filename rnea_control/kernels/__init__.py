"""How Python becomes machine code, and the small algebra that all of it is made of."""
