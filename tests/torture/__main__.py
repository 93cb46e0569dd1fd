"""Entry point that `scripts/torture` runs in the virtual environment."""

import argparse
import secrets
import sys
import time
from pathlib import Path

from machine.steps import interrupts, main_with_advice

from app.foundation.logs import configure_logs
from tests.torture import job_deaths
from tests.torture.run import Options, Run
from tests.torture.stores import stores


def main() -> int:
    interrupts.install()
    configure_logs("ERROR", False)
    if sys.argv[1:2] == ["jobs"]:
        return job_deaths.main(sys.argv[2:])
    options = parse(sys.argv[1:])
    seed = options.seed if options.seed is not None else secrets.randbelow(10**6)
    run_options = Options(
        options.minutes,
        seed,
        apis=options.apis,
        matchers=options.matchers,
        deliveries=options.deliveries,
        overdue=options.overdue,
        faults=options.faults,
        quick=options.quick,
    )
    began = time.monotonic()

    def log(line: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {line}", file=sys.stderr, flush=True)

    log(f"seed {seed}")
    with stores() as started:
        report = Run(started, run_options, log).run()
    print(report.table())
    if options.json is not None:
        report.write(options.json)
    return 1 if report.violations else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/torture")
    parser.add_argument("--minutes", type=float, default=5.0, help="minutes of faults (default 5)")
    parser.add_argument("--seed", type=int, help="seed of the order of faults; random by default, and printed")
    parser.add_argument("--apis", type=int, default=2, help="processes of the role api")
    parser.add_argument("--matchers", type=int, default=3, help="processes of the role matcher")
    parser.add_argument("--deliveries", type=int, default=2, help="processes of the role delivery")
    parser.add_argument("--overdue", type=int, default=300, help="how many offers fall due while everything is down")
    parser.add_argument("--faults", type=int, default=0, help="inject at least so many, even if it takes longer")
    parser.add_argument("--quick", action="store_true", help="fewer people and shorter times, for the test suite")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the report to FILE, as JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main_with_advice(main))
