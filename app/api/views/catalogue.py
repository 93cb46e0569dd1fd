"""Every route of the API, in the order the documentation shows them."""

from app.api.routing import Route
from app.api.views import (
    actions,
    audit,
    board,
    consumers,
    dead_letters,
    demo_sign_in,
    directory,
    events,
    feed,
    figures,
    health,
    jobs,
    me,
    notifications,
    plans,
    roster_lists,
    roster_runs,
    service,
    students,
    tasks,
    users,
)

ROUTES: tuple[Route, ...] = tuple(
    route
    for module in (
        *(tasks, board, students, figures, health, events, me, users, notifications, directory, plans, actions),
        *(dead_letters, jobs, roster_runs, roster_lists, feed, consumers, audit, service, demo_sign_in),
    )
    for route in module.routes.all
)
