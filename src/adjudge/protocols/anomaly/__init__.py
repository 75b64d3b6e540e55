"""Protocol `anomaly`: a detector of attacks on sensor streams under a reviewer's contract."""
