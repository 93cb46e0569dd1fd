"""A Hypothesis state machine: deeds of people, matchers and faults in any order, each checked against the reference."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.foundation.errors import AppError
from app.matching import availability, deeds
from app.matching.cascade import Lists, settle
from app.matching.contract import NewTask
from app.matching.follow_up import FollowUp
from app.matching.rules.matching_rules import MatchingRules
from app.matching.store.stores import Store
from app.redis_store.contract import RedisUnavailable
from app.users.models import Caller
from tests.model.reference import HELD, OPEN, CandidateList, Reference, Student, Task
from tests.model.worlds import Interruption, OfferRow, Snapshot, World
from tests.support.press_alone import press_alone

ELDERS, STUDENTS = 4, 5
ROUNDS = 30
Index = st.integers(0, 10**6)
"""Index of a person or a task, modulo how many exist at that moment."""
Spots = st.sampled_from([0.0, 61.0, 133.0, 487.0, 727.0, 991.0, 1013.0, 1319.0, 1397.0, 1613.0, 2203.0])
Homes = st.sampled_from([7.0, 307.0, 907.0, 1907.0])
"""Metres along one line, chosen so that no two distances are equal, none is close to the radius, and none is closer to
1.5 radii than the cells of the map are wide."""
WITHOUT_LIMITS = MatchingRules(
    tasks_per_minute=10**6,
    tasks_per_hour=10**6,
    cancels_per_student=10**6,
    withdrawals_per_day=10**6,
    alarm_interval=timedelta(0),
    fastest_mps=1e9,
    cell_m=1.0,
)
"""Here people press, withdraw, cancel and move as fast as the machine can, and cells are too small to matter.
`tests/abuse` is about the limits and about cells."""
Sides = st.sampled_from([1, -1])


class MatchingMachine(RuleBasedStateMachine):
    """A subclass creates the world, which holds the real stores."""

    slack = timedelta(seconds=3)

    def make_world(self, rules: MatchingRules) -> World:
        raise NotImplementedError

    @initialize(
        elders=st.lists(Homes, min_size=ELDERS, max_size=ELDERS),
        students=st.lists(st.tuples(Spots, Sides), min_size=2, max_size=STUDENTS),
        cap=st.sampled_from([50, 50, 2]),
    )
    def people(self, elders: list[float], students: list[tuple[float, int]], cap: int) -> None:
        rules = replace(WITHOUT_LIMITS, cap=cap)
        self.world = self.make_world(rules)
        self.ref = Reference(rules)
        self.elders = [self.world.elder(metres) for metres in elders]
        self.homes = {caller.id: metres for caller, metres in zip(self.elders, elders, strict=True)}
        self.callers = {}
        for spot, side in students:
            caller = self.world.student(spot * side)
            self.callers[caller.id] = caller
            self.ref.students[caller.id] = Student(caller.id, spot * side)
        self.coordinator = self.world.coordinator()
        self.ref.coordinators = [self.coordinator.id]
        self.redis_is_down = False
        self.redis_knows_all = True
        self.hints_were_lost = False
        self.waited: set[UUID] = set()
        self.rankings_before: dict[UUID, list[int]] = {}
        """The rankings before an interruption: a list may have been made before a student on it left."""
        self.claimed: set[UUID] = set()
        """Tasks claimed by a matcher that died. Redis offers their deadlines again a second later."""
        self.world.redis_sync.refresh()

    # ---- the elder ----

    @rule(elder=Index, dies=st.sampled_from([False, False, False, True]), key=st.sampled_from([None, None, "a", "b"]))
    def press(self, elder: int, dies: bool, key: str | None) -> None:
        """If it dies, the task is there without an offer, as after an offer that failed."""
        caller = self.elders[elder % ELDERS]
        known = self.ref.task_of_key(caller.id, key) or self.ref.open_task_of(caller.id)
        new = NewTask(caller.id)
        before = self.world.now()
        if dies:
            made: Any = self.expect(
                caller.id not in self.ref.inactive_elders,
                lambda: self.in_transaction(lambda store: press_alone(store, caller, self.ref.rules, key)),
            )
            task_id, created = made or (None, False)
        else:
            pressed: Any = self.expect(
                caller.id not in self.ref.inactive_elders, lambda: self.world.matching.press(caller, new, key)
            )
            task_id, created = (pressed.task.id, pressed.created) if pressed else (None, False)
        if task_id is not None:
            assert created is (known is None), "an elder has one open task at most"
            assert known is None or known.id == task_id
            if created:
                self.begin(task_id, caller, before)
                if key is not None:
                    self.ref.keys[caller.id, key] = task_id
        self.observe(hints_sent=not dies, lists_are_seen=True)
        if created and task_id is not None and (dies or self.redis_is_down):
            # The list may not have reached Redis.
            self.ref.tasks[task_id].possible_lists = [None]

    def begin(self, task_id: UUID, elder: Caller, now: datetime) -> None:
        until = now + self.ref.rules.search_limit
        task = Task(task_id, len(self.ref.tasks), elder.id, self.homes[elder.id], until, [], set())
        ranking = self.ref.ranking(task)
        task.possible_lists, task.listed = [ranking[: self.ref.rules.cap]], {len(ranking)}
        self.ref.tasks[task_id] = task

    # ---- students ----

    @rule(task=Index, student=Index, right=st.booleans(), dies=st.booleans())
    def accept(self, task: int, student: int, right: bool, dies: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        again = one.offers.get(caller.id) == "ACCEPTED"
        allowed = again or self.is_asked_in_time(one, caller.id)
        if dies:
            self.die_after_commit(allowed, lambda store: deeds.accept(store, caller, one.id, self.ref.rules))
        else:
            self.expect(allowed, lambda: self.world.matching.accept(caller, one.id))
        if allowed and not again:
            self.ref.assign(one, caller.id, self.world.now())
            self.forget_list(one, dies)
        self.observe(hints_sent=not dies)

    @rule(task=Index, student=Index, right=st.booleans(), dies=st.booleans())
    def reject(self, task: int, student: int, right: bool, dies: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        again = one.offers.get(caller.id) == "REJECTED"
        allowed = again or self.is_asked_in_time(one, caller.id)
        if dies:
            lists = self.world.matching.runner.lists([one.id])
            self.die_after_commit(allowed, lambda store: deeds.reject(store, caller, one.id, lists, self.ref.rules))
        else:
            self.expect(allowed, lambda: self.world.matching.reject(caller, one.id))
        if allowed and not again:
            self.ref.close(one, "REJECTED")
        self.observe(hints_sent=not dies)

    @rule(task=Index, student=Index, right=st.sampled_from([True, True, False]))
    def start(self, task: int, student: int, right: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        allowed = one.holder == caller.id and one.status in HELD
        self.expect(allowed, lambda: self.world.matching.start(caller, one.id))
        if allowed and one.status == "ASSIGNED":
            self.ref.start(one)
        self.observe()

    @rule(task=Index, student=Index, right=st.sampled_from([True, True, False]), by_coordinator=st.booleans())
    def complete(self, task: int, student: int, right: bool, by_coordinator: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        done = one.status == "COMPLETED"
        if by_coordinator:
            caller, allowed = self.coordinator, done or one.status in HELD
        else:
            allowed = one.holder == caller.id and (done or one.status == "STARTED")
        self.expect(allowed, lambda: self.world.matching.complete(caller, one.id))
        if allowed and not done:
            if one.status == "ASSIGNED":
                self.ref.start(one)
            self.ref.complete(one)
            self.forget_list(one)
        self.observe()

    @rule(task=Index, student=Index, right=st.sampled_from([True, True, False]), dies=st.booleans())
    def withdraw(self, task: int, student: int, right: bool, dies: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        again = one.offers.get(caller.id) == "RELEASED"
        allowed = again or (one.holder == caller.id and one.status in HELD)
        if dies:
            self.die_after_commit(allowed, lambda store: deeds.withdraw(store, caller, one.id, self.ref.rules))
        else:
            self.expect(allowed, lambda: self.world.matching.withdraw(caller, one.id))
        if allowed and not again:
            self.ref.give_back(one, self.world.now())
            self.ref.notified[self.coordinator.id, "STUDENT_WITHDREW", one.id] += 1
        self.observe(hints_sent=not dies)

    @rule(student=Index, on_duty=st.booleans(), dies=st.sampled_from([False, False, True]))
    def come_or_go(self, student: int, on_duty: bool, dies: bool) -> None:
        one = self.student(student)
        if dies:
            self.die_after_commit(True, lambda store: availability.set_availability(store, one.id, on_duty))
        else:
            self.expect(True, lambda: self.world.matching.set_availability(self.callers[one.id], on_duty))
        one.on_duty = on_duty
        asking = self.ref.asked_by(one.id)
        if asking is not None and not on_duty:
            self.ref.close(asking, "WITHDRAWN")
        self.observe(hints_sent=not dies)

    @rule(student=Index, spot=Spots, side=Sides)
    def move(self, student: int, spot: float, side: int) -> None:
        one = self.student(student)
        one.metres = spot * side
        self.expect(True, lambda: self.world.matching.set_location(one.id, self.world.spot(one.metres)))
        asking = self.ref.asked_by(one.id)
        if asking is not None and self.ref.distance(one, asking) > self.ref.rules.offer_reach_m:
            self.ref.close(asking, "WITHDRAWN")
        self.observe()

    @rule(student=Index, active=st.booleans())
    def leave_or_return(self, student: int, active: bool) -> None:
        one = self.student(student)
        self.expect(True, lambda: self.world.matching.set_active(one.id, active))
        one.active = active
        asking = self.ref.asked_by(one.id)
        if asking is not None and not active:
            self.ref.close(asking, "WITHDRAWN")
        if one.task is not None and not active:
            self.ref.give_back(self.ref.tasks[one.task], self.world.now())
        self.observe()

    @rule(elder=Index, active=st.sampled_from([False, True, True]))
    def elder_leaves_or_returns(self, elder: int, active: bool) -> None:
        caller = self.elders[elder % ELDERS]
        self.expect(True, lambda: self.world.matching.set_active(caller.id, active))
        self.ref.inactive_elders.discard(caller.id)
        if not active:
            self.ref.inactive_elders.add(caller.id)
            task = self.ref.open_task_of(caller.id)
            if task is not None:
                self.ref.cancel(task, notify_elder=False)
                self.forget_list(task)
        self.observe()

    # ---- the coordinator, and cancelling ----

    @rule(task=Index, who=st.sampled_from(["elder", "coordinator", "stranger"]))
    def cancel(self, task: int, who: str) -> None:
        one = self.task(task)
        if one is None:
            return
        stranger = next(caller for caller in self.elders if caller.id != one.elder)
        owner = next(caller for caller in self.elders if caller.id == one.elder)
        caller = {"elder": owner, "coordinator": self.coordinator, "stranger": stranger}[who]
        allowed = who != "stranger" and (one.status in OPEN or one.status == "CANCELLED")
        self.expect(allowed, lambda: self.world.matching.cancel(caller, one.id))
        if allowed and one.status in OPEN:
            self.ref.cancel(one, notify_elder=who == "coordinator")
            self.forget_list(one)
        self.observe()

    @rule(task=Index, student=Index)
    def assign(self, task: int, student: int) -> None:
        one, chosen = self.task(task), self.student(student)
        if one is None:
            return
        again = one.status in HELD and one.holder == chosen.id
        allowed = again or (one.status == "PENDING" and chosen.active and chosen.task is None)
        self.expect(allowed, lambda: self.world.matching.assign(self.coordinator, one.id, chosen.id))
        if allowed and not again:
            elsewhere = self.ref.asked_by(chosen.id)
            if elsewhere is not None and elsewhere is not one:
                self.ref.close(elsewhere, "WITHDRAWN")
            if one.live not in (None, chosen.id):
                self.ref.close(one, "WITHDRAWN")
            self.ref.assign(one, chosen.id, self.world.now())
            self.ref.notified[chosen.id, "ASSIGNED_TO_YOU", one.id] += 1
            self.forget_list(one)
        self.observe()

    @rule(task=Index)
    def move_on(self, task: int) -> None:
        one = self.task(task)
        if one is None:
            return
        allowed = one.status == "PENDING"
        self.expect(allowed, lambda: self.world.matching.move_on(self.coordinator, one.id))
        if allowed and one.live is not None:
            # Also if it is overdue: the coordinator withdraws the offer before settling could expire it.
            self.ref.close(one, "WITHDRAWN")
        self.observe()

    @rule(task=Index)
    def release(self, task: int) -> None:
        one = self.task(task)
        if one is None:
            return
        allowed, holder = one.status in HELD, one.holder
        self.expect(allowed, lambda: self.world.matching.release(self.coordinator, one.id))
        if allowed and holder is not None:
            self.ref.give_back(one, self.world.now())
            self.ref.notified[holder, "RELEASED", one.id] += 1
        self.observe()

    # ---- time ----

    @rule(seconds=st.sampled_from([0.7, 11.3, 97.1, 333.9]))
    def a_little_time_passes(self, seconds: float) -> None:
        self.pass_time(seconds)

    @precondition(lambda self: self.boundaries())
    @rule()
    def time_passes_to_the_next_boundary(self) -> None:
        self.pass_time((min(self.boundaries()) - self.world.now()).total_seconds())

    @rule(hours=st.sampled_from([0.6, 1.1, 4.3]))
    def much_time_passes(self, hours: float) -> None:
        self.pass_time(hours * 3600)

    @rule()
    def a_month_turns(self) -> None:
        for student in self.ref.students.values():
            student.completed.clear()
        self.world.begin_a_month()
        self.observe()

    def boundaries(self) -> list[datetime]:
        now = self.world.now()
        moments = [
            moment
            for task in self.ref.tasks.values()
            if task.status in OPEN
            for moment in (task.deadline, task.search_until if task.status == "PENDING" else None, task.report_at)
        ]
        return [moment for moment in moments if moment is not None and moment > now]

    def pass_time(self, seconds: float) -> None:
        """Avoids moments just before something falls due, which the real clock would pass during the check."""
        now = self.world.now()
        target = now + timedelta(seconds=seconds)
        for moment in sorted(self.boundaries()):
            if timedelta(seconds=-0.3) <= moment - target < timedelta(seconds=3):
                target = moment + timedelta(seconds=0.5)
        self.world.pass_time((target - now).total_seconds())
        self.observe()

    # ---- matchers ----

    @rule(chosen=st.lists(Index, min_size=1, max_size=3), twice=st.booleans())
    def a_matcher_settles_some(self, chosen: list[int], twice: bool) -> None:
        """The chosen tasks need not be due; settling must do only what is due."""
        ids = sorted({task.id for task in map(self.task, chosen) if task is not None})
        for _ in range(2 if twice else 1):
            self.world.matching.runner.advance(ids, skip_locked=True)
            self.observe(all_were_due=False)

    @rule(chosen=st.lists(Index, min_size=1, max_size=3), student=Index, what=st.sampled_from(["off", "far", "gone"]))
    def a_student_leaves_while_a_matcher_chooses(self, chosen: list[int], student: int, what: str) -> None:
        ids = sorted({task.id for task in map(self.task, chosen) if task is not None})
        one = self.student(student)
        if one.task is not None or self.ref.asked_by(one.id) is not None:
            return
        far = self.world.spot(5000.0)
        interruption: Interruption = {
            "off": lambda store: availability.set_availability(store, one.id, False),
            "far": lambda store: availability.set_location(store, one.id, far, self.ref.rules),
            "gone": lambda store: availability.set_active(store, one.id, False, self.ref.rules),
        }[what]

        def leave_in_reference() -> None:
            one.on_duty = one.on_duty and what != "off"
            one.active = one.active and what != "gone"
            one.metres = 5000.0 if what == "far" else one.metres

        self.advance_meanwhile(ids, interruption, leave_in_reference)

    @rule(chosen=st.lists(Index, min_size=1, max_size=3), other=Index)
    def two_matchers_choose_at_once(self, chosen: list[int], other: int) -> None:
        ids = sorted({task.id for task in map(self.task, chosen) if task is not None})
        rival = self.task(other)
        if rival is None or rival.id in ids:
            return

        def settle_rival(store: Store) -> FollowUp:
            # Skips the task if it is locked: the first matcher may have locked it in a later round.
            return settle(store, [rival.id], Lists({}), self.ref.rules, skip_locked=True).follow_up()

        self.advance_meanwhile(ids, settle_rival, lambda: None, [None])

    def advance_meanwhile(
        self,
        ids: list[UUID],
        interruption: Interruption,
        done: Callable[[], None],
        possible_lists: list[CandidateList] | None = None,
    ) -> None:
        stores = self.world.stores
        stores.interruption, stores.follow_up = interruption, None
        self.rankings_before = {
            task.id: self.ref.ranking(task)[: self.ref.rules.cap] for task in self.ref.tasks.values()
        }
        for task in self.ref.tasks.values() if possible_lists else ():
            # The other matcher did not read the lists from Redis.
            task.possible_lists = [*task.possible_lists, *possible_lists]
        self.world.matching.runner.advance(ids, skip_locked=True)
        if stores.follow_up is None:
            stores.interruption = None
        else:
            self.world.matching.runner.follow_up(stores.follow_up, skip_locked=True)
            done()
        self.observe(all_were_due=False)
        self.rankings_before.clear()

    @rule(by_redis=st.booleans())
    def the_matcher_settles_all(self, by_redis: bool) -> None:
        self.settle_all(by_redis=by_redis)

    @rule()
    def a_matcher_claims_and_dies(self) -> None:
        if not self.redis_is_down:
            self.claimed.update(self.world.claim(10))
            self.observe()

    def settle_all(self, by_redis: bool = False) -> None:
        if by_redis and not self.redis_is_down and self.redis_knows_all and not self.claimed:
            # Scores in Redis are milliseconds, rounded up.
            self.pass_time(0.01)
            while ids := self.world.claim(2):
                self.world.matching.runner.advance(ids, skip_locked=True)
                self.observe()
        else:
            for _ in range(ROUNDS):
                ids = self.due()
                if not ids:
                    break
                self.world.matching.runner.advance(ids, skip_locked=True)
                self.observe()
        assert not self.due(), f"tasks are still due after {ROUNDS} rounds"
        self.claimed.clear()
        self.check_waiting_tasks()

    def due(self) -> list[UUID]:
        with self.world.stores.reading() as store:
            return store.due_tasks(100)

    # ---- Redis ----

    @rule()
    def redis_is_emptied(self) -> None:
        self.world.lose_redis()
        self.redis_knows_all = False
        for task in self.ref.tasks.values():
            task.possible_lists = [None]
        self.observe()

    @rule()
    def lists_are_lost(self) -> None:
        self.world.lose_lists()
        for task in self.ref.tasks.values():
            task.possible_lists = [None]
        self.observe()

    @rule(down=st.booleans())
    def redis_goes_down_or_comes_back(self, down: bool) -> None:
        self.redis_is_down = down
        self.world.set_redis_down(down)
        if down:
            self.redis_knows_all = False

    @rule()
    def the_reconciler_looks(self) -> None:
        if self.redis_is_down:
            try:
                self.world.redis_sync.refresh()
            except RedisUnavailable:
                return
            raise AssertionError("RedisSync did not notice that Redis is down")
        self.reconcile()

    def reconcile(self) -> None:
        self.world.redis_sync.refresh()
        for task in self.ref.tasks.values():
            # RedisSync cannot tell an empty list from a lost one, so it fills both.
            lists = task.possible_lists
            if task.status == "PENDING" and any(task.offers.keys() >= set(one or []) for one in lists):
                task.possible_lists.append(self.ref.ranking(task)[: self.ref.rules.cap])
        self.observe()
        self.redis_knows_all = True
        self.check_redis()

    # ---- helpers ----

    def task(self, which: int) -> Task | None:
        """A task; in three of four cases an open one, if there is any."""
        tasks = list(self.ref.tasks.values())
        open_tasks = [task for task in tasks if task.status in OPEN]
        choices = open_tasks if open_tasks and which % 4 else tasks
        return choices[which // 4 % len(choices)] if choices else None

    def student(self, which: int) -> Student:
        return list(self.ref.students.values())[which % len(self.ref.students)]

    def pair(self, task: int, student: int, right: bool) -> tuple[Task, Caller] | None:
        """A task and a student: with `right` the one who is being asked or has accepted, if there is one."""
        one = self.task(task)
        if one is None:
            return None
        involved = one.holder or one.live if right else None
        return one, self.callers[involved or self.student(student).id]

    def is_asked_in_time(self, task: Task, student_id: int) -> bool:
        return task.live == student_id and task.deadline is not None and task.deadline > self.world.now()

    def expect(self, allowed: bool, call: Callable[[], Any]) -> Any:
        try:
            done = call()
        except AppError as error:
            assert not allowed, f"the service refused an allowed call with {error.code}: {error}"
            return None
        assert allowed, "the service accepted a call that is not allowed"
        return done

    def in_transaction(self, deed: Callable[[Store], Any]) -> Any:
        with self.world.stores.transaction() as store:
            return deed(store)

    def die_after_commit(self, allowed: bool, deed: Callable[[Store], FollowUp]) -> None:
        """The process dies after its commit, so no hints are sent."""
        self.expect(allowed, lambda: self.in_transaction(deed))

    def forget_list(self, task: Task, dies: bool = False) -> None:
        """The list is deleted if the hint reaches Redis; otherwise it may still be there."""
        task.possible_lists = [*task.possible_lists, None] if dies or self.redis_is_down else [None]

    # ---- checks ----

    def observe(
        self, *, hints_sent: bool = True, lists_are_seen: bool | None = None, all_were_due: bool = True
    ) -> None:
        """Compares the stores with the reference. Every change must be a deed of people or a duty of the service."""
        if not hints_sent:
            self.redis_knows_all = False
            self.hints_were_lost = True
        self.ref.month = self.world.month()
        seen = self.world.snapshot()
        known = {task_id: dict(task.offers) for task_id, task in self.ref.tasks.items()}
        self.check_expired(seen)
        new = [offer for offer in seen.offers if offer.student_id not in known[offer.task_id]]
        new = [offer for offer in new if offer.student_id not in self.ref.tasks[offer.task_id].offers]
        self.check_skipped(offer for offer in new if offer.state == "SKIPPED")
        can_see = not self.redis_is_down if lists_are_seen is None else lists_are_seen
        asked = [offer for offer in new if offer.state != "SKIPPED"]
        self.check_asked(asked, can_see, hints_sent and not self.redis_is_down)
        self.check_ends(seen)
        if all_were_due:
            self.check_age(new)
        self.check_reports(seen)
        for task in self.ref.tasks.values():
            if task.needs_offer:
                # A waiting task is ranked anew each time it is settled.
                task.listed = {None}
                fresh = self.ref.ranking(task)[: self.ref.rules.cap]
                task.possible_lists += [listing for listing in (None, fresh) if listing not in task.possible_lists]
        self.waited = {task.id for task in self.ref.tasks.values() if task.needs_offer}
        self.compare(seen)
        if self.redis_knows_all and not self.redis_is_down:
            self.check_redis()

    def check_expired(self, seen: Snapshot) -> None:
        states = {(offer.task_id, offer.student_id): offer.state for offer in seen.offers}
        for task in self.ref.tasks.values():
            if task.live is not None and states[task.id, task.live] == "EXPIRED":
                assert task.deadline is not None and task.deadline <= seen.now, "an offer expired before its deadline"
                self.ref.close(task, "EXPIRED")

    def check_skipped(self, skipped: Any) -> None:
        for offer in skipped:
            task, student = self.ref.tasks[offer.task_id], self.ref.students[offer.student_id]
            assert self.ref.obstacle(student, task) == offer.reason, (
                f"skipped without the reason that it names: {offer}"
            )
            task.offers[student.id] = "SKIPPED"

    def check_asked(self, asked: list[OfferRow], lists_are_seen: bool, hints_sent: bool) -> None:
        """Offers of one transaction have the same time, so any order in which they can have been made is accepted."""
        left = sorted(asked, key=lambda offer: (offer.offered_at, self.ref.tasks[offer.task_id].number))
        while left:
            first = left[0].offered_at
            for offer in [offer for offer in left if offer.offered_at == first]:
                task = self.ref.tasks[offer.task_id]
                if self.ask(task, offer, lists_are_seen, hints_sent, insist=False):
                    left.remove(offer)
                    break
            else:
                self.ask(self.ref.tasks[left[0].task_id], left[0], lists_are_seen, hints_sent, insist=True)

    def ask(self, task: Task, offer: OfferRow, lists_are_seen: bool, hints_sent: bool, *, insist: bool) -> bool:
        assert task.needs_offer, f"an offer for a task that needs none: {offer}"
        assert offer.state == "PENDING" and offer.offered_at is not None and offer.deadline is not None
        possible_lists = task.possible_lists if lists_are_seen else [None]
        if not insist and offer.student_id not in {
            self.ref.next_student(task, listing)[0] for listing in possible_lists
        }:
            return False
        student = self.ref.students[offer.student_id]
        assert offer.deadline - offer.offered_at == self.ref.rules.offer_ttl
        assert offer.offered_at < task.search_until + self.slack, "asked after the search limit"
        assert offer.completed == student.completed[self.ref.month]
        assert offer.distance_m is not None and abs(offer.distance_m - self.ref.distance(student, task)) < 0.1
        self.ref.ask(task, student.id, offer.deadline, lists_are_seen=lists_are_seen, hints_sent=hints_sent)
        if task.id in self.rankings_before:
            task.listed = {None}
            task.possible_lists.append(self.rankings_before[task.id])
        return True

    def check_age(self, asked: list[OfferRow]) -> None:
        """A student who becomes free is offered to the oldest task that waits."""
        if self.hints_were_lost:
            return
        waited = [self.ref.tasks[task_id] for task_id in self.waited]
        for offer in asked:
            for older in waited:
                if offer.task_id in self.waited and older.number < self.ref.tasks[offer.task_id].number:
                    could_ask = (
                        older.needs_offer and self.ref.obstacle(self.ref.students[offer.student_id], older) is None
                    )
                    assert not could_ask or offer.student_id in older.offers, f"{older} has waited longer for {offer}"

    def check_ends(self, seen: Snapshot) -> None:
        for task in self.ref.tasks.values():
            if task.status == "PENDING" and seen.tasks[task.id].status == "TIMED_OUT":
                assert self.ref.may_end(task, seen.now), "a search ended although a student was left to ask"
                self.ref.give_up(task)
                self.forget_list(task)

    def check_reports(self, seen: Snapshot) -> None:
        """Coordinators are notified once of a task that is not started, and once of one that is not completed."""
        for task in self.ref.tasks.values():
            for kind in ("NOT_STARTED", "NOT_COMPLETED"):
                key = (self.coordinator.id, kind, task.id)
                if seen.notified[key] > self.ref.notified[key]:
                    assert task.report_at is not None and task.report_at <= seen.now, "reported before the limit"
                    assert self.ref.report(task) == kind

    def compare(self, seen: Snapshot) -> None:
        assert seen.tasks.keys() == self.ref.tasks.keys()
        states = {task.id: {} for task in self.ref.tasks.values()}
        for offer in seen.offers:
            states[offer.task_id][offer.student_id] = offer.state
        for task in self.ref.tasks.values():
            row = seen.tasks[task.id]
            assert states[task.id] == task.offers, f"{states[task.id]} instead of {task.offers}"
            assert (row.status, row.asked, row.skipped) == (task.status, task.asked, task.skipped)
            assert task.status not in HELD or row.student_id == task.holder
            assert row.ended is (task.status not in OPEN)
            assert (row.next_step_at is None) is (
                task.status not in OPEN or (task.status in HELD and not task.report_at)
            )
            if task.live is not None:
                assert row.next_step_at is not None and task.deadline is not None
                assert row.next_step_at <= task.deadline
            if task.status == "PENDING" and None not in task.listed:
                assert row.listed in task.listed, f"{row.listed} listed instead of {task.listed}"
        counts = {key: (seen.notified[key], self.ref.notified[key]) for key in seen.notified | self.ref.notified}
        wrong = {key: both for key, both in counts.items() if both[0] != both[1]}
        assert not wrong, f"notifications (found, expected): {wrong}"
        offered = {key for key in self.ref.withdrawn_offers if self.ref.notified[key[0], "OFFER", key[1]]}
        assert seen.withdrawn_pushes == offered

    @invariant()
    def the_promises_hold(self) -> None:
        if not hasattr(self, "ref"):
            return
        tasks = self.ref.tasks.values()
        for people in (
            [task.live for task in tasks if task.live is not None],
            [task.holder for task in tasks if task.status in HELD],
            [task.elder for task in tasks if task.status in OPEN],
        ):
            assert not [one for one, count in Counter(people).items() if count > 1]
        for task in tasks:
            if task.live is not None:
                student = self.ref.students[task.live]
                assert student.active and student.on_duty and student.task is None
                assert self.ref.distance(student, task) <= self.ref.rules.offer_reach_m

    def check_waiting_tasks(self) -> None:
        """After everything due is settled, every task that waits must have a reason to wait."""
        seen = self.world.snapshot()
        seeking = [task for task in self.ref.tasks.values() if task.needs_offer]
        if not any(list(self.ref.free(self.ref.ranking(task))) or not self.ref.ranking(task) for task in seeking):
            self.hints_were_lost = False
        for task in self.ref.tasks.values():
            row = seen.tasks[task.id]
            if task.live is not None:
                assert task.deadline is not None and task.deadline > seen.now - self.slack
            elif task.status == "PENDING":
                assert row.waiting and row.next_step_at is not None
                assert seen.now - self.slack < row.next_step_at < task.search_until + self.slack
                if not self.hints_were_lost:
                    self.check_reason_to_wait(task, row.next_step_at)
            elif task.report_at is not None:
                assert row.next_step_at is not None and abs(row.next_step_at - task.report_at) < self.slack

    def check_reason_to_wait(self, task: Task, next_step_at: datetime) -> None:
        ranking = self.ref.ranking(task)
        assert ranking, "waits although no candidate is left"
        assert not list(self.ref.free(ranking)), "waits although a candidate is free"
        ends = [asking.deadline for asking in map(self.ref.asked_by, ranking) if asking is not None]
        expected = min([*(end for end in ends if end is not None), task.search_until])
        assert next_step_at < expected + self.slack, "waits longer than until the first offer ends"

    def check_redis(self) -> None:
        """Redis must agree with PostgreSQL."""
        seen = self.world.snapshot()
        for task in self.ref.tasks.values():
            held, row = self.world.redis_values(task.id), seen.tasks[task.id]
            if task.id not in self.claimed:
                assert _same_ms(held.next_step_at, row.next_step_at)
            if task.status != "PENDING":
                assert (held.candidates, held.asked) == ([], None)
            elif task.deadline is not None and task.deadline > seen.now + timedelta(seconds=3):
                assert held.asked == task.live
            else:
                assert held.asked in (task.live, None)
            searches = task.live is not None and seen.now < task.search_until
            if searches and len(task.possible_lists) == 1 and task.possible_lists[0] is not None:
                # If a hint was lost, a student who was asked may still be listed. PostgreSQL prevents a second offer.
                left = [one for one in held.candidates if one not in task.offers or task.list_is_exact]
                right = [one for one in task.possible_lists[0] if one not in task.offers]
                assert left == right, f"Redis lists {left} instead of {right}: {task}"

    def teardown(self) -> None:
        """At the end every search must end, and Redis must agree with PostgreSQL."""
        if not hasattr(self, "ref"):
            return
        self.redis_goes_down_or_comes_back(False)
        self.reconcile()
        for _ in range(ROUNDS):
            self.settle_all()
            if not any(task.status == "PENDING" for task in self.ref.tasks.values()):
                break
            self.pass_time(min((moment - self.world.now()).total_seconds() for moment in self.boundaries()))
        assert not any(task.status == "PENDING" for task in self.ref.tasks.values()), "a search did not end"
        self.reconcile()


def _same_ms(held: datetime | None, row: datetime | None) -> bool:
    """Scores in Redis are milliseconds, rounded up."""
    if held is None or row is None:
        return held is row
    return timedelta(0) <= held - row <= timedelta(milliseconds=1)
