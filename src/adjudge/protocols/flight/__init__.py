"""Protocol `flight`: a model's prediction of the next flight state, against physics and safety."""
