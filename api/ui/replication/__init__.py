"""The pages of replication links, for administrators. New links are made on the console.

Begin with `links_page.py`.
"""
