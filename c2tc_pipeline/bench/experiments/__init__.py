"""The paper's experiments: grids, tables, runs, and the numbers that the paper prints."""
