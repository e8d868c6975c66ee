"""The barrier between hosts: rounds begin together, and nobody waits for whoever has left."""

import threading
import time
from random import Random

from iolab.run.hosts import RoundBarrier, RoundsTogether
from iolab.run.stop import StopSwitch

ROUNDS = 6


def test_no_host_is_ahead_of_another():
    begun = {"a": 1, "b": 1, "c": 1}
    ahead = []
    barrier = RoundBarrier(begun)

    def run(name, switch):
        rng = Random(name)
        together = RoundsTogether(barrier, name)
        together.begin(None, None, switch)
        for number in range(1, ROUNDS + 1):
            together.before_round(number)
            begun[name] = number
            ahead.append(number - min(begun.values()))
            time.sleep(rng.random() / 100)
        barrier.leave(name)

    in_threads(run, begun)
    assert begun == dict.fromkeys("abc", ROUNDS)
    # Who is released first says so before the others do.
    assert max(ahead) <= 1


def test_one_that_ends_is_not_waited_for_and_one_behind_catches_up():
    barrier = RoundBarrier("abc")
    order = []

    def run(name, switch):
        if name == "b":
            barrier.wait(name, 1, switch)
            barrier.leave(name)
            return
        for number in range(1 if name == "c" else 3, 5):
            barrier.wait(name, number, switch)
            order.append((number, name))
        barrier.leave(name)

    in_threads(run, "abc")
    assert order[:2] == [(1, "c"), (2, "c")]
    assert [number for number, _ in order[2:]] == [3, 3, 4, 4]


def test_a_press_ends_the_waiting():
    barrier, switch = RoundBarrier("ab"), StopSwitch()
    timer = threading.Timer(0.05, switch.press)
    timer.start()
    barrier.wait("a", 1, switch)
    assert switch.presses == 1
    timer.join()
    switch.close()


def in_threads(run, names):
    """Run it for each name at the same time."""
    switches = {name: StopSwitch() for name in names}
    threads = [threading.Thread(target=run, args=item) for item in switches.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    for switch in switches.values():
        switch.close()
