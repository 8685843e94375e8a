"""The pages of subscriptions: their list, one of them with its deliveries, and forms that change them.

Begin with `list_page.py` and `subscription_page.py`.
"""
