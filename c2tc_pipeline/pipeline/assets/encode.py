"""From columns to numbers: ``encoder`` and ``encoded_table``."""

import dagster as dg

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.steps import AssetOptions
from c2tc_pipeline.pipeline.values import TableEncoder
from c2tc_pipeline.tables.table import Table

GROUP = "encode"


def encode_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that fit the encoder and encode the training rows."""

    @dg.asset(
        **options.of("encoder", group=GROUP, kinds={"pytorch", "scikitlearn"}, gpu=True),
        partitions_def=options.partitions.datasets,
        description="The hybrid encoder (HCFE), fitted to the training rows; the autoencoder's weights are cached.",
    )
    def encoder(context: dg.AssetExecutionContext, validated_table: Table):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.condensation.steps import fit_encoder, make_encoder

        with options.step(context) as step:
            unfitted = make_encoder(step.spec, device=step.device, cache_dir=step.cache.path)
            fitted = fit_encoder(unfitted, validated_table)
            return step.result(
                fitted,
                metadata={**metadata.of_encoder(fitted), "device": step.device},
            )

    @dg.asset(
        **options.of("encoded_table", group=GROUP, kinds={"numpy"}),
        partitions_def=options.partitions.datasets,
        description="The training rows as numbers in [0, 1], sorted by class, with validation rows beside them.",
    )
    def encoded_table(  # type: ignore[no-untyped-def]
        context: dg.AssetExecutionContext, validated_table: Table, encoder: TableEncoder
    ):
        from c2tc_pipeline.condensation.steps import encode

        with options.step(context) as step:
            encoded = encode(encoder, validated_table, origin=validated_table.training_digest())
            return step.result(encoded, metadata=metadata.of_encoded(encoded, encoder))

    return [encoder, encoded_table]
