"""Two or more served registries with links between them, which are killed, cut off and promoted."""
