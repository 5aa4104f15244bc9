"""Knowledge of the package about the middleware: whether the environment makes it share memory with
other processes, and the messages about that. Only Fast DDS is known. Launch files import this file
too: it needs no ROS until the settings in force are requested.

A process that is killed or stopped inside its `publish` keeps the lock of every port in shared
memory that it was writing to, and the next writer waits there: docs/middleware.md.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

# Variables that name the profile of Fast DDS: the first for version 3, the second for version 2,
# which these distributions have.
PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
_VERSION_2 = ("humble", "jazzy")
# Variables that keep discovery on this computer, and the values by which they do.
LOCAL_ONLY = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_LOCALHOST_ONLY": "1"}
# Variable with the transports of a process whose profile names none.
BUILTIN = "FASTDDS_BUILTIN_TRANSPORTS"

# Participants that the first announcements do not bring together discover one another at a periodic
# announcement.
ANNOUNCEMENT_PERIOD = 3.0  # period of announcements in Fast DDS, unless a profile sets it [s]
DISCOVERY_MARGIN = 0.5  # added to the period [s]
OTHER_DISCOVERY = 1.0  # duration of discovery with another middleware [s]

# Parts of messages: the name, the effect of shared memory, and the remedies.
NAME = "Fast DDS"
SHARES_MEMORY = (
    f"{NAME} uses shared memory: a process that joins, is stopped or is killed can delay the others"
)
SET_PROFILE = (
    f"Set {' and '.join(PROFILES)} to config/fastdds_real_time.xml for all ROS processes of the "
    "computer, controller_manager first"
)
LOCAL_ONLY_SHARES = (
    "with it rmw_fastrtps uses shared memory regardless of the profile: see dds-profile"
)
SET_LOCAL_PROFILE = (
    "Unset it, and set the profile config/fastdds_localhost.xml, which keeps DDS on this computer"
)


@dataclass(frozen=True)
class Transports:
    """Settings of the environment for the middleware's transports.

    Attributes:
        profile: path of the profile; empty without one.
        profile_text: content of the profile; None if it cannot be read.
        local_only: the variable that keeps discovery on this computer, with its value; empty if
            none does.
        builtin_transports: transports that the environment requests; empty for the default.
    """

    profile: str = ""
    profile_text: str | None = None
    local_only: str = ""
    builtin_transports: str = ""

    @property
    def shared_memory(self) -> str:
        """Why memory is shared, in words; empty if it is not."""
        if self.local_only:
            return f"{self.local_only} adds it to the transports of any profile"
        types = _user_transports(self.profile_text or "")
        if types is not None:
            return f"{self.profile} has it" if "SHM" in types else ""
        if self.builtin_transports.startswith("UDP"):
            return ""
        return f"{self.profile} does not turn it off" if self.profile else "no profile is set"


def use_udp() -> None:
    """Keeps Fast DDS from sharing memory in this process, unless the environment or a profile
    selects the transports; call before the first node is made."""
    os.environ.setdefault(BUILTIN, "UDPv4")


def use_loopback(profile: Path) -> None:
    """Keeps DDS of this process and its children on this computer, before the first node is made:
    Fast DDS by a profile, unless the environment names one, as LOCALHOST would share memory."""
    if transports() is None:
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    elif not any(os.environ.get(name) for name in PROFILES):
        os.environ.update(dict.fromkeys(PROFILES, str(profile)))
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
        os.environ.pop("ROS_LOCALHOST_ONLY", None)


def profile_variable() -> str:
    """The variable of `PROFILES` that this ROS distribution reads."""
    return PROFILES[1] if os.environ.get("ROS_DISTRO") in _VERSION_2 else PROFILES[0]


def transports() -> Transports | None:
    """Transport settings of this process's environment; None if the middleware is another."""
    from rclpy.utilities import get_rmw_implementation_identifier  # noqa: PLC0415

    if not get_rmw_implementation_identifier().startswith("rmw_fastrtps"):
        return None
    given, text = os.environ, None
    profile = next((path for name in PROFILES if (path := given.get(name))), "")
    if profile:
        with suppress(OSError):
            text = Path(profile).read_text(encoding="utf-8", errors="replace")
    pairs = (f"{key}={value}" for key, value in LOCAL_ONLY.items() if given.get(key) == value)
    return Transports(profile, text, next(pairs, ""), given.get(BUILTIN, ""))


def longest_discovery() -> float:
    """Longest time that a new participant needs to discover the present participants [s]."""
    settings = transports()
    if settings is None:
        return OTHER_DISCOVERY
    period = _announcement_period(settings.profile_text or "")
    return (ANNOUNCEMENT_PERIOD if period is None else period) + DISCOVERY_MARGIN


def _announcement_period(profile: str) -> float | None:
    """The period of a participant's announcements, [s]; None where the profile has none."""
    try:
        elements = list(ElementTree.fromstring(profile).iter())
    except ElementTree.ParseError:
        return None
    for element in elements:
        if element.tag.rpartition("}")[2] == "leaseAnnouncement":
            parts = {child.tag.rpartition("}")[2]: child.text for child in element}
            try:
                return float(parts.get("sec") or 0) + 1e-9 * float(parts.get("nanosec") or 0)
            except ValueError:  # such as DURATION_INFINITY
                return None
    return None


def shared_memory_found() -> str:
    """Message that the middleware shares memory, with reason and remedy; empty if it does not."""
    settings = transports()
    if settings is None or not settings.shared_memory:
        return ""
    return (
        f"{NAME} shares memory ({settings.shared_memory}). docs/middleware.md has the remedy: a "
        "profile such as config/fastdds_localhost.xml, in place of LOCALHOST"
    )


def _user_transports(profile: str) -> set[str] | None:
    """Types of the transports that replace the builtin transports; None if these stay."""
    try:
        elements = list(ElementTree.fromstring(profile).iter())
    except ElementTree.ParseError:
        return None
    values = [(e.tag.rpartition("}")[2], (e.text or "").strip()) for e in elements]
    if ("useBuiltinTransports", "false") not in values:
        return None
    return {value for tag, value in values if tag == "type"}
