"""Artefacts on fsspec: published whole or not at all, verified when read, collected by age; and a content cache.

What belongs here: how bytes reach storage and come back. What does not: what the bytes mean.
"""
