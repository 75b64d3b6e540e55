"""Pure numbers: arrays in, Estimate out. No files, no records, no protocol; imports nothing but NumPy and SciPy.

Import the submodule that has what is needed; this module imports none of them.

estimate         Estimate: a value with its interval, or null with the reason
proportions      wilson, clopper_pearson, jeffreys, cluster_wilson, design_effect, newcombe differences
bootstrap        ratio_of_sums, mean, statistic_of_counts, multinomial_cells, resample; on the draws of `resampling`
error_measures   mae, rmse, circular_differences, quantile, exceedance
exact            correctly rounded sums, whatever the order of the rows
"""
