"""The language of evidence: rules, the graph they form, and the atoms they leave as columns."""
