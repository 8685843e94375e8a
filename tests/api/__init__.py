"""The HTTP APIs and the command `annals`: a folder for each folder of `annals/api`."""
