"""The pages about what happened: the timeline, and one interaction.

Begin with `timeline_page.py`.
"""
