"""What refers to what: entities, schemas of Confluent's API, and subscriptions, read from the read model.

Which values of an entity refer to others is decided in `domain/model/references.py`.
Begin with `entity_references.py`.
"""
