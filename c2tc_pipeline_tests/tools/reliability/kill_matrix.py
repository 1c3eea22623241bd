"""Every asset killed at every moment of its life, executed again, and compared byte by byte with an undisturbed run.

A chain takes one moment through all assets: a run is killed at its first asset, the run that goes on from its failure
at the second, and so on to the end. So each kill costs one run, and each asset is killed once and made once more. After
each kill the store is held against its manifests and against what was visible before.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.run_processes import end_dead_runs
from c2tc_pipeline.pipeline.versioning import partition_keys
from c2tc_pipeline.storage.manifest import TIMINGS_NAME
from c2tc_pipeline.storage.folder_leftovers import collect_folder
from c2tc_pipeline.storage.keys import MANIFEST_FOLDER
from c2tc_pipeline.storage.leftover import Rule
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.storage.store_leftovers import collect_store
from c2tc_pipeline.storage.verification import verify_folder, verify_store
from c2tc_pipeline_tests.pipeline.faulty_definitions import STORAGE_VARIABLE, execute, faulty_job_in_process
from c2tc_pipeline_tests.pipeline.pipeline_rig import JOBS, Rig
from c2tc_pipeline_tests.pipeline.processes import ended, start
from c2tc_pipeline_tests.storage.s3_server import BUCKET, S3Server
from c2tc_pipeline_tests.tools.made_tables import mixed_table
from c2tc_pipeline_tests.tools.reliability.moments import (
    CACHED,
    CALLS_NAME,
    LEAVES_A_VERSION,
    MOMENTS,
    ON_S3,
    ONLY_CACHED,
)

TABLE = "people"
ALL_JOBS = JOBS
LOCAL, OVER, S3 = "local, nothing there", "local, over a version", "S3, nothing there"
PLACES = (LOCAL, OVER, S3)
ASSETS = tuple(asset for assets in ALL_JOBS.values() for asset in assets)


@dataclass
class Chain:
    """What came of one moment in one place.

    Parameters
    ----------
    place, moment : str
        Where artefacts were stored, and when the runs were killed.
    kills : int
        Runs that were seen to end by SIGKILL.
    differing : list of str
        Files of newest versions that differ from the undisturbed run's in the end.
    torn : list of str
        Files that did not match their manifest, after any of the kills or in the end.
    lost : list of str
        Manifests that were visible before a kill and were gone or other after it.
    leftovers, versions_ahead : int
        Leftovers that were collected in the end, and partitions with a version more than in the undisturbed run.
    """

    place: str
    moment: str
    kills: int = 0
    differing: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    leftovers: int = 0
    versions_ahead: int = 0


def differing(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> list[str]:
    """Return the names under which two states differ."""
    return [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]


def new_rig(folder: Path, storage: str | None = None) -> Rig:
    """Return a pipeline in a new folder, with a table of few rows; it has words, so that an autoencoder is trained."""
    rig = Rig(folder, storage=storage)
    folder.mkdir(parents=True)
    rig.add(TABLE, mixed_table(120, words=True), settings={"strings": "similarity"})
    return rig


def partitions_of(rig: Rig, asset: str) -> Sequence[str | None]:
    """Return the partitions of an asset, one of each here."""
    return partition_keys(asset, rig.catalogue)


def stored_state(rig: Rig, assets: Sequence[str] = ASSETS) -> dict[str, bytes]:
    """Return the verified files of every newest version, all but timings."""
    files = {}
    for asset in assets:
        for partition in partitions_of(rig, asset):
            key = artefact_key(asset, partition)
            if rig.store.latest(key) is None:
                continue
            with rig.store.fetch(key) as directory:
                for path in sorted(directory.rglob("*")):
                    if path.is_file() and path.name != TIMINGS_NAME:
                        files[f"{key}/{path.relative_to(directory).as_posix()}"] = path.read_bytes()
    return files


def undisturbed_run(folder: Path, jobs: Sequence[str] = tuple(ALL_JOBS)) -> Rig:
    """Run jobs once in processes of their own, which count their calls; return the pipeline, not entered."""
    rig = new_rig(folder)
    with rig:
        for job in jobs:
            for partition in partitions_of(rig, ALL_JOBS[job][0]):
                done = start(execute, faulty_job_in_process, folder, job, partition, "count_calls")
                assert ended(done) == 0, job
    return rig


def run_chain(
    folder: Path,
    moment: str | Mapping[str, str],
    undisturbed: Rig,
    *,
    place: str = LOCAL,
    storage: str | None = None,
    environment: Mapping[str, str] | None = None,
    over: bool = False,
    jobs: Sequence[str] = tuple(ALL_JOBS),
) -> Chain:
    """Kill the making of every asset at one moment, and return what came of it.

    Parameters
    ----------
    folder : Path
        A new folder.
    moment : str or mapping of str to str
        One of ``MOMENTS``, or one for each asset.
    undisturbed : Rig
        From :func:`undisturbed_run`.
    place, storage, environment : str, str and mapping, optional
        A storage elsewhere, and the variables by which it is reached; the caller has set them in this process.
    over : bool
        Whether everything was made before, so that the runs replace a version; else there is none yet.
    jobs : sequence of str
        Which jobs; each needs those before it.
    """
    chain = Chain(place, moment if isinstance(moment, str) else "each at another moment")
    moments = dict.fromkeys(ASSETS, moment) if isinstance(moment, str) else moment
    shared = {**(environment or {}), **({STORAGE_VARIABLE: storage} if storage else {})}
    with _over_a_version(folder, undisturbed) if over else new_rig(folder, storage) as rig:
        shutil.copy(undisturbed.folder / CALLS_NAME, folder)
        for job in jobs:
            if job == "experiments_job":
                # Seconds are part of the experiment's page; from the cache they are those of the undisturbed run.
                shutil.copytree(undisturbed.folder / "cache", folder / "cache", dirs_exist_ok=True)
            for partition in partitions_of(rig, ALL_JOBS[job][0]):
                _kill_through(chain, moments, rig, job, partition, shared)
        made = [asset for job in jobs for asset in ALL_JOBS[job]]
        chain.differing = differing(stored_state(rig, made), stored_state(undisturbed, made))
        for asset in made:
            for partition in partitions_of(rig, asset):
                key = artefact_key(asset, partition)
                chain.versions_ahead += rig.store.newest_version(key) - (2 if over else 1)
        rule = Rule(now=time.time() + 60, older_than=0)
        chain.leftovers = sum(1 for _ in (*collect_store(rig.store, rule), *collect_folder(folder / "cache", rule)))
        chain.torn += [*damaged_in(rig), *(f"{path} is left" for asset in made for path in _left(rig, asset))]
        chain.differing += differing(stored_state(rig, made), stored_state(undisturbed, made))
    return chain


def _over_a_version(folder: Path, undisturbed: Rig) -> Rig:
    rig = undisturbed.copy_to(folder)
    shutil.rmtree(folder / "cache")
    return rig


def _kill_through(
    chain: Chain,
    moments: Mapping[str, str],
    rig: Rig,
    job: str,
    partition: str | None,
    environment: Mapping[str, str],
) -> None:
    parent_run = None
    made_before = 0
    for asset in ALL_JOBS[job]:
        moment = moments[asset]
        if moment in ONLY_CACHED and asset not in CACHED:
            made_before += 1
            continue
        before = _manifests(rig.store)
        fault = ("killed_at", asset, moment)
        options = {"parent_run": parent_run, "environment": environment}
        run = start(execute, faulty_job_in_process, rig.folder, job, partition, *fault, **options)
        code = ended(run)
        assert code == -signal.SIGKILL, f"{asset} {moment}: the run ended with {code}"
        chain.kills += 1
        parent_run = rig.instance.get_runs(limit=1)[0].run_id
        assert end_dead_runs(rig.instance) == [parent_run]
        after = _manifests(rig.store)
        chain.lost += [path for path, content in before.items() if after.get(path) != content]
        chain.torn += damaged_in(rig)
        # The run made the assets between the last kill and this one, and the one it died at if that had come so far.
        assert len(after) - len(before) == made_before + (moment in LEAVES_A_VERSION), (asset, moment)
        made_before = 1
    last = start(
        execute, faulty_job_in_process, rig.folder, job, partition, parent_run=parent_run, environment=environment
    )
    assert ended(last) == 0, f"{job} did not end well after {chain.moment}"


def _manifests(store: ArtefactStore) -> dict[str, bytes]:
    paths = [path for path in store.backend.list_files("") if f"/{MANIFEST_FOLDER}/" in path]
    return {path: store.backend.read_bytes(path) for path in paths if path.endswith(".json")}


def damaged_in(rig: Rig) -> list[str]:
    """Return the files of a pipeline's store and cache that do not match their manifests."""
    checked = (*verify_store(rig.store), *verify_folder(rig.folder / "cache"))
    return [f"{each.address} {each.damage}" for each in checked if each.damage is not None]


def _left(rig: Rig, asset: str) -> Iterator[str]:
    for partition in partitions_of(rig, asset):
        yield from rig.store.leftovers(artefact_key(asset, partition))


def run_matrix(
    folder: Path,
    server: S3Server,
    *,
    jobs: int,
    told: Callable[[Chain], None],
    places: Sequence[str] = PLACES,
    moments: Sequence[str] = tuple(MOMENTS),
) -> list[Chain]:
    """Run the chain of every moment, on disk and on S3.

    Parameters
    ----------
    folder : Path
        For all pipelines; each is removed when its chain has ended.
    server : S3Server
        For artefacts on S3; its variables are set in this process.
    jobs : int
        Chains side by side.
    told : callable
        Told each chain as soon as it has ended.
    places, moments : sequences of str
        Some of ``PLACES`` and ``MOMENTS``.
    """
    undisturbed = undisturbed_run(folder / "undisturbed")
    lock = Lock()

    def run(chosen: tuple[int, str, str]) -> Chain:
        number, place, moment = chosen
        own = folder / f"chain-{number}"
        elsewhere: dict[str, Any] = {}
        if place == S3:
            elsewhere = {"storage": f"s3://{BUCKET}/chain-{number}", "environment": server.environment}
        chain = run_chain(own, moment, undisturbed, place=place, over=place == OVER, **elsewhere)
        shutil.rmtree(own, ignore_errors=True)
        with lock:
            told(chain)
        return chain

    wanted = [(place, moment) for place in places for moment in moments if place != S3 or moment in ON_S3]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run, [(number, *each) for number, each in enumerate(wanted)]))
