"""The pages of API keys and grants, for administrators.

Begin with `keys_page.py`. The API decides who may administer which of them.
"""
