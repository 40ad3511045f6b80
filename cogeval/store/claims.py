"""One driver at a time where nothing can be created exclusively: the lock of a run in an object store.

A claim is an object of its own below ``lock/``. Whoever wants the lock writes its claim and then lists them
all; it holds the lock only if no other is there. The holder writes its claim anew every few seconds.

Invariant: of two claims one was written first, and the other one's listing shows it, so that two never both
hold. A claim is removed by others only when its process on this host has ended, or when its content has not
changed for a while by the looker's own clock: no clocks of two hosts are compared.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Mapping

import msgspec

from cogeval.errors import InputError, RunError
from cogeval.store.lock import LockHolder, refusal, this_process
from cogeval.store.places import Place

_SETTLE_S = 3.0  # how long the first of several candidates waits for the others to step back
_TRIES = 8


class Pace(msgspec.Struct, frozen=True):
    """How often a holder is heard, and when it counts as gone."""

    beat_s: float = 10.0
    stale_s: float = 30.0  # without a change
    look_s: float = 1.0  # between two looks at another's claim


class Claim(msgspec.Struct, frozen=True):
    """The content of a claim."""

    holder: LockHolder
    beat: int  # 0: wants the lock; more: holds it


class HeldClaim:
    """A lock that is held, and kept alive by a thread, until `release`.

    Args:
        place: of the claims.
        holder: this process.
        pace: how often it is heard.
    """

    def __init__(self, place: Place, holder: LockHolder, pace: Pace) -> None:
        self.holder: LockHolder = holder
        self._place = place
        self._pace = pace
        self._beat = 0
        self._beaten_at = 0.0
        self._is_lost = False
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lock of the run", daemon=True)
        self._say()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def check(self) -> None:
        """See `HeldLock`; asks the store when the thread has not been heard there for long."""
        if not self._is_lost and _now() - self._beaten_at > self._pace.stale_s / 2:
            self._renew()
        if self._is_lost:
            raise RunError(
                "another driver took this run over, for this one had not been heard for "
                f"{self._pace.stale_s:g} s; nothing more is written here. Wait for the other one to end"
            )

    def release(self) -> None:
        """See `HeldLock`."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._guard, contextlib.suppress(RunError, OSError):  # left behind, it is a dead process's
            self._place.remove(_name(self.holder))

    def _keep(self) -> None:
        while not self._ended.wait(self._pace.beat_s) and not self._is_lost:
            with contextlib.suppress(RunError, OSError):  # the store may answer next time
                self._renew()

    def _renew(self) -> None:
        """Makes the claim heard again, unless it is gone: then another has taken the lock."""
        with self._guard:
            if self._ended.is_set() or self._is_lost:
                return
            if self._place.size(_name(self.holder)) is None:
                self._is_lost = True
            else:
                self._say()

    def _say(self) -> None:
        at = _now()
        self._beat += 1
        self._place.publish(_name(self.holder), _encode(Claim(self.holder, self._beat)), replace=True)
        self._beaten_at = at


def claim(place: Place, run_id: str, pace: Pace = Pace()) -> HeldClaim:  # noqa: B008 - frozen value
    """Takes the lock or says who has it.

    Args:
        place: of the claims of this run.
        run_id: how the message names the run.
        pace: how often a holder is heard.

    Raises:
        InputError: another driver holds it; the message gives its host, process and age.
        RunError: the store does not answer.
    """
    mine = this_process()
    others: dict[str, Claim] = {}
    for _ in range(_TRIES):
        place.publish(_name(mine), _encode(Claim(mine, 0)), replace=True)
        try:
            others = _stand_off(place, mine)
            if not others:
                held = HeldClaim(place, mine, pace)
                held.start()
                return held
        except BaseException:
            with contextlib.suppress(RunError, OSError):
                place.remove(_name(mine))
            raise
        place.remove(_name(mine))
        _outwait(place, run_id, others, pace)
        time.sleep(random.uniform(0.05, 0.5))  # noqa: S311 - two that come together part
    raise InputError(refusal(next(iter(others.values())).holder, "", run_id))


def read_claims(place: Place) -> list[LockHolder]:
    """Who holds the lock, or wants it; those whose process on this host has ended are left out."""
    return [found.holder for found in _others(place, None, tidy=False).values()]


def _stand_off(place: Place, mine: LockHolder) -> dict[str, Claim]:
    """The claims that keep us from the lock; of several candidates the one with the least token waits."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        others = _others(place, mine)
        is_first = all(found.beat == 0 and mine.token < found.holder.token for found in others.values())
        if not others or not is_first or time.monotonic() > deadline:
            return others
        time.sleep(0.1)


def _outwait(place: Place, run_id: str, others: Mapping[str, Claim], pace: Pace) -> None:
    """Returns when one of some claims is gone, or was found stale and removed.

    Raises:
        InputError: one of them is alive.
    """
    for found in others.values():
        if found.beat and found.holder.host == socket.gethostname():  # it is no dead process's
            raise InputError(refusal(found.holder, "", run_id))
    began = time.monotonic()
    while time.monotonic() - began < pace.stale_s:
        time.sleep(pace.look_s)
        now = _others(place, None)
        if not others.keys() <= now.keys():
            return
        for name, then in others.items():
            if now[name].beat > then.beat:
                raise InputError(refusal(now[name].holder, "", run_id))
    for name, then in others.items():
        if (now_found := _read(place, name)) is not None and now_found.beat == then.beat:
            place.remove(name)


def _others(place: Place, mine: LockHolder | None, *, tidy: bool = True) -> dict[str, Claim]:
    """The claims of others by their names; those of dead processes of this host are removed."""
    found: dict[str, Claim] = {}
    for name in place.names("*.json"):
        if mine is not None and name == _name(mine):
            continue
        read = _read(place, name)
        if read is None:
            continue
        if not read.holder.is_dead():
            found[name] = read
        elif tidy:
            place.remove(name)
    return found


def _read(place: Place, name: str) -> Claim | None:
    try:
        return msgspec.json.decode(place.read(name), type=Claim)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _name(holder: LockHolder) -> str:
    return f"{holder.token}.json"


def _encode(said: Claim) -> bytes:
    return msgspec.json.encode(said)


def _now() -> float:
    """Seconds on a clock that goes on while the machine sleeps, where it has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
