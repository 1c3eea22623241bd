"""Measured against others: ``experiment_scores`` and ``experiment_report``, one each an experiment, made on request."""

from pathlib import Path

import dagster as dg

from c2tc_pipeline.orchestration.asset_options import AssetOptions
from c2tc_pipeline.orchestration.experiment_files import ExperimentResult, read_files
from c2tc_pipeline.orchestration.experiment_metadata import of_experiment_report, of_experiment_scores
from c2tc_pipeline.orchestration.experiments import (
    ExperimentConfig,
    ProgressLog,
    chosen_experiment,
    experiment_partitions,
    scores_recipe,
)
from c2tc_pipeline.orchestration.formats import PAGE_NAME
from c2tc_pipeline.orchestration.step_frame import framing
from c2tc_pipeline.orchestration.versioning import recipe
from c2tc_pipeline.storage.holds import ScratchDirectory

GROUP = "experiments"
MARKDOWN_NAME = "table.md"


def experiment_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that run an experiment and show what it found."""
    partitions = experiment_partitions()

    @dg.asset(
        **options.of(
            "experiment_scores",
            group=GROUP,
            kinds={"pytorch", "scikitlearn"},
            gpu=True,
            resources=frozenset({"paper_tables"}),
        ),
        partitions_def=partitions,
        description="Scores of all methods, models and seeds of one experiment, on the paper's tables or on yours.",
    )
    def experiment_scores(context: dg.AssetExecutionContext, config: ExperimentConfig):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.evaluation.experiments.runner import run_experiment

        with framing(context) as step:
            data = context.resources.paper_tables.path
            experiment, specs = chosen_experiment(context.partition_key, config, data=data, catalogue=options.catalogue)
            made_by = scores_recipe(experiment, specs)
            scores = run_experiment(
                experiment, specs, cache_dir=step.cache.path, jobs=config.jobs, progress=ProgressLog(context.log.info)
            )
            result = ExperimentResult(experiment, scores, {name: spec.split for name, spec in specs.items()})
            # A made table has no source.
            source = {"source": str(data or options.catalogue.path)} if specs else {}
            return step.result(result, recipe=made_by, metadata={**of_experiment_scores(result), **source})

    @dg.asset(
        **options.of("experiment_report", group=GROUP, kinds={"html"}),
        partitions_def=partitions,
        description="Tables, statistics and figures of one experiment, and a page with all of them.",
    )
    def experiment_report(context: dg.AssetExecutionContext, experiment_scores: ExperimentResult):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.experiment_job import write_experiment

        with framing(context) as step, ScratchDirectory() as folder:
            found = experiment_scores
            command = f"experiments_job for {found.experiment.name}"
            write_experiment(found.experiment, found.scores, Path(folder), command=command, splits=found.splits)
            files = read_files(Path(folder))
            version = step.io_manager.version_read("experiment_scores", step.partition) or ""
            made_by = recipe("experiment_report", {}, {f"experiment_scores/{step.partition}": version})
            return step.result(files, recipe=made_by, metadata=of_experiment_report(files, PAGE_NAME, MARKDOWN_NAME))

    return [experiment_scores, experiment_report]
