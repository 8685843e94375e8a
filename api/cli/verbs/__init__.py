"""The verbs of the command `annals`: one thin file each, with its options and its output.

Output helpers and exit codes are in `api/cli`; the work itself is in the folders that the server uses too.
Begin with `serve.py`.
"""
