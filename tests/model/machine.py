"""People, matchers and mishaps in any order, each step of the service judged by the reference."""

from collections import Counter
from collections.abc import Callable
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
from app.matching.rules import MatchingRules
from app.matching.store.stores import Store
from app.redis_store.contract import RedisUnavailable
from app.users.models import Caller
from tests.model.reference import HELD, OPEN, Order, Reference, Student, Task
from tests.model.worlds import Interlude, OfferSeen, Seen, World

ELDERS, STUDENTS = 4, 5
ROUNDS = 30
Which = st.integers(0, 10**6)
"""Somebody or something out of those there are at that moment."""
Spots = st.sampled_from([0.0, 61.0, 133.0, 419.0, 727.0, 991.0, 1013.0, 1319.0, 1487.0, 1511.0, 2203.0])
Homes = st.sampled_from([7.0, 307.0, 907.0, 1907.0])
"""Along one line, so that no two places are as far from a third one, nor at the very rim of a circle."""
Sides = st.sampled_from([1, -1])


class MatchingMachine(RuleBasedStateMachine):
    """A subclass says in which world it is played."""

    slack = timedelta(seconds=3)

    def make_world(self, rules: MatchingRules) -> World:
        raise NotImplementedError

    @initialize(
        elders=st.lists(Homes, min_size=ELDERS, max_size=ELDERS),
        students=st.lists(st.tuples(Spots, Sides), min_size=2, max_size=STUDENTS),
        cap=st.sampled_from([50, 50, 2]),
    )
    def people(self, elders: list[float], students: list[tuple[float, int]], cap: int) -> None:
        rules = MatchingRules(cap=cap)
        self.world = self.make_world(rules)
        self.ref = Reference(rules)
        self.elders = [self.world.elder(metres) for metres in elders]
        self.homes = {caller.id: metres for caller, metres in zip(self.elders, elders, strict=True)}
        self.callers = {}
        for spot, side in students:
            caller = self.world.student(spot * side)
            self.callers[caller.id] = caller
            self.ref.students[caller.id] = Student(caller.id, spot * side)
        self.boss = self.world.coordinator()
        self.ref.coordinators = [self.boss.id]
        self.redis_is_down = False
        self.redis_knows_all = True
        self.hints_were_lost = False
        self.waited: set[UUID] = set()
        self.rankings_before: dict[UUID, list[int]] = {}
        """A list may have been made a moment before somebody on it left."""
        self.claimed: set[UUID] = set()
        """Their deadlines come up again a second later, for whoever lives."""
        self.world.redis_sync.refresh()

    # ---- the elder ----

    @rule(elder=Which, dies=st.sampled_from([False, False, False, True]), key=st.sampled_from([None, None, "a", "b"]))
    def press(self, elder: int, dies: bool, key: str | None) -> None:
        caller = self.elders[elder % ELDERS]
        known = self.ref.task_of_key(caller.id, key) or self.ref.open_task_of(caller.id)
        new = NewTask(caller.id)
        before = self.world.now()
        if dies:
            made: Any = self.do(
                caller.id not in self.ref.inactive_elders,
                lambda: self.in_transaction(lambda store: deeds.press(store, new, key, self.ref.rules)),
            )
            task_id, created = (made.task_id, made.created) if made else (None, False)
        else:
            pressed: Any = self.do(
                caller.id not in self.ref.inactive_elders, lambda: self.world.matching.press(caller, new, key)
            )
            task_id, created = (pressed.task.id, pressed.created) if pressed else (None, False)
        if task_id is not None:
            assert created is (known is None), "one open task for an elder"
            assert known is None or known.id == task_id
            if created:
                self.begin(task_id, caller, before)
                if key is not None:
                    self.ref.keys[caller.id, key] = task_id
        self.observe(told=not dies, lists_are_seen=True)
        if created and task_id is not None and (dies or self.redis_is_down):
            # The list was on its way to Redis.
            self.ref.tasks[task_id].orders = [None]

    def begin(self, task_id: UUID, elder: Caller, now: datetime) -> None:
        until = now + self.ref.rules.search_limit
        task = Task(task_id, len(self.ref.tasks), elder.id, self.homes[elder.id], until, [], set())
        ranking = self.ref.ranking(task)
        task.orders, task.listed = [ranking[: self.ref.rules.cap]], {len(ranking)}
        self.ref.tasks[task_id] = task

    # ---- students ----

    @rule(task=Which, student=Which, right=st.booleans(), dies=st.booleans())
    def accept(self, task: int, student: int, right: bool, dies: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        again = one.offers.get(caller.id) == "ACCEPTED"
        allowed = again or self.is_asked_in_time(one, caller.id)
        if dies:
            self.die(allowed, lambda store: deeds.accept(store, caller, one.id, self.ref.rules))
        else:
            self.do(allowed, lambda: self.world.matching.accept(caller, one.id))
        if allowed and not again:
            self.ref.assign(one, caller.id, self.world.now())
            self.forget_list(one, dies)
        self.observe(told=not dies)

    @rule(task=Which, student=Which, right=st.booleans(), dies=st.booleans())
    def reject(self, task: int, student: int, right: bool, dies: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        again = one.offers.get(caller.id) == "REJECTED"
        allowed = again or self.is_asked_in_time(one, caller.id)
        if dies:
            lists = self.world.matching.runner.lists([one.id])
            self.die(allowed, lambda store: deeds.reject(store, caller, one.id, lists, self.ref.rules))
        else:
            self.do(allowed, lambda: self.world.matching.reject(caller, one.id))
        if allowed and not again:
            self.ref.close(one, "REJECTED")
        self.observe(told=not dies)

    @rule(task=Which, student=Which, right=st.sampled_from([True, True, False]))
    def start(self, task: int, student: int, right: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        allowed = one.holder == caller.id and one.status in HELD
        self.do(allowed, lambda: self.world.matching.start(caller, one.id))
        if allowed and one.status == "ASSIGNED":
            self.ref.start(one)
        self.observe()

    @rule(task=Which, student=Which, right=st.sampled_from([True, True, False]), by_boss=st.booleans())
    def complete(self, task: int, student: int, right: bool, by_boss: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        done = one.status == "COMPLETED"
        if by_boss:
            caller, allowed = self.boss, done or one.status in HELD
        else:
            allowed = one.holder == caller.id and (done or one.status == "STARTED")
        self.do(allowed, lambda: self.world.matching.complete(caller, one.id))
        if allowed and not done:
            if one.status == "ASSIGNED":
                self.ref.start(one)
            self.ref.complete(one)
            self.forget_list(one)
        self.observe()

    @rule(task=Which, student=Which, right=st.sampled_from([True, True, False]), dies=st.booleans())
    def withdraw(self, task: int, student: int, right: bool, dies: bool) -> None:
        found = self.pair(task, student, right)
        if found is None:
            return
        one, caller = found
        again = one.offers.get(caller.id) == "RELEASED"
        allowed = again or (one.holder == caller.id and one.status in HELD)
        if dies:
            self.die(allowed, lambda store: deeds.withdraw(store, caller, one.id, self.ref.rules))
        else:
            self.do(allowed, lambda: self.world.matching.withdraw(caller, one.id))
        if allowed and not again:
            self.ref.give_back(one, self.world.now())
        self.observe(told=not dies)

    @rule(student=Which, on_duty=st.booleans(), dies=st.sampled_from([False, False, True]))
    def come_or_go(self, student: int, on_duty: bool, dies: bool) -> None:
        one = self.student(student)
        if dies:
            self.die(True, lambda store: availability.set_availability(store, one.id, on_duty))
        else:
            self.do(True, lambda: self.world.matching.set_availability(self.callers[one.id], on_duty))
        one.on_duty = on_duty
        asking = self.ref.asked_by(one.id)
        if asking is not None and not on_duty:
            self.ref.close(asking, "WITHDRAWN")
        self.observe(told=not dies)

    @rule(student=Which, spot=Spots, side=Sides)
    def move(self, student: int, spot: float, side: int) -> None:
        one = self.student(student)
        one.metres = spot * side
        self.do(True, lambda: self.world.matching.set_location(one.id, self.world.spot(one.metres)))
        asking = self.ref.asked_by(one.id)
        if asking is not None and self.ref.distance(one, asking) > self.ref.rules.offer_reach_m:
            self.ref.close(asking, "WITHDRAWN")
        self.observe()

    @rule(student=Which, active=st.booleans())
    def leave_or_return(self, student: int, active: bool) -> None:
        one = self.student(student)
        self.do(True, lambda: self.world.matching.set_active(one.id, active))
        one.active = active
        asking = self.ref.asked_by(one.id)
        if asking is not None and not active:
            self.ref.close(asking, "WITHDRAWN")
        if one.task is not None and not active:
            self.ref.give_back(self.ref.tasks[one.task], self.world.now())
        self.observe()

    @rule(elder=Which, active=st.sampled_from([False, True, True]))
    def elder_leaves_or_returns(self, elder: int, active: bool) -> None:
        caller = self.elders[elder % ELDERS]
        self.do(True, lambda: self.world.matching.set_active(caller.id, active))
        self.ref.inactive_elders.discard(caller.id)
        if not active:
            self.ref.inactive_elders.add(caller.id)
            task = self.ref.open_task_of(caller.id)
            if task is not None:
                self.ref.cancel(task, tell_elder=False)
                self.forget_list(task)
        self.observe()

    # ---- the coordinator, and cancelling ----

    @rule(task=Which, who=st.sampled_from(["elder", "boss", "stranger"]))
    def cancel(self, task: int, who: str) -> None:
        one = self.task(task)
        if one is None:
            return
        stranger = next(caller for caller in self.elders if caller.id != one.elder)
        owner = next(caller for caller in self.elders if caller.id == one.elder)
        caller = {"elder": owner, "boss": self.boss, "stranger": stranger}[who]
        allowed = who != "stranger" and (one.status in OPEN or one.status == "CANCELLED")
        self.do(allowed, lambda: self.world.matching.cancel(caller, one.id))
        if allowed and one.status in OPEN:
            self.ref.cancel(one, tell_elder=who == "boss")
            self.forget_list(one)
        self.observe()

    @rule(task=Which, student=Which)
    def assign(self, task: int, student: int) -> None:
        one, chosen = self.task(task), self.student(student)
        if one is None:
            return
        again = one.status in HELD and one.holder == chosen.id
        allowed = again or (one.status == "PENDING" and chosen.active and chosen.task is None)
        self.do(allowed, lambda: self.world.matching.assign(self.boss, one.id, chosen.id))
        if allowed and not again:
            elsewhere = self.ref.asked_by(chosen.id)
            if elsewhere is not None and elsewhere is not one:
                self.ref.close(elsewhere, "WITHDRAWN")
            if one.live not in (None, chosen.id):
                self.ref.close(one, "WITHDRAWN")
            self.ref.assign(one, chosen.id, self.world.now())
            self.ref.told[chosen.id, "ASSIGNED_TO_YOU", one.id] += 1
            self.forget_list(one)
        self.observe()

    @rule(task=Which)
    def move_on(self, task: int) -> None:
        one = self.task(task)
        if one is None:
            return
        allowed = one.status == "PENDING"
        self.do(allowed, lambda: self.world.matching.move_on(self.boss, one.id))
        if allowed and one.live is not None:
            # Settling closes what is overdue as expired only after the coordinator has taken it back.
            self.ref.close(one, "WITHDRAWN")
        self.observe()

    @rule(task=Which)
    def release(self, task: int) -> None:
        one = self.task(task)
        if one is None:
            return
        allowed, holder = one.status in HELD, one.holder
        self.do(allowed, lambda: self.world.matching.release(self.boss, one.id))
        if allowed and holder is not None:
            self.ref.give_back(one, self.world.now())
            self.ref.told[holder, "RELEASED", one.id] += 1
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
        self.world.turn_the_month()
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
        """Never to a moment so near before something falls due that the clock would run over it meanwhile."""
        now = self.world.now()
        target = now + timedelta(seconds=seconds)
        for moment in sorted(self.boundaries()):
            if timedelta(seconds=-0.3) <= moment - target < timedelta(seconds=3):
                target = moment + timedelta(seconds=0.5)
        self.world.pass_time((target - now).total_seconds())
        self.observe()

    # ---- matchers ----

    @rule(chosen=st.lists(Which, min_size=1, max_size=3), twice=st.booleans())
    def a_matcher_settles_some(self, chosen: list[int], twice: bool) -> None:
        """Due or not: settling does what is due and nothing else."""
        ids = sorted({task.id for task in map(self.task, chosen) if task is not None})
        for _ in range(2 if twice else 1):
            self.world.matching.runner.advance(ids, skip_locked=True)
            self.observe(all_were_due=False)

    @rule(chosen=st.lists(Which, min_size=1, max_size=3), student=Which, what=st.sampled_from(["off", "far", "gone"]))
    def a_student_leaves_while_a_matcher_chooses(self, chosen: list[int], student: int, what: str) -> None:
        ids = sorted({task.id for task in map(self.task, chosen) if task is not None})
        one = self.student(student)
        if one.task is not None or self.ref.asked_by(one.id) is not None:
            return
        far = self.world.spot(5000.0)
        interlude: Interlude = {
            "off": lambda store: availability.set_availability(store, one.id, False),
            "far": lambda store: availability.set_location(store, one.id, far, self.ref.rules),
            "gone": lambda store: availability.set_active(store, one.id, False, self.ref.rules),
        }[what]

        def left() -> None:
            one.on_duty = one.on_duty and what != "off"
            one.active = one.active and what != "gone"
            one.metres = 5000.0 if what == "far" else one.metres

        self.advance_meanwhile(ids, interlude, left)

    @rule(chosen=st.lists(Which, min_size=1, max_size=3), other=Which)
    def two_matchers_choose_at_once(self, chosen: list[int], other: int) -> None:
        ids = sorted({task.id for task in map(self.task, chosen) if task is not None})
        rival = self.task(other)
        if rival is None or rival.id in ids:
            return

        def settle_rival(store: Store) -> FollowUp:
            # Skips it if it is locked: the first matcher may have come to the rival in a later round, and holds it.
            return settle(store, [rival.id], Lists({}), self.ref.rules, skip_locked=True)

        self.advance_meanwhile(ids, settle_rival, lambda: None, [None])

    def advance_meanwhile(
        self, ids: list[UUID], interlude: Interlude, done: Callable[[], None], orders: list[Order] | None = None
    ) -> None:
        stores = self.world.stores
        stores.interlude, stores.follows = interlude, None
        self.rankings_before = {
            task.id: self.ref.ranking(task)[: self.ref.rules.cap] for task in self.ref.tasks.values()
        }
        for task in self.ref.tasks.values() if orders else ():
            # The rival did not ask Redis for the lists.
            task.orders = [*task.orders, *orders]
        self.world.matching.runner.advance(ids, skip_locked=True)
        if stores.follows is None:
            stores.interlude = None
        else:
            self.world.matching.runner.follow_up(stores.follows, skip_locked=True)
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
            # Redis counts in milliseconds, rounded up.
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
        assert not self.due(), "what is due is settled within some rounds"
        self.claimed.clear()
        self.check_nothing_was_forgotten()

    def due(self) -> list[UUID]:
        with self.world.stores.reading() as store:
            return store.due_tasks(100)

    # ---- Redis ----

    @rule()
    def redis_is_emptied(self) -> None:
        self.world.lose_redis()
        self.redis_knows_all = False
        for task in self.ref.tasks.values():
            task.orders = [None]
        self.observe()

    @rule()
    def lists_are_lost(self) -> None:
        self.world.lose_lists()
        for task in self.ref.tasks.values():
            task.orders = [None]
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
            raise AssertionError("a Redis that is down was called complete")
        self.reconcile()

    def reconcile(self) -> None:
        self.world.redis_sync.refresh()
        for task in self.ref.tasks.values():
            # An empty list looks like one that was lost, and is filled as well.
            if task.status == "PENDING" and any(task.offers.keys() >= set(order or []) for order in task.orders):
                task.orders.append(self.ref.ranking(task)[: self.ref.rules.cap])
        self.observe()
        self.redis_knows_all = True
        self.check_redis()

    # ---- pieces ----

    def task(self, which: int) -> Task | None:
        """Rather one that is open."""
        tasks = list(self.ref.tasks.values())
        lively = [task for task in tasks if task.status in OPEN]
        among = lively if lively and which % 4 else tasks
        return among[which // 4 % len(among)] if among else None

    def student(self, which: int) -> Student:
        return list(self.ref.students.values())[which % len(self.ref.students)]

    def pair(self, task: int, student: int, right: bool) -> tuple[Task, Caller] | None:
        """A task and a student; with `right` the one who is being asked or has it, where there is one."""
        one = self.task(task)
        if one is None:
            return None
        meant = one.holder or one.live if right else None
        return one, self.callers[meant or self.student(student).id]

    def is_asked_in_time(self, task: Task, student_id: int) -> bool:
        return task.live == student_id and task.deadline is not None and task.deadline > self.world.now()

    def do(self, allowed: bool, call: Callable[[], Any]) -> Any:
        try:
            done = call()
        except AppError as error:
            assert not allowed, f"refused with {error.code}: {error}"
            return None
        assert allowed, "let through what is not allowed"
        return done

    def in_transaction(self, step: Callable[[Store], Any]) -> Any:
        with self.world.stores.transaction() as store:
            return step(store)

    def die(self, allowed: bool, step: Callable[[Store], FollowUp]) -> None:
        """The process dies after its commit, before anything that follows."""
        self.do(allowed, lambda: self.in_transaction(step))

    def forget_list(self, task: Task, dies: bool = False) -> None:
        """The list is dropped, if Redis hears of it."""
        task.orders = [*task.orders, None] if dies or self.redis_is_down else [None]

    # ---- judging ----

    def observe(self, *, told: bool = True, lists_are_seen: bool | None = None, all_were_due: bool = True) -> None:
        """Everything that has changed in the store must be what people did, or what the service had to do."""
        if not told:
            self.redis_knows_all = False
            self.hints_were_lost = True
        self.ref.month = self.world.month()
        seen = self.world.look()
        known = {task_id: dict(task.offers) for task_id, task in self.ref.tasks.items()}
        self.judge_expired(seen)
        new = [offer for offer in seen.offers if offer.student_id not in known[offer.task_id]]
        new = [offer for offer in new if offer.student_id not in self.ref.tasks[offer.task_id].offers]
        self.judge_skipped(offer for offer in new if offer.state == "SKIPPED")
        can_see = not self.redis_is_down if lists_are_seen is None else lists_are_seen
        self.judge_asked([offer for offer in new if offer.state != "SKIPPED"], can_see, told and not self.redis_is_down)
        self.judge_ends(seen)
        if all_were_due:
            self.judge_age(new)
        self.judge_reports(seen)
        for task in self.ref.tasks.values():
            if task.seeks:
                # Each look of a task that waits makes its list anew.
                task.listed = {None}
                fresh = self.ref.ranking(task)[: self.ref.rules.cap]
                task.orders += [order for order in (None, fresh) if order not in task.orders]
        self.waited = {task.id for task in self.ref.tasks.values() if task.seeks}
        self.compare(seen)
        if self.redis_knows_all and not self.redis_is_down:
            self.check_redis()

    def judge_expired(self, seen: Seen) -> None:
        states = {(offer.task_id, offer.student_id): offer.state for offer in seen.offers}
        for task in self.ref.tasks.values():
            if task.live is not None and states[task.id, task.live] == "EXPIRED":
                assert task.deadline is not None and task.deadline <= seen.now, "expired before its time"
                self.ref.close(task, "EXPIRED")

    def judge_skipped(self, skipped: Any) -> None:
        for offer in skipped:
            task, student = self.ref.tasks[offer.task_id], self.ref.students[offer.student_id]
            assert self.ref.obstacle(student, task) == offer.reason, f"passed by for no reason: {offer}"
            task.offers[student.id] = "SKIPPED"

    def judge_asked(self, asked: list[OfferSeen], lists_are_seen: bool, told: bool) -> None:
        """Those asked in one transaction, in whichever order they can have been asked."""
        left = sorted(asked, key=lambda offer: (offer.offered_at, self.ref.tasks[offer.task_id].number))
        while left:
            first = left[0].offered_at
            for offer in [offer for offer in left if offer.offered_at == first]:
                task = self.ref.tasks[offer.task_id]
                if self.ask(task, offer, lists_are_seen, told, insist=False):
                    left.remove(offer)
                    break
            else:
                self.ask(self.ref.tasks[left[0].task_id], left[0], lists_are_seen, told, insist=True)

    def ask(self, task: Task, offer: OfferSeen, lists_are_seen: bool, told: bool, *, insist: bool) -> bool:
        assert task.seeks, f"asked though nobody had to be: {offer}"
        assert offer.state == "PENDING" and offer.offered_at is not None and offer.deadline is not None
        orders = task.orders if lists_are_seen else [None]
        if not insist and offer.student_id not in {self.ref.whose_turn(task, order)[0] for order in orders}:
            return False
        student = self.ref.students[offer.student_id]
        assert offer.deadline - offer.offered_at == self.ref.rules.offer_ttl
        assert offer.offered_at < task.search_until + self.slack, "asked after the search limit"
        assert offer.completed == student.completed[self.ref.month]
        assert offer.distance_m is not None and abs(offer.distance_m - self.ref.distance(student, task)) < 0.1
        self.ref.ask(task, student.id, offer.deadline, lists_are_seen=lists_are_seen, is_told=told)
        if task.id in self.rankings_before:
            task.listed = {None}
            task.orders.append(self.rankings_before[task.id])
        return True

    def judge_age(self, asked: list[OfferSeen]) -> None:
        """A student who becomes free goes to the oldest of the tasks that wait."""
        if self.hints_were_lost:
            return
        waited = [self.ref.tasks[task_id] for task_id in self.waited]
        for offer in asked:
            for older in waited:
                if offer.task_id in self.waited and older.number < self.ref.tasks[offer.task_id].number:
                    wants = older.seeks and self.ref.obstacle(self.ref.students[offer.student_id], older) is None
                    assert not wants or offer.student_id in older.offers, f"{older} has waited longer for {offer}"

    def judge_ends(self, seen: Seen) -> None:
        for task in self.ref.tasks.values():
            if task.status == "PENDING" and seen.tasks[task.id].status == "TIMED_OUT":
                assert self.ref.may_end(task, seen.now), "a search ended that could have gone on"
                self.ref.give_up(task)
                self.forget_list(task)

    def judge_reports(self, seen: Seen) -> None:
        """Coordinators hear once of what is not started, and once of what is not completed."""
        for task in self.ref.tasks.values():
            for message in ("NOT_STARTED", "NOT_COMPLETED"):
                key = (self.boss.id, message, task.id)
                if seen.told[key] > self.ref.told[key]:
                    assert task.report_at is not None and task.report_at <= seen.now, "reported before its time"
                    assert self.ref.report(task) == message

    def compare(self, seen: Seen) -> None:
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
        wrong = {key: (seen.told[key], self.ref.told[key]) for key in seen.told | self.ref.told}
        assert not (wrong := {key: both for key, both in wrong.items() if both[0] != both[1]}), f"told: {wrong}"
        assert seen.withdrawn_pushes == {key for key in self.ref.taken_back if self.ref.told[key[0], "OFFER", key[1]]}

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

    def check_nothing_was_forgotten(self) -> None:
        """Nothing is due any more; then whoever waits has a reason to."""
        seen = self.world.look()
        seeking = [task for task in self.ref.tasks.values() if task.seeks]
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
        assert ranking, "nobody is left to wait for"
        assert not list(self.ref.free(ranking)), "somebody could be asked"
        ends = [asking.deadline for asking in map(self.ref.asked_by, ranking) if asking is not None]
        expected = min([*(end for end in ends if end is not None), task.search_until])
        assert next_step_at < expected + self.slack, "waits longer than it has to"

    def check_redis(self) -> None:
        """Redis holds what the store says."""
        seen = self.world.look()
        for task in self.ref.tasks.values():
            shown, row = self.world.shown(task.id), seen.tasks[task.id]
            if task.id not in self.claimed:
                assert _same_ms(shown.next_step_at, row.next_step_at)
            if task.status != "PENDING":
                assert (shown.candidates, shown.asked) == ([], None)
            elif task.deadline is not None and task.deadline > seen.now + timedelta(seconds=3):
                assert shown.asked == task.live
            else:
                assert shown.asked in (task.live, None)
            searches = task.live is not None and seen.now < task.search_until
            if searches and len(task.orders) == 1 and task.orders[0] is not None:
                # One whose asking Redis did not hear of may linger: nobody is asked twice all the same.
                left = [one for one in shown.candidates if one not in task.offers or task.list_is_exact]
                right = [one for one in task.orders[0] if one not in task.offers]
                assert left == right, f"{left} listed instead of {right}: {task}"

    def teardown(self) -> None:
        """However the day went, in the end every request has ended, and Redis agrees."""
        if not hasattr(self, "ref"):
            return
        self.redis_goes_down_or_comes_back(False)
        self.reconcile()
        for _ in range(ROUNDS):
            self.settle_all()
            if not any(task.status == "PENDING" for task in self.ref.tasks.values()):
                break
            self.pass_time(min((moment - self.world.now()).total_seconds() for moment in self.boundaries()))
        assert not any(task.status == "PENDING" for task in self.ref.tasks.values()), "a request without an end"
        self.reconcile()


def _same_ms(shown: datetime | None, row: datetime | None) -> bool:
    """Redis counts in milliseconds, rounded up."""
    if shown is None or row is None:
        return shown is row
    return timedelta(0) <= shown - row <= timedelta(milliseconds=1)
