"""The door for packages that add to adjudge: rules, protocols, evaluator agents, commands. Nothing else is for them.

A package names its values as entry points (`adjudge.rules`, `adjudge.protocols`, `adjudge.agents`, `adjudge.commands`)
and imports from here alone. What each is for stands in its docstring; docs/extending.md has examples.
"""

from __future__ import annotations

from adjudge.errors import ConfigError, InputError, ProtocolViolation
from adjudge.evidence.atoms import pack_citations
from adjudge.evidence.graph import VerifierGraph
from adjudge.evidence.rule import Condition, Finding, Limits, Rule, RuleSet, Slot, Variant, rule_sets
from adjudge.evidence.table import Evidence
from adjudge.evidence.vocabulary import BUCKETS, Outcome, Scope, Severity
from adjudge.protocols.base import Input, Judged, Measured, Named, Packaged, Partition, Plan, Protocol, Role
from adjudge.protocols.common.plan import BatchPlan, RulePlan, configured
from adjudge.provenance.canonical import digest
from adjudge.readers.blocks import Block
from adjudge.runs.section import Column, Panel, Section
from adjudge.stats.bootstrap import mean, ratio_of_sums
from adjudge.stats.estimate import Estimate, Metric, count, share
from adjudge.stats.proportions import cluster_wilson, wilson
from adjudge.verdict.agent import Attribution, EvaluatorAgent, Item, ItemStatus, Judgement
from adjudge.verdict.gates import Gate

__all__ = [
    "BUCKETS",
    "Attribution",
    "BatchPlan",
    "Block",
    "Column",
    "Condition",
    "ConfigError",
    "Estimate",
    "EvaluatorAgent",
    "Evidence",
    "Finding",
    "Gate",
    "Input",
    "InputError",
    "Item",
    "ItemStatus",
    "Judged",
    "Judgement",
    "Limits",
    "Measured",
    "Metric",
    "Named",
    "Outcome",
    "Packaged",
    "Panel",
    "Partition",
    "Plan",
    "Protocol",
    "ProtocolViolation",
    "Role",
    "Rule",
    "RulePlan",
    "RuleSet",
    "Scope",
    "Section",
    "Severity",
    "Slot",
    "Variant",
    "VerifierGraph",
    "cluster_wilson",
    "configured",
    "count",
    "digest",
    "mean",
    "pack_citations",
    "ratio_of_sums",
    "rule_sets",
    "share",
    "wilson",
]
