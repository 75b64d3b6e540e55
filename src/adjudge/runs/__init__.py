"""The run directory: written atomically, loaded, checked, queried."""
