"""Speed measurements beside reference implementations, as ratios within one run on one machine."""
