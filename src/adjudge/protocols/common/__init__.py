"""What several protocols do alike, done once: plans over rules, columns of samples, charts, records."""
