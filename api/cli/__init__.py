"""The command `annals`: options, output and exit codes; one verb per file in `verbs`.

What a verb does belongs to the rooms that the server uses as well.
Begin with `main.py`.
"""
