"""The paper's experiments: what it measured, and the same measured here."""
