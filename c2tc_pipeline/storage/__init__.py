"""Artefacts: published whole or not at all, listed in a manifest, verified when read, cached by content.

What belongs here: how bytes reach storage and come back. What does not: what the bytes mean.
"""
