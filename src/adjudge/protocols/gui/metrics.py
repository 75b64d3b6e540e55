"""The numbers of a gui run: the v1.0 evaluation metrics, the keys beside them, slices and intervals by episode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjudge.errors import InputError
from adjudge.protocols.base import Measured, Named
from adjudge.protocols.gui import charts
from adjudge.protocols.gui.baselines import baselines, broken_scenarios
from adjudge.protocols.gui.comparable import DATASET_COLUMNS, comparable
from adjudge.protocols.gui.config import GuiConfig
from adjudge.protocols.gui.counts import PLACE, Ints, Partial, merge
from adjudge.protocols.gui.schemas import OPTIONAL
from adjudge.protocols.gui.sections import gui_sections, notes_of, refuse_no_match, refuse_other_space
from adjudge.protocols.gui.spaces import Mask
from adjudge.stats import bootstrap
from adjudge.stats.estimate import Estimate, Metric, share
from adjudge.stats.exact import rounded, total
from adjudge.stats.proportions import cluster_wilson, quantile, wilson

_BY_EPISODE = "Wilson with the design effect of the episodes"
_WILSON = "Wilson over episodes"
_NO_STEPS = "without steps"
_NO_EPISODES = "without episodes"
_NO_PAIRS = "no click step has coordinates on both sides"


def _steps(name: str, formula: str, null: str = _NO_STEPS, *, headline: bool = True) -> Metric:
    return share(name, headline=headline, formula=formula, interval=_BY_EPISODE, null=null)


def _episodes(name: str, formula: str, null: str = _NO_EPISODES, *, headline: bool = False) -> Metric:
    return share(name, headline=headline, formula=formula, interval=_WILSON, null=null)


def _mean(name: str, formula: str) -> Metric:
    return share(name, formula=formula, interval="bootstrap over episodes", null=_NO_EPISODES)


METRICS = (
    _steps("action_type_accuracy", "steps whose predicted action has the recorded type ÷ all steps"),
    Metric(
        "mean_coord_error",
        low=0.0,
        better="lower",
        headline=True,
        formula="mean distance of click and target, in shares of the screen, over clicks with coordinates on both sides",
        interval="bootstrap over episodes; none for slices",
        null=_NO_PAIRS,
    ),
    _steps(
        "click_hit_rate",
        "clicks within the radius of the target ÷ click steps with coordinates on both sides",
        _NO_PAIRS,
    ),
    _episodes("episode_success_rate", "episodes whose every step is fully correct ÷ all episodes", headline=True),
    _steps("fully_correct_rate", "steps whose type, place and argument are right ÷ all steps"),
    _steps("click_hit_rate_all", "clicks within the radius of the target ÷ all click steps", "no click steps"),
    _steps(
        "bbox_hit_rate", "clicks inside the recorded box ÷ click steps with a box", "no click step has a recorded box"
    ),
    _steps("element_accuracy", "steps on the recorded element ÷ steps with one", "no step has a recorded element"),
    _steps(
        "step_score",
        "steps that are fully correct if they point at something, else of the right type ÷ all steps",
        headline=False,
    ),
    _steps(
        "drag_hit_rate",
        "drags with both ends hit ÷ drag steps",
        "no recorded drag has two ends to compare",
        headline=False,
    ),
    Metric(
        "click_distance_*th_percentile",
        low=0.0,
        better="lower",
        formula="the distance that this share of the clicks does not exceed, in shares of the screen",
        interval="order statistics",
        null=_NO_PAIRS,
    ),
    _episodes("success_by_types_only", "episodes whose every action type is right ÷ all episodes"),
    _episodes(
        "weak_episode_success_rate", "episodes that reach every milestone ÷ those with any", "no episode has milestones"
    ),
    _episodes("state_success_rate", "episodes whose outcome is success ÷ all episodes", "no outcomes were given"),
    share(
        "self_reported_success_rate",
        better=None,
        formula="episodes that the agent itself calls done ÷ episodes in which it reports a state",
        interval=_WILSON,
        null="no prediction reports a state",
    ),
    _mean("mean_episode_progress", "share of right action types of an episode, mean over episodes"),
    _mean("mean_episode_step_score", "step score of an episode, mean over episodes"),
    _mean("mean_episode_full_score", "share of fully correct steps of an episode, mean over episodes"),
    share(
        "top1_hit_rate",
        headline=True,
        formula="grounding records whose first answer lies in the box ÷ records",
        interval="Wilson",
        null="without records",
    ),
    share(
        "oracle_at_*",
        "oracle at {}",
        headline=True,
        formula="records of which one of the first k candidates lies in the box ÷ records",
        interval="Wilson",
        null="no record has candidates",
    ),
    share(
        "mean_iou",
        "mean IoU",
        headline=True,
        formula="intersection over union of the answer's and the recorded box, mean over answers that are boxes",
        interval="bootstrap over records",
        null="no answer is a box",
    ),
)

SOM = "elements are judged, not points (SoM mode)"


def finish(partials: Sequence[Partial], config: GuiConfig, types: tuple[str, ...]) -> Measured:
    """All numbers from the partials, in order."""
    whole = merge(partials)
    if not whole.episodes:
        raise InputError("there are no recorded steps at all, so there is nothing to judge")
    refuse_no_match(whole, config)
    refuse_other_space(whole, config)
    numbers = Numbers(whole, config, types)
    estimates = numbers.of_run()
    slices = numbers.slices()
    named = [Named(name, "", estimate) for name, estimate in estimates.items()]
    named += [
        Named(name, f"{by}={value}", estimate)
        for by, values in slices.items()
        for value, estimates_of_slice in values.items()
        for name, estimate in estimates_of_slice.items()
    ]
    broken, others = broken_scenarios(whole, types), baselines(whole, types)
    return Measured(
        estimates=named,
        digests={"dataset": whole.dataset.hex()},
        metrics=numbers.metrics(estimates),
        top={
            **{name: getattr(config, name) for name in ("config_path", "backend", "dsl_mode", "click_radius", "space")},
            **{
                f"metrics_by_{by}": {
                    value: _slice_metrics(estimates_of_slice) for value, estimates_of_slice in values.items()
                }
                for by, values in slices.items()
            },
            "baselines": others,
            "broken_scenarios": broken,
            "unmatched": {"predictions": whole.unmatched, "first": whole.unmatched_names},
            "comparable": comparable(som=config.dsl_mode == "som"),
            "dataset_columns": list(DATASET_COLUMNS),
        },
        charts=charts.build(whole, estimates, slices["action_type"], config),
        sections=gui_sections(whole, estimates, others, types, config),
        notes=notes_of(whole, broken, som=numbers.som),
        one_model=True,
    )


class Numbers:
    """Estimates over all episodes or a slice of them."""

    def __init__(self, whole: Partial, config: GuiConfig, types: tuple[str, ...]) -> None:
        self.whole, self.config, self.types = whole, config, types
        self.m = len(whole.episodes)
        self.click = types.index("click")
        self.som = config.dsl_mode == "som"
        self.drawing: dict[str, Any] = {"seed": config.seed, "resamples": config.resamples}
        self._columns = np.ascontiguousarray(whole.cells.T, dtype=np.float64)
        self.no_point = not whole.cells[:, PLACE["pointed"]].any()

    def count(self, name: str, cells: Mask | None = None) -> int:
        """The total of a counted column."""
        column = self._columns[PLACE[name]]
        return int((column if cells is None else column[cells]).sum())

    def by_episode(self, name: str, cells: Mask | None = None) -> Ints:
        """A counted column by episode."""
        column, episode = self._columns[PLACE[name]], self.whole.cell_episode
        if cells is not None:
            column, episode = column[cells], episode[cells]
        return np.bincount(episode, weights=column, minlength=self.m).astype(np.int64)

    def rate(self, part: str, of: str, cells: Mask | None, why: str) -> Estimate:
        """A share of steps, by Wilson at the effective number of steps, whose clusters are the episodes."""
        trials = self.by_episode(of, cells)
        if not trials.any():
            return Estimate.null(why, method="wilson, cluster design effect")
        return cluster_wilson(self.by_episode(part, cells)[trials > 0], trials[trials > 0])

    def of_run(self) -> dict[str, Estimate]:
        """Every estimate about the whole run."""
        n = self.by_episode("n")
        estimates = self._steps(self.whole.cell_kind == self.click, interval=True)
        estimates["click_distance_50th_percentile"] = (
            quantile(self.whole.distances, 0.5)
            if self.whole.distances.size
            else Estimate.null(self._no_distance(), method="order statistics")
        )
        estimates |= self._episodes(np.ones(self.m, dtype=bool))
        for column, name in _MEANS.items():
            estimates[name] = bootstrap.mean(self.by_episode(column) / n, stream=f"gui/{name}", **self.drawing)
        return estimates

    def _steps(self, click: Mask, cells: Mask | None = None, *, interval: bool = False) -> dict[str, Estimate]:
        """The shares of steps, and the distance of clicks; `click` are the cells of click steps."""
        som = SOM if self.som else None
        return {
            "action_type_accuracy": self.rate("right", "n", cells, "no steps"),
            "step_score": self.rate("scored", "n", cells, "no steps"),
            "fully_correct_rate": self.rate("full", "n", cells, "no steps"),
            "click_hit_rate": self.rate("hits", "pairs", click, self._no_distance()),
            "click_hit_rate_all": self._hits_of_all(click),
            "bbox_hit_rate": Estimate.null("no prediction of the file has a point", method="wilson")
            if self.no_point and not self.som
            else self.rate("box_hits", "boxed", click, som or "no click step has a recorded box"),
            "drag_hit_rate": self.rate("drag_hits", "drags", cells, som or "no recorded drag has two ends to compare"),
            "element_accuracy": self.rate("element_right", "on_element", cells, "no step has a recorded element")
            if self.som
            else Estimate.null("points are judged, not elements (coordinate mode)", method="wilson"),
            "mean_coord_error": self.coord_error(click, interval=interval),
        }

    def _hits_of_all(self, click: Mask) -> Estimate:
        """Hits over all recorded clicks: not attempted is missed."""
        if self.som:
            return Estimate.null(SOM, method="wilson")
        if not self.count("n", click):
            return Estimate.null("no click steps", method="wilson")
        if not self.count("normalised", click):
            return Estimate.null("no click step has a target with a normalised distance", method="wilson")
        return self.rate("hits", "n", click, "no click steps")

    def coord_error(self, click: Mask, *, interval: bool) -> Estimate:
        """The mean distance of click steps where both sides have coordinates."""
        pairs = self.by_episode("pairs", click)
        n = int(pairs.sum())
        if not n:
            return Estimate.null(self._no_distance(), method="cluster bootstrap")
        distances = self.whole.cell_distance[click]
        if not interval:
            return Estimate(
                value=rounded(total(distances), n), n=n, method="mean; its interval stands with the whole run"
            )
        sums = np.bincount(self.whole.cell_episode[click], weights=distances, minlength=self.m)
        return bootstrap.ratio_of_sums(
            sums[pairs > 0], pairs[pairs > 0], stream="gui/mean_coord_error", n=n, unit="episode", **self.drawing
        )

    def _no_distance(self) -> str:
        if self.som:
            return SOM
        if self.config.space == "pixel" and not self.count("normalised") and self.count("pointed"):
            return "the boxes and points are pixels and no screen size is known"
        return "no click step has coordinates on both sides"

    def _episodes(self, chosen: Mask) -> dict[str, Estimate]:
        """The shares of episodes."""
        whole, n = self.whole, self.by_episode("n")

        def rate(right: Mask, of: Mask, why: str = "no episodes") -> Estimate:
            count = int(of.sum())
            return wilson(int((right & of).sum()), count) if count else Estimate.null(why, method="wilson")

        outcomes = chosen & bool(self.config.outcomes)
        return {
            "episode_success_rate": rate(self.by_episode("full") == n, chosen),
            "success_by_types_only": rate(self.by_episode("right") == n, chosen),
            "weak_episode_success_rate": rate(
                whole.unreached == 0, chosen & (whole.milestones > 0), "no episode has milestones"
            ),
            "state_success_rate": rate(whole.outcomes == 1, outcomes, "no outcomes were given (--outcomes)"),
            "self_reported_success_rate": rate(
                whole.self_reports == 1, chosen & (whole.self_reports >= 0), "no prediction reports a state"
            ),
        }

    def slices(self) -> dict[str, dict[str, dict[str, Estimate]]]:
        """Estimates by action type, scenario and platform."""
        kinds = self.whole.cell_kind
        by_type = {self.types[kind]: self._steps(kinds == kind, kinds == kind) for kind in np.unique(kinds).tolist()}
        return {
            "action_type": {
                kind: {name: e for name, e in estimates.items() if e.value is not None or name in _BY_TYPE}
                for kind, estimates in by_type.items()
            },
            "scenario": self._by_value(self.whole.scenarios),
            "platform": self._by_value(self.whole.platforms),
        }

    def _by_value(self, values: Sequence[str | None]) -> dict[str, dict[str, Estimate]]:
        """Estimates of the episodes of each value."""
        by_value = {}
        for value in sorted({value for value in values if value is not None}):
            chosen = np.array([other == value for other in values])
            cells = chosen[self.whole.cell_episode]
            by_value[value] = self._steps(cells & (self.whole.cell_kind == self.click), cells) | self._episodes(chosen)
        return by_value

    def metrics(self, estimates: dict[str, Estimate]) -> dict[str, Any]:
        """The flat documented names: v1.0 first, then the keys beside them, then the intervals."""
        click = self.whole.cell_kind == self.click
        value = {name: estimate.value for name, estimate in estimates.items()}
        flat: dict[str, Any] = {
            "num_episodes": self.m,
            "num_steps": self.count("n"),
            **{name: value[name] for name in ("action_type_accuracy", "mean_coord_error")},
            "coord_error_count": self.count("pairs", click),
            **{name: value[name] for name in ("episode_success_rate", "click_hit_rate", *OPTIONAL)},
            "missing_steps": self.count("missing"),
            "unparsed_steps": self.count("unparsed"),
            "out_of_space_steps": self.count("outside"),
            "click_steps": self.count("n", click),
            "click_steps_without_box": self.count("unboxed", click),
            "unmatched_predictions": self.whole.unmatched,
            "missing_outcomes": int((self.whole.outcomes < 0).sum()) if self.config.outcomes else None,
        }
        flat |= {name: value[name] for name in value if name not in flat}
        for name, estimate in estimates.items():
            ends = [estimate.low, estimate.high]
            flat[f"{name}_ci"] = None if None in ends else ends
        return flat


def _slice_metrics(estimates: dict[str, Estimate]) -> dict[str, Any]:
    """A slice as flat numbers."""
    episodes = {"num_episodes": estimates["episode_success_rate"].n} if "episode_success_rate" in estimates else {}
    values = {name: estimate.value for name, estimate in estimates.items()}
    return {**episodes, "num_steps": estimates["action_type_accuracy"].n, **values}


_MEANS = {"right": "mean_episode_progress", "scored": "mean_episode_step_score", "full": "mean_episode_full_score"}
_BY_TYPE = ("action_type_accuracy", "fully_correct_rate", "click_hit_rate", "bbox_hit_rate", "mean_coord_error")
