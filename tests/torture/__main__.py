"""`scripts/torture` starts this in the virtual environment."""

import argparse
import secrets
import sys
import time
from pathlib import Path

from machine.steps import interrupts, main_with_advice

from app.foundation.logs import configure_logs
from tests.torture.run import Options, Run
from tests.torture.stores import stores


def main() -> int:
    options = parse(sys.argv[1:])
    interrupts.install()
    configure_logs("ERROR", False)
    chosen = options.seed if options.seed is not None else secrets.randbelow(10**6)
    plan = Options(
        options.minutes,
        chosen,
        apis=options.apis,
        matchers=options.matchers,
        deliveries=options.deliveries,
        overdue=options.overdue,
        quick=options.quick,
    )
    began = time.monotonic()

    def tell(line: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {line}", file=sys.stderr, flush=True)

    tell(f"seed {chosen}")
    with stores() as started:
        report = Run(started, plan, tell).run()
    print(report.table())
    if options.json is not None:
        report.write(options.json)
    return 1 if report.violations else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/torture")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long things are broken (default 5)")
    parser.add_argument("--seed", type=int, help="what is broken when; drawn where it is not given, and printed")
    parser.add_argument("--apis", type=int, default=2, help="copies of the role api")
    parser.add_argument("--matchers", type=int, default=3, help="copies of the role matcher")
    parser.add_argument("--deliveries", type=int, default=2, help="copies of the role delivery")
    parser.add_argument("--overdue", type=int, default=300, help="offers that fall due while everything is down")
    parser.add_argument("--quick", action="store_true", help="fewer people and shorter times, for the test suite")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there as well")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main_with_advice(main))
