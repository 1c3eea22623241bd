"""Every asset killed at every moment of its life, executed again, and compared byte by byte with an undisturbed run.

A chain takes one moment through all assets: a run is killed at its first asset, the run that goes on from its failure
at the second, and so on to the end. So each kill costs one run, and each asset is killed once and made once more. After
each kill the store is held against its manifests and against what was visible before.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from c2tc_pipeline.pipeline.instance import end_dead_runs
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.storage.maintenance import Collector, verify_folder, verify_store
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.pipeline.faulty_definitions import STORAGE_VARIABLE, execute, faulty_job_in_process
from c2tc_pipeline_tests.pipeline.pipeline_rig import PARTS, Rig, scopes_of
from c2tc_pipeline_tests.pipeline.processes import ended, start
from c2tc_pipeline_tests.storage.places import leftovers
from c2tc_pipeline_tests.storage.s3_server import BUCKET, S3Server
from c2tc_pipeline_tests.tools.made_tables import mixed_table
from c2tc_pipeline_tests.tools.reliability import moments as hooks
from c2tc_pipeline_tests.tools.reliability.moments import MOMENTS

TABLE = "people"
LOCAL, OVER, S3 = "local, nothing there", "local, over a version", "S3, nothing there"
PLACES = (LOCAL, OVER, S3)
ASSETS = tuple(asset for assets in PARTS.values() for asset in assets)


@dataclass
class Chain:
    """The outcome of one moment in one place: kills, and the files that were wrong after them or in the end.

    Differing are files of newest versions that differ from the undisturbed run's, torn those that do not match their
    manifest, lost manifests that were visible before a kill and not after it. Versions ahead are those made twice.
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


def undisturbed_run(folder: Path, jobs: Sequence[str] = tuple(PARTS)) -> Rig:
    """Run jobs once in processes of their own, which count their calls; return the pipeline, not entered."""
    rig = new_rig(folder)
    with rig:
        for job in jobs:
            for partition in scopes_of(PARTS[job][0], rig.catalogue):
                done = start(execute, faulty_job_in_process, folder, job, partition, "count_calls")
                assert ended(done) == 0, job
    return rig


def run_chain(
    folder: Path,
    moment: str | Mapping[str, str],
    undisturbed: Rig,
    *,
    place: str = LOCAL,
    environment: Mapping[str, str] | None = None,
    jobs: Sequence[str] = tuple(PARTS),
) -> Chain:
    """Kill the making of every asset at one moment, or each at its own, and return the outcome.

    ``environment`` has the variables by which S3 is reached; the caller has set them in this process.
    """
    chain = Chain(place, moment if isinstance(moment, str) else "each at another moment")
    moments = dict.fromkeys(ASSETS, moment) if isinstance(moment, str) else moment
    storage = f"s3://{BUCKET}/{folder.name}" if place == S3 else None
    shared = {**(environment or {}), **({STORAGE_VARIABLE: storage} if storage else {})}
    with undisturbed.copy_to(folder) if place == OVER else new_rig(folder, storage) as rig:
        shutil.rmtree(folder / "cache", ignore_errors=True)
        shutil.copy(undisturbed.folder / hooks.CALLS_NAME, folder)
        for job in jobs:
            for partition in scopes_of(PARTS[job][0], rig.catalogue):
                _kill_through(chain, moments, rig, job, partition, shared)
        made = [asset for job in jobs for asset in PARTS[job]]
        keys = [artefact_key(asset, partition) for asset in made for partition in scopes_of(asset, rig.catalogue)]
        expected = undisturbed.stored_files(*made)
        chain.differing = differing(rig.stored_files(*made), expected)
        chain.versions_ahead = sum(rig.store.newest_version(key) - (2 if place == OVER else 1) for key in keys)
        collector = Collector(older_than=-60)
        chain.leftovers = sum(1 for _ in (*collector.store(rig.store), *collector.folder(folder / "cache")))
        chain.torn += damaged_in(rig) + [f"{path} is left" for key in keys for path in leftovers(rig.store, key)]
        chain.differing += differing(rig.stored_files(*made), expected)
    return chain


def _kill_through(
    chain: Chain, moments: Mapping[str, str], rig: Rig, job: str, partition: str | None, environment: Mapping[str, str]
) -> None:
    parent_run = None
    made_before = 0

    def run(*fault: str) -> int | None:
        options = {"parent_run": parent_run, "environment": environment}
        return ended(start(execute, faulty_job_in_process, rig.folder, job, partition, *fault, **options))

    for asset in PARTS[job]:
        moment = moments[asset]
        if moment in hooks.ONLY_CACHED and asset not in hooks.CACHED:
            made_before += 1
            continue
        before = _manifests(rig.store)
        assert run("killed_at", asset, moment) == -signal.SIGKILL, (asset, moment)
        chain.kills += 1
        parent_run = rig.instance.get_runs(limit=1)[0].run_id
        assert end_dead_runs(rig.instance) == [parent_run]
        after = _manifests(rig.store)
        chain.lost += [path for path, content in before.items() if after.get(path) != content]
        chain.torn += damaged_in(rig)
        # The run made the assets between the last kill and this one, and the one it died at if that had come so far.
        assert len(after) - len(before) == made_before + (moment in hooks.LEAVES_A_VERSION), (asset, moment)
        made_before = 1
    assert run() == 0, f"{job} failed after {chain.moment}"


def _manifests(store: ArtefactStore) -> dict[str, bytes]:
    paths = [path for path in store.backend.list_files("") if "/manifests/" in path and path.endswith(".json")]
    return {path: store.backend.read_bytes(path) for path in paths}


def damaged_in(rig: Rig) -> list[str]:
    """Return the files of a pipeline's store and cache that do not match their manifests."""
    checked = (*verify_store(rig.store), *verify_folder(rig.folder / "cache"))
    return [f"{each.address} {each.damage}" for each in checked if each.damage is not None]


def run_matrix(
    folder: Path,
    server: S3Server,
    *,
    jobs: int,
    report: Callable[[Chain], None],
    places: Sequence[str] = PLACES,
    moments: Sequence[str] = tuple(MOMENTS),
) -> None:
    """Run the chains of some moments in some places, so many side by side; report each as soon as it has ended."""
    undisturbed = undisturbed_run(folder / "undisturbed")
    lock = Lock()

    def run(chosen: tuple[int, str, str]) -> None:
        number, place, moment = chosen
        own = folder / f"chain-{number}"
        chain = run_chain(own, moment, undisturbed, place=place, environment=server.environment if place == S3 else {})
        shutil.rmtree(own, ignore_errors=True)
        with lock:
            report(chain)

    wanted = [(place, moment) for place in places for moment in moments if place != S3 or moment in hooks.ON_S3]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, [(number, *each) for number, each in enumerate(wanted)]))
