"""Tests, folder by folder as in the package."""
