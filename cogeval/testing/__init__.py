"""Checks that every game and every agent runs through, shipped so that a third party's do too.

Invariant: there are no exception lists; what a check asks, it asks of all. Must not know how runs are
scheduled, stored or rated.
"""
