"""Pictures of a condensed table, drawn by hand: few shapes on a sheet, written as SVG within milliseconds.

matplotlib takes a tenth of a second for a picture, and a condensation of half a million rows not two seconds. What
pages show again and again is drawn here; pictures of experiments, which are drawn once, are drawn by matplotlib. Shapes
are in ``shapes.py``, what they become in ``svg.py`` and ``raster.py``, axes in ``scales.py`` and ``chart.py``.
"""
