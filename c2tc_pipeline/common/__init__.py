"""Errors, registries, devices, threads, memory and retries: small helpers that every room may import."""
