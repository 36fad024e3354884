"""Check when an obstacle is open, retried, digested, and how long a tool normally takes."""

from __future__ import annotations

from reach_otel.engine.obstacles import BASELINE_MIN, BASELINE_WINDOW, Baselines, Obstacle, Obstacles


def obstacle(tool: str = "find", layer: int = 0, kind: str = "error") -> Obstacle:
    return Obstacle(kind=kind, tool=tool, milestone=None, layer=layer, action=1, span_id="s")


def test_bad_calls_belong_to_the_open_obstacle() -> None:
    """A tool has one obstacle open; further bad calls are its retries, until a normal success."""
    obstacles = Obstacles(2)
    first = obstacles.meet(obstacle())
    assert obstacles.meet(obstacle()) is first
    assert first.retries == 1
    assert obstacles.meet(obstacle("send")) is not first
    obstacles.succeed("find")
    assert not obstacles.is_open("find")
    assert obstacles.meet(obstacle()) is not first
    assert len(obstacles.all) == 3


def test_a_milestone_at_the_layer_or_deeper_digests() -> None:
    """A milestone in a shallower layer does not satisfy an obstacle; layer 0 takes any."""
    obstacles = Obstacles(2)
    deep, free = obstacles.meet(obstacle("a", layer=2)), obstacles.meet(obstacle("b"))
    obstacles.satisfy(1)
    assert [obstacles.is_digested(o) for o in (deep, free)] == [False, True]
    assert obstacles.ratio() == 0.5
    obstacles.satisfy(3)
    assert obstacles.ratio() == 1.0


def test_retries_beyond_the_cap_undo_digestion() -> None:
    """An obstacle that was digested is so no more once its tool fails too often."""
    obstacles = Obstacles(1)
    only = obstacles.meet(obstacle())
    obstacles.satisfy(1)
    obstacles.meet(obstacle())
    assert obstacles.is_digested(only)
    obstacles.meet(obstacle())
    assert not obstacles.is_digested(only)
    assert (obstacles.digested, obstacles.ratio()) == (0, 0.0)


def test_no_obstacle_has_no_ratio() -> None:
    """Without obstacles there is nothing to digest."""
    assert Obstacles(2).ratio() is None


def test_a_copy_goes_its_own_way() -> None:
    """What happens to a copy leaves the original as it was, and the other way round."""
    obstacles = Obstacles(2)
    original = obstacles.meet(obstacle())
    twin = obstacles.copy()
    twin.satisfy(1)
    twin.meet(obstacle())
    assert (original.retries, original.satisfied, obstacles.digested) == (0, False, 0)
    assert (twin.all[0].retries, twin.digested) == (1, 1)


def test_a_baseline_is_declared_or_learned() -> None:
    """The median of the latest successes, once there are enough; a declared one wins and is not learned over."""
    baselines = Baselines({"send": 0.5})
    for _ in range(BASELINE_MIN - 1):
        baselines.learn("find", 1.0)
        baselines.learn("send", 9.0)
    assert baselines.of("find") is None
    baselines.learn("find", 100.0)
    assert baselines.of("find") == 1.0
    assert baselines.of("send") == 0.5
    for _ in range(BASELINE_WINDOW):
        baselines.learn("find", 3.0)
    assert baselines.of("find") == 3.0
