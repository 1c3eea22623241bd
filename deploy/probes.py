"""Health checks of running services."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from c2tc_pipeline.common.errors import InputError
from deploy.layout import HOST, Layout

_SECONDS = 5.0
_LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus locationOrLoadError {
    __typename ... on PythonError { message } } } } ... on PythonError { message } } }"""
_DAEMONS = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"


def get(url: str, body: bytes | None = None, seconds: float = _SECONDS) -> bytes | None:
    """Return the answer of a loopback address, or None if there is none or it is an error."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    # Bypass the HTTP proxy of the environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=seconds) as response:
            answer: bytes = response.read()
            return answer
    except (urllib.error.URLError, OSError):
        return None


def ask(layout: Layout, query: str, seconds: float = _SECONDS, **variables: Any) -> dict[str, Any] | None:
    """Return the dashboard's answer to a GraphQL query, or None where there is none yet."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    text = get(f"http://{HOST}:{layout.ports['dashboard']}/graphql", body, seconds)
    answer = json.loads(text) if text else {}
    if answer.get("errors"):
        raise RuntimeError(f"The dashboard refused a question: {answer['errors'][0].get('message')}")
    return answer.get("data")


def postgres_answers(layout: Layout) -> bool:
    """Return whether the database lets its administrator in."""
    import psycopg2

    try:
        admin(layout).close()
    except psycopg2.OperationalError:
        return False
    return True


def admin(layout: Layout, database: str = "postgres") -> Any:
    """Return a connection of the administrator that commits each statement."""
    import psycopg2

    connection = psycopg2.connect(
        host=HOST,
        port=layout.ports["postgres"],
        user="postgres",
        password=layout.secrets["C2TC_POSTGRES_ADMIN_PASSWORD"],
        dbname=database,
        connect_timeout=int(_SECONDS),
    )
    connection.autocommit = True
    return connection


def s3_answers(layout: Layout) -> bool:
    """Return whether the object store is up."""
    return get(f"http://{HOST}:{layout.ports['s3']}/healthz") is not None


def code_answers(layout: Layout) -> bool:
    """Return whether the code server serves; :func:`dashboard_answers` checks that the code was loaded."""
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(f"{HOST}:{layout.ports['code']}") as channel:
        question = health_pb2.HealthCheckRequest(service="DagsterApi")
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(question, timeout=_SECONDS)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def dashboard_answers(layout: Layout) -> bool:
    """Return whether the dashboard has loaded the pipeline; raise InputError with the reason if it can't."""
    data = ask(layout, _LOCATIONS)
    entries = data["workspaceOrError"].get("locationEntries", []) if data else []
    for entry in entries:
        found = entry["locationOrLoadError"] or {}
        # While the code server starts, the dashboard also reports an error.
        if found.get("__typename") == "PythonError" and "UserCodeUnreachable" not in found["message"]:
            raise InputError(f"The pipeline can't be loaded: {found['message'].strip().splitlines()[-1]}")
    return bool(entries) and all(
        (entry["locationOrLoadError"] or {}).get("__typename") == "RepositoryLocation" for entry in entries
    )


def daemon_is_healthy(layout: Layout) -> bool:
    """Return whether every daemon that this instance requires has a recent heartbeat."""
    data = ask(layout, _DAEMONS)
    found = data["instance"]["daemonHealth"]["allDaemonStatuses"] if data else []
    return bool(found) and all(each["healthy"] for each in found if each["required"])


def dask_workers(layout: Layout) -> int | None:
    """Return how many workers Dask's scheduler has, or None where it does not answer."""
    text = get(f"http://{HOST}:{layout.ports['dask_http']}/json/counts.json")
    return int(json.loads(text)["workers"]) if text else None
