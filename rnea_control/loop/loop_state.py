"""State of a loop that its machine code (native_loop.py) and Python share.

AArch64 lets another thread see writes in another order than they were made. Data of more than one
word are therefore between fences (`fence` and `barrier` of jit/linking.py, `dmb ish` on AArch64);
a word of eight bytes is read and written in one piece. Writers and readers:

- All that a tick changes. `run`: `sequence` becomes odd, fence, the rows, fence, `sequence` becomes
  even. `consistent`: `sequence`, fence, the rows, fence, `sequence`; again unless it was even and
  is the same.
- A request and its results. `post`: the box, fence, `request`. `run`: `request`, the fence of
  `_begin`, the box, the results, the fence of `_end`, `request`. `post`: `request`, fence, results.
- Emergency stops. `_hear_stop`: a row, fence, `stops_received`. `ControlLoop.attend`:
  `stops_received`, fence, the rows up to it.
- The arrays as a whole, when machine code ends. `run_natively`: fence, `runs`. `ArmLoop.paused`:
  `runs`, fence. `runs` is set with the lock held that `paused` holds.
- Flags and counts of one word, such as `interruptions`, `hangs`, `attended_at`, `ticks` and
  histograms: no other memory goes with them.

`AppliedTorque` (loop_records.py) has no fence: a row that is just being written is at worst not
found.
"""

from __future__ import annotations

import math

from rnea_control.jit.record import Record

# States of a request to machine code.
NOTHING = 0  # there is none
WAITS = 1  # it is to be carried out
SERVED = 2  # it was carried out


class LoopState(Record):
    """State of a loop. Times are of the steady clock [s]."""

    # Between Python and machine code.
    runs: bool = False  # machine code answers the joint states
    interruptions: int = 0  # threads that want machine code to stop
    sequence: int = 0  # odd while machine code writes what others read
    request: int = NOTHING
    answer: int = 0  # return code of the last call of rcl
    outcome: int = 0  # result of the last step

    # The last joint state.
    look: int = 0  # result of `look_at`
    stamp: int = 0  # its stamp, or the clock where it has none [ns]
    age: float = 0.0  # its age on arrival [s]; NaN where it has no stamp
    advanced: bool = False  # time has advanced by it

    # Read by machine code.
    system_time: bool = False  # the steady clock shows when joint states are missing
    has_efforts: bool = False  # joint states have efforts
    ignores_repeated: bool = False  # a repeated stamp tells nothing, unless simulated ones are late
    period: int = 0  # period of the joint states [ns]; 0 until it is known
    own_gid_low: int = 0  # GID of the own publisher of commands, in two words
    own_gid_high: int = 0
    sentinel_known: bool = False  # only this publisher's revocation counts:
    sentinel_gid_low: int = 0
    sentinel_gid_high: int = 0
    state_gap: float = 0.0  # time after which a missing joint state is predicted [s]
    state_timeout: float = 0.0  # time after which joint states are lost [s]
    longest_wait: float = 0.0  # for a message [s]
    prediction_period: float = 0.0  # of commands while joint states are missing [s]
    longest_hang: float = math.inf  # for which the interpreter may be blocked [s]

    # Written by machine code.
    newest: int = 0  # which of the two messages is the newest joint state
    ticks: int = 0  # joint states answered
    unpublished: int = 0  # commands that rcl did not publish
    findings_seen: int = 0
    under_way: bool = False  # a motion was under way in the last tick
    published_at: float = 0.0  # time of the last command
    predicted_at: float = 0.0  # time of the last command without a joint state
    stops_received: int = 0  # emergency stops pressed or released
    stops_read: int = 0  # those of them that Python has read
    hangs: bool = False  # the interpreter is blocked
    attended_at: float = 0.0  # last time at which the interpreter was known to run

    # The rate limit; see `rate_time`.
    rate_at: float = 0.0  # end of the time that it has counted, for the last command
    rate_credit: float = 0.0  # time before that which it has not counted yet [s]
    next_rate_at: float = 0.0  # the same for the torque that is computed now
    next_rate_credit: float = 0.0
