"""Errors, notices, devices, threads, memory and retries: what every room may import."""
