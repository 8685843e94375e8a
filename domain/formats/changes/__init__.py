"""What changed between two documents of one format: fields and other declarations, each with its verdicts.

The verdicts are the incompatibilities that writes are refused for, each at the change that it names; so a comparison
and a check never disagree. The rules of compatibility do not belong here: each format has its own.
Begin with `compare.py`.
"""
