"""Idempotent preparation of services: folders, identities, roles, tables."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.instance import SETTINGS
from deploy import probes
from deploy.layout import BUCKET, Layout, write_private

FILES = Path(__file__).parent
S3_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def make_database(layout: Layout, initdb: str, account: str | None) -> None:
    """Make the folder of PostgreSQL, whole or not at all, unless it is there."""
    if layout.postgres.exists():
        return
    begun, word = (layout.postgres.with_name(f"postgres.{end}") for end in ("begun", "word"))
    shutil.rmtree(begun, ignore_errors=True)
    begun.mkdir(mode=0o700)
    word.unlink(missing_ok=True)
    write_private(word, layout.secrets["C2TC_POSTGRES_ADMIN_PASSWORD"])
    if account is not None:
        for path in (begun, word):
            shutil.chown(path, account)
    try:
        subprocess.run(
            [initdb, "-D", str(begun), "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={word}", "-EUTF8"],
            user=account,
            cwd=layout.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
            timeout=120,
        )
    except subprocess.CalledProcessError as error:
        raise InputError(f"PostgreSQL's folder can't be made: {error.output.decode(errors='replace')[-300:]}") from None
    finally:
        word.unlink()
    begun.rename(layout.postgres)


def make_role(layout: Layout) -> None:
    """Make the role and the database of the instance; the administrator is for nothing else."""
    from psycopg2 import sql

    role = layout.addresses["C2TC_POSTGRES_USER"]
    password = sql.Literal(layout.secrets["C2TC_POSTGRES_PASSWORD"])
    connection = probes.admin(layout)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,))
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), password))
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (role,))
        if cursor.fetchone() is None:
            cursor.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(role)))
    connection.close()


def identities_file(layout: Layout) -> Path:
    """Return the file of identities that SeaweedFS reads."""
    return layout.folder / "s3.identities.json"


def write_identities(layout: Layout) -> None:
    """Write the one identity that may use the object store."""
    key, secret = (layout.secrets[name] for name in S3_SECRETS)
    identity = {
        "name": "c2tc",
        "credentials": [{"accessKey": key, "secretKey": secret}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    write_private(identities_file(layout), json.dumps({"identities": [identity]}))


def file_system(layout: Layout) -> Any:
    """Return the object store as a file system."""
    import s3fs

    key, secret = (layout.secrets[name] for name in S3_SECRETS)
    endpoint = layout.addresses["AWS_ENDPOINT_URL_S3"]
    return s3fs.S3FileSystem(endpoint_url=endpoint, key=key, secret=secret, skip_instance_cache=True)


def make_bucket(layout: Layout) -> None:
    """Make the bucket for artefacts, unless it is there."""
    files = file_system(layout)
    if BUCKET not in files.ls("", detail=False):
        files.mkdir(BUCKET)


def prepare_instance(layout: Layout) -> None:
    """Put the settings in place, and bring the tables, made the first time, to the version of the installed Dagster.

    Before any of Dagster's services starts: three of them making the same tables would get in each other's way.
    """
    (layout.home / SETTINGS.name).write_text(SETTINGS.read_text() + (FILES / "storage.yaml").read_text())
    shutil.copyfile(FILES / "workspace.yaml", layout.home / "workspace.yaml")
    with (layout.logs / "migrate.log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "dagster", "instance", "migrate"],
            env=layout.environment("C2TC_POSTGRES_PASSWORD"),
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"The instance could not be migrated; see {layout.logs / 'migrate.log'}.")
