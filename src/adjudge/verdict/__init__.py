"""Verdicts that cite their evidence: checklist, adjudication, attribution, gates."""
