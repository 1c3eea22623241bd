"""The production deployment on one machine: every service on loopback, started, checked and stopped.

``python -m deploy up`` starts it, ``check`` checks the health of every service, ``smoke`` sends tables through it and
verifies the results, ``down`` stops it. How the parts fit together, and the files for containers and Kubernetes, are
described in ``docs/production.md``.
"""
