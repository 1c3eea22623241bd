"""A canary wherever a credential can enter, runs that succeed and fail in every way, and a search of all that is left.

What is searched: the instance with its databases and logs, the store, the cache, temporary files, results, what was
printed, and every error with its chain as Python prints it.
"""

from __future__ import annotations

import json
import socket
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pytest

from c2tc_pipeline.pipeline import messages
from c2tc_pipeline.pipeline.alerts import DASHBOARD_VARIABLE, alert_sensor
from c2tc_pipeline.pipeline.messages import SMTP_VARIABLE, WEBHOOK_VARIABLE
from c2tc_pipeline.sources import openml
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig
from c2tc_pipeline_tests.sources.kinds import to_postgresql
from c2tc_pipeline_tests.sources.postgresql_server import PASSWORD, USER, PostgresServer
from c2tc_pipeline_tests.storage.places import Place
from c2tc_pipeline_tests.storage.s3_server import KEY, SECRET, free_ports
from c2tc_pipeline_tests.tools.canaries import Canaries
from c2tc_pipeline_tests.tools.command_line import run_process
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = [pytest.mark.faults, pytest.mark.slow]

TABLE = "canaries"


@pytest.fixture
def canaries() -> Canaries:
    canaries = Canaries()
    for name, word in {"s3 key": KEY, "s3 secret": SECRET, "postgresql": PASSWORD}.items():
        canaries.add(name, word)
    return canaries


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield listener.getsockname()[1]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, whose leftovers can be searched."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def rig(
    s3_place: Place, canaries: Canaries, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rig]:
    """Artefacts on S3, and a secret in every variable that can hold one."""
    environment = {
        **s3_place.environment,
        "PGPASSWORD": PASSWORD,
        WEBHOOK_VARIABLE: f"http://hook:{quote(canaries.make('webhook_user'))}@127.0.0.1:9/{canaries.make('webhook')}",
        SMTP_VARIABLE: f"smtp://ops:{quote(canaries.make('mail'), safe='')}@127.0.0.1:9",
        "C2TC_MAIL_TO": "ops@example.org",
        DASHBOARD_VARIABLE: f"http://ui:{quote(canaries.make('dashboard'), safe='')}@dashboard.example:3000",
        "https_proxy": f"http://proxy:{canaries.make('proxy', plain=True)}@127.0.0.1:9",
        "no_proxy": "127.0.0.1,localhost",
        openml.SERVER_VARIABLE: f"http://openml:{canaries.make('openml', plain=True)}@127.0.0.1:9",
        "C2TC_CACHE_DIR": str(tmp_path / "cache"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "rig"
    folder.mkdir()
    with Rig(folder, storage=s3_place.root) as rig:
        rig.retries = dg.RetryPolicy(max_retries=0)
        yield rig


@pytest.fixture
def sources(
    rig: Rig, postgresql: PostgresServer, canaries: Canaries, silent: int, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Sources that fail, each in its own way, by name; the whole address of most is in a variable."""
    [closed] = free_ports(1)
    here = f"127.0.0.1:{postgresql.port}"

    def secret(name: str) -> str:
        return canaries.make(name)

    held = {
        "refused": f"postgresql://{USER}:{quote(secret('refused'), safe='')}@{here}/postgres",
        "unreachable": f"postgresql://{USER}:{quote(secret('unreachable'), safe='')}@127.0.0.1:{closed}/postgres",
        "silent": f"postgresql://{USER}:{quote(secret('silent'), safe='')}@127.0.0.1:{silent}/x?connect_timeout=1",
        "nowhere": f"postgresql://{USER}:{PASSWORD}@{here}/no_such_database",
        "no_table": f"postgresql://{USER}:{PASSWORD}@{here}/postgres",
        "not_encoded": f"postgresql://{USER}:{secret('not_encoded')}@{here}/postgres",
        "words": f"host=127.0.0.1 port={closed} user={USER} password={secret('words')}",
        "setting": f"postgresql://{USER}@{here}/x?password={quote(secret('setting'), safe='')}&no_such_setting=1",
        "gibberish": secret("gibberish"),
        "no_driver": f"mysql+nosuchdriver://ann:{quote(secret('no_driver'), safe='')}@db.example/sales",
        "no_dialect": f"nosuch://ann:{quote(secret('no_dialect'), safe='')}@db.example/sales",
        "psycopg": f"postgresql+psycopg2://ann:{quote(secret('psycopg'), safe='')}@127.0.0.1:{closed}/sales",
        "sqlite": f"sqlite:////nowhere/{secret('sqlite')}.db",
        "gibberish_too": secret("gibberish_too"),
    }
    by_postgresql = ("refused", "unreachable", "silent", "nowhere", "no_table", "not_encoded", "words", "setting")
    described = {}
    for name, address in held.items():
        monkeypatch.setenv(f"DSN_{name.upper()}", address)
        scheme = "postgresql" if name in (*by_postgresql, "gibberish") else "sqlalchemy"
        described[name] = f"{scheme}://?dsn_env=DSN_{name.upper()}&table=no_such_table"
    return {
        **described,
        "bad_query": f"postgresql://?dsn_env=DSN_NO_TABLE&query={quote('SELECT FROM WHERE ((')}",
        # What should not be written into a catalogue, and is.
        "inline": f"postgresql://ann:{secret('inline')}@db.example/sales?table=people",
        "inline_setting": f"postgresql://ann@db.example/sales?table=people&password={secret('inline_setting')}",
        "inline_s3": f"s3://{secret('inline_s3_key')}:{secret('inline_s3')}@bucket/people.csv",
        "inline_web": f"https://ann:{secret('inline_web')}@host/people.csv?token={secret('inline_token')}",
        "swapped": f"postgresql://?table=people&dsn_env=postgresql%3A%2F%2Fann%3A{quote(secret('swapped'))}%40db%2Fx",
        "signed": f"s3://no-such-bucket/people.csv?X-Amz-Signature={secret('signed')}",
        "openml": "openml:61",
        "gone": f"{rig.storage}/no/such.parquet",
    }


def printed(address: str) -> str:
    """Return all that Python prints of the errors of a source."""
    told = []
    for read in (read_table, lambda address: open_source(address).header()):
        try:
            read(address)
        except Exception as error:
            told += [*traceback.format_exception(error), repr(error), str(error)]
        else:
            pytest.fail("this source was to fail")
    return "\n".join(told)


def test_no_canary_is_left_anywhere(
    rig: Rig,
    sources: dict[str, str],
    canaries: Canaries,
    postgresql: PostgresServer,
    s3_place: Place,
    temporary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(messages, "PAUSE_SECONDS", 0)
    monkeypatch.setenv("WAREHOUSE", postgresql.dsn)
    to_postgresql(mixed_table(), postgresql, TABLE)
    rig.add("people", source={"postgresql": {"table": TABLE, "dsn_env": "WAREHOUSE"}})
    rig.run_all()
    for name, address in sources.items():
        rig.add(name, source=address)
    (rig.folder / "people.parquet").unlink(missing_ok=True)
    told = []
    for name in sources:
        result = rig.run("ingest", name)
        assert not result.success, name
        told.append(tell_of(result, rig))
    told.append(look(rig))
    told += [printed(rig.catalogue.resolve_source(rig.catalogue[name])) for name in sources]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", canaries.make("wrong_s3_secret"))
    monkeypatch.setenv("AWS_SESSION_TOKEN", canaries.make("session_token"))
    for job, partition in (("leaderboard", None), ("report", "people")):
        told.append(tell_of(rig.run(job, partition), rig))
    told.append(printed(f"{rig.storage}/people.parquet"))
    told += [str(capfd.readouterr())]

    assert canaries.found_in("\n".join(told).encode("utf-8", "replace")) == []
    catalogue = rig.folder / "catalog.yaml"
    assert canaries.found_below(catalogue) == {}
    assert "inline" in canaries.found_in(catalogue.read_bytes())
    assert canaries.found_below(rig.folder, temporary, tmp_path / "cache", without=[catalogue]) == {}
    assert canaries.found_among(s3_place.contents()) == {}
    # What was searched is what was kept: names that are no secrets are there.
    kept = b"".join(path.read_bytes() for path in (rig.folder / "home").rglob("*") if path.is_file())
    for word in ("dsn_env=WAREHOUSE", "DSN_REFUSED", "check user, database and password", s3_place.root):
        assert word.encode() in kept


def tell_of(result: dg.ExecuteInProcessResult, rig: Rig) -> str:
    """Return what the alerts on a run are, what their sensor says, and what Dagster shows of it."""
    context = dg.build_sensor_context(rig.instance, cursor=json.dumps({"position": 0}))
    data = alert_sensor().evaluate_tick(context)
    return "\n".join([*(repr(event) for event in result.all_events), repr(data)])


def look(rig: Rig) -> str:
    """Return what the sensor of sources says after a look at all of them."""
    context = dg.build_sensor_context(rig.instance, repository_def=rig.definitions.get_repository_def())
    data = rig.definitions.get_repository_def().get_sensor_def("source_sensor").evaluate_tick(context)
    return f"{data.skip_message} {data.cursor} {data.run_requests}"


def test_the_command_tells_no_canary(canaries: Canaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalogue = tmp_path / "catalog.yaml"
    word = canaries.make("catalogue")
    catalogue.write_text(f"tables: {{a: {{source: 'postgresql://ann:{word}@db.example/x?table=t', label: y}}}}")
    address = f"postgresql://ann:{canaries.make('argument')}@db.example/x?table=t"
    root = f"s3://{canaries.make('root_key')}:{canaries.make('root_secret')}@bucket/x"
    home, cache = str(tmp_path / "home"), str(tmp_path / "cache")
    environment = {"C2TC_STORAGE": root, "DAGSTER_HOME": home, "C2TC_CACHE_DIR": cache}
    (tmp_path / "home").mkdir()
    for arguments in (
        ("tables", catalogue),
        ("condense", address, "--label", "y", "--out", "small"),
        ("condense", "--catalogue", catalogue, "--table", "a", "--out", "small"),
        ("run", "--catalogue", catalogue, "--table", "a"),
    ):
        done = run_process(*arguments, **environment)
        assert done.returncode in (1, 2), done
        assert canaries.found_in(done.stdout + done.stderr) == [], arguments
        assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert canaries.found_below(tmp_path, without=[catalogue]) == {}
