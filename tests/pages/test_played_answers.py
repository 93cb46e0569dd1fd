"""The played service has no fields that the API does not have."""

from typing import Any

from app.api.schemas import CurrentOfferJson, MeJson, MyOfferJson, TaskJson
from tests.support.played_service import PlayedService, asked, offer, task

OF_DEMO_PEOPLE = {"distanceM", "reserved"}


def test_played_answers_have_the_fields_of_the_api() -> None:
    me = PlayedService().me_of("ahmet").keys() - OF_DEMO_PEOPLE
    played: list[tuple[Any, Any]] = [(task(), TaskJson), (offer(), MyOfferJson), (me, MeJson)]
    for shown, model in [*played, (asked()["currentOffer"], CurrentOfferJson)]:
        assert set(shown) <= set(model.model_json_schema(mode="serialization")["properties"])
