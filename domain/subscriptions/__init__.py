"""Subscriptions: which events they want.

Spec: CloudEvents Subscriptions; what is decided where it is silent: SUB.
"""
