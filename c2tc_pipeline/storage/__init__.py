"""Artefacts on fsspec: published whole or not at all, verified when read, collected by age; and a content cache."""
