"""An event loop whose time passes only while nothing else happens, and a clock that reads it."""

import asyncio
import selectors


class _Selector(selectors.SelectSelector):
    def __init__(self, loop):
        super().__init__()
        self._its_loop = loop

    def select(self, timeout=None):
        if timeout is None:
            raise AssertionError("everybody waits for something that will never happen")
        self._its_loop.passed += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer instead of waiting for it."""

    def __init__(self):
        self.passed = 0.0
        super().__init__(_Selector(self))

    def time(self):
        return self.passed


class LoopClock:
    """The time of the loop that runs."""

    def now(self):
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


def run(main):
    """Runs a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
