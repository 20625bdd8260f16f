"""The read path: the fan-out over every tier, and the sources that are more than one store."""
