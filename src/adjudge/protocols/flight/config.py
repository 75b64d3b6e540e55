"""Everything that changes a number of a flight evaluation, typed and checked.

The limits stand in the constraint library, a YAML file that users copy and edit.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from adjudge.agents.options import AgentOptions
from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import check_choices, check_resamples, configured
from adjudge.protocols.flight.fields import FIELDS, TASKS
from adjudge.protocols.flight.priors import priors_of
from adjudge.readers.settings import yaml_of
from adjudge.stats.bootstrap import Drawing

BUILT_IN = ("ga-light/1", "ga-light/1+kinematics")
DEFAULT = "ga-light/1"


class _Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A table in which an unknown key is an error."""


class FieldLimits(_Strict):
    """A field's range and its largest change in one second."""

    range: tuple[float, float]
    jump: float


class TwoLimits(_Strict):
    """A warning and a critical limit."""

    warning: float
    critical: float


class Altitude(TwoLimits):
    """GPS against baro altitude; relative_to_shown compares with the offset of the shown state."""

    relative_to_shown: bool


class Track(TwoLimits):
    """Track against the velocity vector, where that is fast enough to have a direction."""

    not_under_kt: float


class Continuity(_Strict):
    """Steps inside an array, in multiples of the jump limit."""

    jumps: float
    critical_factor: float


class VelocityAltitude(_Strict):
    """Vertical speed against altitude."""

    low_altitude_ft: float
    low_limit_fpm: float
    limit_fpm: float


class Attitude(_Strict):
    """Attitude that no normal flight has, and pitch without climb."""

    critical_deg: float
    pitch_deg: float
    climb_per_degree: float


class Speed(_Strict):
    """Airspeeds that endanger the aircraft."""

    low_kt: float
    high_kt: float


class HighLow(_Strict):
    """Altitudes that endanger the aircraft."""

    low_ft: float
    high_ft: float


class Stall(_Strict):
    """Slow, nose up and not climbing, in the same step."""

    airspeed_kt: float
    pitch_deg: float
    vertical_speed_fpm: float


class Severities(_Strict):
    """How far past a limit a failure becomes critical."""

    critical_factor: float
    range_span_fraction: float


class Rules(_Strict):
    """Limits of the rules that look at more than one field."""

    altitude_consistency: Altitude
    speed_consistency: TwoLimits
    track_consistency: Track
    m3_array_continuity: Continuity
    velocity_altitude_consistency: VelocityAltitude
    attitude_velocity_consistency: Attitude
    rapid_descent: TwoLimits
    extreme_speed: Speed
    extreme_altitude: HighLow
    stall_condition: Stall


class AirborneOnly(_Strict):
    """Whether the low-speed and stall rules spare an aircraft that is on the ground."""

    enabled: bool
    under_kt: float


class Kinematics(_Strict):
    """Six rules beyond the original; null turns them off."""

    climb_rate: TwoLimits
    altitude_step: TwoLimits
    position_step: TwoLimits
    heading_step: TwoLimits
    coordinated_turn: TwoLimits
    load_factor: TwoLimits


class Library(_Strict):
    """A whole constraint library."""

    name: str
    severity: Severities
    fields: dict[str, FieldLimits]
    rules: Rules
    airborne_only: AirborneOnly
    kinematics: Kinematics | None = None

    def ranges(self) -> NDArray[np.float64]:
        """(19, 2): low and high of every field."""
        return np.array([self.fields[name].range for name in FIELDS])

    def jumps(self) -> NDArray[np.float64]:
        """(19,): the largest change in one second."""
        return np.array([self.fields[name].jump for name in FIELDS])


@dataclass(frozen=True)
class Loaded:
    """A library with its content as plain data, which is what the digest covers."""

    library: Library
    content: dict[str, Any]


def built_in_text(name: str) -> str:
    """The YAML of a built-in library, comments included."""
    if name not in BUILT_IN:
        raise ConfigError(
            f"there is no constraint library {name!r}; built in are {', '.join(BUILT_IN)}, or give a file"
        )
    path = files("adjudge.protocols.flight") / "libraries" / (name.replace("/", "-") + ".yaml")
    return path.read_text(encoding="utf-8")


def load(name_or_path: str) -> Loaded:
    """A library by name or from a YAML file, checked."""
    if name_or_path in BUILT_IN:
        return parse(built_in_text(name_or_path), name_or_path)
    path = Path(name_or_path)
    if not path.is_file():
        raise ConfigError(f"{name_or_path}: there is no such constraint library; built in are {', '.join(BUILT_IN)}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name_or_path}: cannot be read: {error}") from None
    return parse(text, name_or_path)


def fitting_library() -> dict[str, Any]:
    """ga-light/1 with the two options that real aircraft need: altitude offsets, and being on the ground."""
    content = load(DEFAULT).content
    content["name"] = "ga-light/1, relative altitude, airborne only"
    content["rules"]["altitude_consistency"]["relative_to_shown"] = True
    content["airborne_only"]["enabled"] = True
    return content


def fitting_library_text() -> bytes:
    """The same as YAML."""
    return yaml.safe_dump(fitting_library(), sort_keys=False, allow_unicode=True).encode()


def parse(text: str, where: str) -> Loaded:
    """A library from YAML; every error names the file and the key."""
    return check(yaml_of(text, where), where)


def check(data: Any, where: str) -> Loaded:
    """A library from plain data, as it stands in a run's configuration."""
    try:
        library = msgspec.convert(data, Library)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}. `adjudge flight library show` prints a library to copy") from None
    _check_fields(library, where)
    _check_pairs(library, where)
    if (
        library.name in BUILT_IN
        and where != library.name
        and msgspec.to_builtins(library) != load(library.name).content
    ):
        library.name = f"{library.name}, edited"
    return Loaded(library, msgspec.to_builtins(library))


def _check_fields(library: Library, where: str) -> None:
    for name in library.fields:
        if name not in FIELDS:
            close = difflib.get_close_matches(name, FIELDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{where}: fields: {name!r} is not one of the 19 fields.{hint}")
    missing = [name for name in FIELDS if name not in library.fields]
    if missing:
        raise ConfigError(f"{where}: fields: {missing[0]!r} is missing (all 19 fields need a range and a jump)")
    for name, limits in library.fields.items():
        low, high = limits.range
        if not low < high:
            raise ConfigError(
                f"{where}: fields: {name!r}: range [{low:g}, {high:g}] is empty or inverted; write [low, high]"
            )
        if not limits.jump > 0:
            raise ConfigError(f"{where}: fields: {name!r}: jump is {limits.jump:g}, expected a positive number")


def _check_pairs(library: Library, where: str) -> None:
    if library.severity.critical_factor < 1:
        raise ConfigError(
            f"{where}: severity.critical_factor is {library.severity.critical_factor:g}, expected 1 or more"
        )
    tables: dict[str, Any] = {f"rules.{name}": getattr(library.rules, name) for name in Rules.__struct_fields__}
    if library.kinematics is not None:
        tables |= {f"kinematics.{name}": getattr(library.kinematics, name) for name in Kinematics.__struct_fields__}
    for name, table in tables.items():
        if not isinstance(table, TwoLimits):
            continue
        descending = name == "rules.rapid_descent"
        if (table.critical > table.warning) if descending else (table.critical < table.warning):
            order = "at or below" if descending else "at or above"
            raise ConfigError(f"{where}: {name}: critical {table.critical:g} must be {order} warning {table.warning:g}")
    continuity = library.rules.m3_array_continuity
    for name, value in (("jumps", continuity.jumps), ("critical_factor", continuity.critical_factor)):
        if not value > 0:
            raise ConfigError(f"{where}: rules.m3_array_continuity.{name} is {value:g}, expected a positive number")
    for name, low, high in (
        ("rules.extreme_speed", library.rules.extreme_speed.low_kt, library.rules.extreme_speed.high_kt),
        ("rules.extreme_altitude", library.rules.extreme_altitude.low_ft, library.rules.extreme_altitude.high_ft),
    ):
        if not low < high:
            raise ConfigError(f"{where}: {name}: low {low:g} is not below high {high:g}")


class FlightConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The settings of one evaluation; `task` may name several, as in S1,M1,M3."""

    task: str
    outputs: list[str]
    reference: list[str] = []
    confidence: dict[str, Any] | None = None
    library: Any = DEFAULT
    scores: str = "both"
    match: str = "id"
    offset: dict[str, int] | int = 0
    top_k: int = 5
    repairs: bool = True
    rules: list[str] = []
    agent: str = "rules"
    agent_options: AgentOptions | None = None
    seed: int = 0
    resamples: int = 2000

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that are judged, in the order of the method."""
        asked = [name.strip() for name in self.task.split(",")]
        return tuple(name for name in TASKS if name in asked)

    def offset_of(self, task: str) -> int:
        """How many reference lines come before the one that belongs to the first output, with --match line."""
        return self.offset if isinstance(self.offset, int) else self.offset.get(task, 0)

    def drawing(self, stream: str) -> Drawing:
        """How a bootstrap with these random numbers draws."""
        return {"seed": self.seed, "stream": stream, "resamples": self.resamples}

    def prior(self, model: str) -> dict[str, Any] | None:
        """The confidence prior of a model, in the method's own shape; no score reads it."""
        prior: dict[str, Any] | None = (self.confidence or {}).get(model)
        return prior


def config_of(options: Mapping[str, Any]) -> FlightConfig:
    """The options as settings; what is wrong with them is a ConfigError."""
    config = configured("flight", options, FlightConfig)
    unknown = [name for name in config.task.split(",") if name.strip() not in TASKS]
    if unknown:
        raise ConfigError(f"task {unknown[0].strip()!r} is not one of {', '.join(TASKS)}; several are joined by commas")
    config.task = ",".join(config.tasks)
    if config.confidence is not None:
        config.confidence = priors_of(config.confidence, config.tasks)
    if not config.outputs:
        raise ConfigError("no outputs were given (--outputs FILE …)")
    check_choices(config, {"scores": ("fixed", "rubric", "both"), "match": ("id", "line")})
    if config.top_k < 1:
        raise ConfigError(f"top_k is {config.top_k}, expected 1 or more")
    if config.offset and config.match != "line":
        raise ConfigError("offset counts lines of the reference, so it needs --match line")
    if any(config.offset_of(task) < 0 for task in TASKS):
        raise ConfigError(f"offset is {config.offset}, expected 0 or more")
    check_resamples(config.resamples)
    return config
