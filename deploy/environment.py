"""The reference of environment variables: ``python -m deploy variables`` prints it for docs/production.md."""

from __future__ import annotations

VARIABLES: dict[str, tuple[str, str]] = {
    "C2TC_CATALOGUE": ("the catalogue", "`data/catalog.yaml`"),
    "C2TC_STORAGE": ("artefacts: a path, `s3://bucket/prefix`, or `memory://name` within one process", "`runs/store`"),
    "C2TC_CACHE_DIR": ("the cache of weights, loss curves and scores", "the user's cache directory"),
    "C2TC_MOST_TABLE_MB": ("how large a table may be in memory, in MB", "half of the machine's or container's memory"),
    "C2TC_STEPS": ("where steps run: `apart` in processes of their own, or `together` in that of their run", "`apart`"),
    "C2TC_SENSOR_SECONDS": ("pause between the ticks of every sensor", "15 to 60 s, by sensor"),
    "C2TC_WEBHOOK_URL": ("where alerts are posted; a secret", "none are posted"),
    "C2TC_WEBHOOK_FORMAT": ("`json` or `slack`", "`slack` for hooks.slack.com, else `json`"),
    "C2TC_SMTP_URL": ("mail server for alerts, `smtp://user:password@host:587` or `smtps://`; a secret", "no mail"),
    "C2TC_MAIL_TO": ("recipients of alerts, separated by commas", "needed with a mail server"),
    "C2TC_MAIL_FROM": ("sender of alerts", "the first recipient"),
    "C2TC_UI_URL": ("address of the dashboard, for links in alerts", "no links"),
    "C2TC_OPENML_URL": ("another server of OpenML", "openml.org"),
    "C2TC_CODE_HOST": ("host of the code server, as dashboard and daemon reach it", "needed by all three"),
    "C2TC_CODE_PORT": ("its port", "needed by all three"),
    "C2TC_POSTGRES_HOST": ("host of the database of the instance", "needed by all Dagster services and runs"),
    "C2TC_POSTGRES_PORT": ("its port", "the same"),
    "C2TC_POSTGRES_USER": ("its role", "the same"),
    "C2TC_POSTGRES_PASSWORD": ("the role's password; a secret", "the same"),
    "C2TC_POSTGRES_DATABASE": ("its name", "the same"),
    "DAGSTER_HOME": ("folder of the instance", "`runs/dagster` for `c2tc run` and `c2tc ui`"),
    "AWS_ENDPOINT_URL_S3": ("S3 server", "Amazon's"),
    "AWS_ACCESS_KEY_ID": ("key of S3", "as boto finds it"),
    "AWS_SECRET_ACCESS_KEY": ("secret of S3", "as boto finds it"),
    "OMP_NUM_THREADS": ("threads of a step", "all cores"),
}
"""What each variable means, and what holds without it."""

STACK_ONLY = {"C2TC_POSTGRES_ADMIN_PASSWORD", "C2TC_DASK", "C2TC_CATALOGUE_IN_FORCE"}
"""Variables that the stack of one machine, or a code location, sets for itself."""


def reference() -> str:
    """Return the variables as a table in Markdown."""
    rows = [f"| `{name}` | {meaning} | {without} |" for name, (meaning, without) in VARIABLES.items()]
    return "\n".join(["| variable | what | without it |", "|---|---|---|", *rows])
