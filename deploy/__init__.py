"""The production deployment on one machine: every service on loopback, started, checked and stopped.

``python -m deploy up`` starts it, ``check`` asks every service how it is, ``smoke`` sends tables through it and looks
at what arrived, ``down`` stops it. How the parts fit together, and the files for containers and Kubernetes, are
described in ``docs/production.md``.
"""
