"""The rules that tests cite, the documents generated from the citations, and invalid requests of every kind."""
