"""Pure numbers: arrays in, Estimate out. No files, no records, no protocol; imports nothing but NumPy and SciPy.

Import the submodule that has what is needed; this module imports none of them.

- estimate: Estimate, a value with its interval, or null with the reason; what arguments are checked for
- proportions: wilson, clopper_pearson, jeffreys, cluster_wilson, design_effect, Newcombe's paired difference; quantile, exceedance
- bootstrap: ratio_of_sums, mean, statistic_of_counts, resample, on the draws and intervals of resampling; multinomial_cells
- confusion: tables with abstained, errored and missing answers; F1, MCC, balanced accuracy
- ranking: auroc; by cluster, from rows sorted once (ranking_bootstrap): average_precision and recall_at_fpr too
- calibration: ece, brier, log_loss, reliability_table
- selective, operating_point: risk and coverage; the threshold that holds a promised error
- agreement: κ, AC1, PABAK of two raters; Fleiss' κ and Krippendorff's α of many
- prevalence: the true share behind an imperfect judge
- paired, ties, power: comparisons of two systems on the same rows, and of many
- detection: thresholds, runs of exceedances and alarms; times until detection with misses censored
- exact: sums that no order of the rows changes
"""
