"""One machine's ceiling: presses a second, how they grow with processes of the api, and what a press costs."""

import os
from collections.abc import Sequence

from benchmarks import ceiling_costs, flame
from benchmarks.attempts import keeping
from benchmarks.bench import Bench, say
from benchmarks.ceiling_report import Growth, GrowthRound, section
from benchmarks.ceiling_world import LEAST, OURS, RIVAL, CeilingWorld, api, placed, rival
from benchmarks.cores import Placement, placements
from benchmarks.report import Section

API_PROCESSES = (1, 2, 4, 8)
CONNECTIONS = (8, 16, 32)
SHARED_CONNECTIONS = (16,)
"""Where the client shares the cores, the number of processes is what matters."""


def measure(bench: Bench) -> Section:
    growth: dict[tuple[str, int], Growth] = {}
    found = ceiling_costs.CostFigures()
    with keeping(lambda: section(bench, growth, found)), bench.redis() as redis:
        world = CeilingWorld(bench, redis)
        first, *others = placements(os.sched_getaffinity(0))[: bench.size(2, 1)]
        for placement, connections in ((first, CONNECTIONS), *((one, SHARED_CONNECTIONS) for one in others)):
            with placed(world.stores, placement):
                for number in API_PROCESSES[: bench.size(4, 1)]:
                    say(f"ceiling: {placement.name}, {number} processes of the api")
                    growth[placement.name, number] = _grow(world, placement, number, connections)
        with placed(world.stores, first):
            ceiling_costs.measure(world, first, found)
            if bench.flame:
                found.flame = flame.draw(world, first, bench.flame)
    bench.drop(OURS, LEAST, RIVAL)
    return section(bench, growth, found)


def _grow(world: CeilingWorld, placement: Placement, number: int, connections: Sequence[int]) -> Growth:
    """Ours, floor and rival in turns."""
    bench, growth = world.bench, Growth()
    presses, rounds = bench.size(500, 48), bench.size(2, 1)
    with api(bench, placement.service, number) as (_, ours), rival(bench, placement.service, number) as (_, beside):
        for port in (ours, beside):
            world.press(port, 8 * number, presses // 2)
        for _ in range(rounds):
            for clients in connections[:1] if bench.quick else connections:
                level = world.press(ours, clients, presses)
                floor = world.play(clients, bench.size(960, 160))
                bare = world.press(beside, clients, presses).a_second
                growth.add(clients, GrowthRound(level, floor, bare))
                for database in (OURS, LEAST, RIVAL):
                    world.end_all(database)
    return growth
