"""Pure numbers: arrays in, Estimate out. No files, no records, no protocol; imports nothing but NumPy and SciPy.

Import the submodule that has what is needed; this module imports none of them.

estimate         Estimate: a value with its interval, or null with the reason proportions      wilson,
clopper_pearson, jeffreys, cluster_wilson, design_effect, newcombe differences bootstrap        ratio_of_sums, mean,
statistic_of_counts, multinomial_cells, resample; on the draws of `resampling` confusion        tables with abstained,
errored and missing answers: precision, recall, F1, MCC, balanced accuracy, rates ranking          auroc,
delong_difference, average_precision, recall_at_fpr, f1_at; by cluster through `ranking_bootstrap` error_measures
mae, rmse, circular_differences, quantile, exceedance sequences        runs of consecutive exceedances, first_alarms,
alarm_events latency          Kaplan–Meier median and restricted_mean of times until detection partials
Counts, Sums, Column, Scores: partial results that merge exactly exact            correctly rounded sums, whatever the
order of the rows
"""
