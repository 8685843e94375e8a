"""The command `annals`: options, output and exit codes; one verb per file in `verbs`.

The work of a verb is in the folders that the server uses too.
Begin with `main.py`.
"""
